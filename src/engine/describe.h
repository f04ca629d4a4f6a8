#pragma once

#include <holdfast/inspect.h>
#include <functional>
#include <string>

#include "core/lock_record.h"

namespace holdfast::engine {

using PartyOf = std::function<Party(const core::SessionId&)>;

// A lock record as people see it at `now`: without those whose time is up.
LockInfo describe(std::string name, const core::LockRecord& record, base::Time now,
                  const PartyOf& party_of);

}  // namespace holdfast::engine
