#include <holdfast/error.h>

namespace holdfast {
namespace {

class Category : public std::error_category {
 public:
  const char* name() const noexcept override { return "holdfast"; }
  std::string message(int value) const override {
    return std::string{to_string(static_cast<ErrorCode>(value))};
  }
};

}  // namespace

std::string_view to_string(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::busy:
      return "busy";
    case ErrorCode::timed_out:
      return "timed_out";
    case ErrorCode::cancelled:
      return "cancelled";
    case ErrorCode::lease_lost:
      return "lease_lost";
    case ErrorCode::unavailable:
      return "unavailable";
    case ErrorCode::outcome_unknown:
      return "outcome_unknown";
    case ErrorCode::invalid_argument:
      return "invalid_argument";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::unauthorized:
      return "unauthorized";
  }
  return "unknown";
}

const std::error_category& error_category() noexcept {
  static const Category category;
  return category;
}

std::error_code make_error_code(ErrorCode code) noexcept {
  return {static_cast<int>(code), error_category()};
}

std::ostream& operator<<(std::ostream& out, const Error& error) {
  out << to_string(error.code);
  if (!error.text.empty()) {
    out << ": " << error.text;
  }
  if (error.native) {
    out << " [" << *error.native << ']';
  }
  return out;
}

LockError::LockError(Error error)
    : std::system_error{make_error_code(error.code), error.text}, error_{std::move(error)} {}

}  // namespace holdfast
