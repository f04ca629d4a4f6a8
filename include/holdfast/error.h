#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <system_error>
#include <tl/expected.hpp>
#include <utility>

namespace holdfast {

// The closed set of ways in which an operation can fail.
enum class ErrorCode : std::uint8_t {
  busy = 1,          // somebody else holds the lock, and the caller did not want to wait
  timed_out,         // the wait ended before the lock was granted; nothing is held
  cancelled,         // the caller's stop_token ended the wait; nothing is held
  lease_lost,        // the lock is not ours any more; another owner may hold it
  unavailable,       // the store cannot be reached or refuses work; nothing was changed
  outcome_unknown,   // the request was sent and no answer came; it may have been applied
  invalid_argument,  // the caller's mistake; the text says what to write instead
  unsupported,       // this engine cannot do it; the text names one that can
  unauthorized,      // the store rejected our identity or lacks a privilege
};

// "busy", "timed_out", ...: stable names, for logs and --json.
std::string_view to_string(ErrorCode code) noexcept;

const std::error_category& error_category() noexcept;
std::error_code make_error_code(ErrorCode code) noexcept;

struct Error {
  ErrorCode code = ErrorCode::unavailable;
  std::string text;           // one sentence for a person; never contains a secret
  std::optional<int> native;  // the store's own code, where it gave one
};

std::ostream& operator<<(std::ostream& out, const Error& error);

template <typename T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(ErrorCode code, std::string text,
                                  std::optional<int> native = std::nullopt) {
  return tl::unexpected<Error>{Error{code, std::move(text), native}};
}

// What the std::mutex-shaped calls throw; everything else returns Result.
class LockError : public std::system_error {
 public:
  explicit LockError(Error error);
  const Error& error() const noexcept { return error_; }

 private:
  Error error_;
};

}  // namespace holdfast

template <>
struct std::is_error_code_enum<holdfast::ErrorCode> : std::true_type {};
