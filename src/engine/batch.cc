#include "engine/batch.h"

#include <algorithm>
#include <utility>

namespace holdfast::engine {
namespace {

// A clock that is centuries ahead must not use up the tokens.
constexpr std::uint64_t kLatestClock = std::uint64_t{1} << 52U;

}  // namespace

core::LockRecord::Context moment(const EngineOptions& client) {
  if (!client.now) {
    return {.now = base::BootClock::now(),
            .token_floor = std::min(base::wall_microseconds(), kLatestClock)};
  }
  const base::Time now = client.now();
  const auto micros = std::chrono::floor<std::chrono::microseconds>(now.time_since_epoch());
  return {.now = now,
          .token_floor = std::min(static_cast<std::uint64_t>(micros.count()), kLatestClock)};
}

Result<void> check_name(std::string_view name) {
  if (name.empty() || name.size() > kMaxNameBytes) {
    return fail(ErrorCode::invalid_argument, "a lock's name has 1 to " +
                                                 std::to_string(kMaxNameBytes) + " bytes, not " +
                                                 std::to_string(name.size()));
  }
  return {};
}

core::Outcome failed(Error error) {
  return {.status = core::Status::failed, .error = std::move(error)};
}

Outcomes all_failed(std::size_t count, const Error& error) {
  return Outcomes(count, failed(error));
}

Error inherited_by_fork() {
  return {ErrorCode::unavailable, "this store was opened before fork(); open it again in the child",
          std::nullopt};
}

}  // namespace holdfast::engine
