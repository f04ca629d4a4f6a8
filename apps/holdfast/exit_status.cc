#include "exit_status.h"

namespace holdfast::command {

int exit_status_of(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::busy:
    case ErrorCode::timed_out:
    case ErrorCode::cancelled:
      return kBusy;
    case ErrorCode::lease_lost:
      return kLost;
    case ErrorCode::unavailable:
    case ErrorCode::outcome_unknown:
      return kUnavailable;
    case ErrorCode::invalid_argument:
    case ErrorCode::unsupported:
      return kUsage;
    case ErrorCode::unauthorized:
      return kUnauthorized;
  }
  return kInternal;
}

}  // namespace holdfast::command
