#pragma once

#include <holdfast/error.h>
#include <cstddef>
#include <string_view>

#include "core/lock_record.h"
#include "engine/engine.h"

// What every engine says in the same words.
namespace holdfast::engine {

// invalid_argument unless it is 1 to 255 bytes.
Result<void> check_name(std::string_view name);

// Now, by this machine's clocks or the test's, for engines whose store is here.
core::LockRecord::Context moment(const EngineOptions& client);

// An outcome that says no more.
inline core::Outcome plain(core::Status status, std::uint32_t count = 0) {
  return {.status = status, .count = count};
}
core::Outcome failed(Error error);
Outcomes all_failed(std::size_t count, const Error& error);

// For an engine that a forked child inherited.
Error inherited_by_fork();

}  // namespace holdfast::engine
