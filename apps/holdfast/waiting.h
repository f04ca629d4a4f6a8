#pragma once

#include <holdfast/client.h>
#include <string>
#include <vector>

#include "context.h"
#include "signals.h"

namespace holdfast::command {

// Acquires for `run`, all of the names or none. A signal ends the wait; the second one ends the
// program. On failure everything was said and nothing is held: the exit status.
tl::expected<std::vector<Lease>, int> wait_for_locks(const Context& context, Client& client,
                                                     std::vector<std::string> names,
                                                     AcquireOptions options, SignalInbox& signals);

}  // namespace holdfast::command
