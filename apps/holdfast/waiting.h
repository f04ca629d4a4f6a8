#pragma once

#include <holdfast/client.h>
#include <string>

#include "context.h"
#include "signals.h"

namespace holdfast::command {

// Acquires for `run`. A signal ends the wait; the second one ends the program.
// On failure everything was said and nothing is held: the exit status.
tl::expected<Lease, int> wait_for_lock(const Context& context, Client& client,
                                       const std::string& name, AcquireOptions options,
                                       SignalInbox& signals);

}  // namespace holdfast::command
