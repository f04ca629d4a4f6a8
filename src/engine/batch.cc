#include "engine/batch.h"

#include <utility>

namespace holdfast::engine {

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
