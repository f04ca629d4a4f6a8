#include <holdfast/inspect.h>

// The stable names of what engines can do, for messages, --json and the docs.
namespace holdfast {

std::string_view to_string(Mode mode) noexcept {
  switch (mode) {
    case Mode::exclusive:
      return "exclusive";
    case Mode::shared:
      return "shared";
    case Mode::permits:
      return "permits";
  }
  return "unknown";
}

std::string_view to_string(ExclusionBy value) noexcept {
  switch (value) {
    case ExclusionBy::store:
      return "store";
    case ExclusionBy::session:
      return "session";
    case ExclusionBy::quorum:
      return "quorum";
  }
  return "unknown";
}

std::string_view to_string(TokenKind value) noexcept {
  switch (value) {
    case TokenKind::none:
      return "none";
    case TokenKind::rising:
      return "rising";
    case TokenKind::row_id:
      return "row_id";
    case TokenKind::within_skew:
      return "within_skew";
  }
  return "unknown";
}

std::string_view to_string(WakeUp value) noexcept {
  switch (value) {
    case WakeUp::event:
      return "event";
    case WakeUp::retry:
      return "retry";
    case WakeUp::event_herd:
      return "event_herd";
    case WakeUp::retry_with_hints:
      return "retry_with_hints";
  }
  return "unknown";
}

std::string_view to_string(LossSignal value) noexcept {
  switch (value) {
    case LossSignal::yes:
      return "yes";
    case LossSignal::best_effort:
      return "best_effort";
  }
  return "unknown";
}

}  // namespace holdfast
