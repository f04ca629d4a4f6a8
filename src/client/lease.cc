#include <holdfast/lease.h>

#include <algorithm>
#include <memory>

#include "base/time.h"
#include "client/service.h"

namespace holdfast {

Lease::Lease() noexcept = default;
Lease::Lease(std::unique_ptr<client::LeaseHandle> handle) noexcept : handle_{std::move(handle)} {}
Lease::Lease(Lease&&) noexcept = default;

Lease& Lease::operator=(Lease&& other) noexcept {
  if (this != &other) {
    release_in_background();
    handle_ = std::move(other.handle_);
  }
  return *this;
}

Lease::~Lease() {
  release_in_background();
}

Lease::operator bool() const noexcept {
  return handle_ != nullptr && !handle_->released();
}

const std::string& Lease::name() const noexcept {
  static const std::string kNone;
  return handle_ == nullptr ? kNone : handle_->state().name;
}

std::optional<std::uint64_t> Lease::token() const noexcept {
  return handle_ == nullptr ? std::nullopt : handle_->state().token();
}

bool Lease::is_alive() const noexcept {
  return remaining() > Duration::zero();
}

Duration Lease::remaining() const noexcept {
  if (handle_ == nullptr || handle_->released() || !handle_->is_ours()) {
    return Duration::zero();
  }
  const base::Time deadline = handle_->state().deadline();
  const base::Time now = base::BootClock::now();
  return deadline <= now ? Duration::zero() : deadline - now;
}

std::stop_token Lease::lost() const noexcept {
  return handle_ == nullptr ? std::stop_token{} : handle_->state().lost();
}

std::optional<LossReason> Lease::loss() const noexcept {
  return handle_ == nullptr ? std::nullopt : handle_->state().loss();
}

Result<void> Lease::release() {
  if (handle_ == nullptr) {
    return fail(ErrorCode::invalid_argument, "this lease holds nothing: it is empty or moved from");
  }
  return handle_->release();
}

void Lease::release_in_background() noexcept {
  if (handle_ != nullptr) {
    handle_->release_in_background();
  }
}

std::string_view to_string(LossReason reason) noexcept {
  switch (reason) {
    case LossReason::not_renewed:
      return "not_renewed";
    case LossReason::expired:
      return "expired";
    case LossReason::revoked:
      return "revoked";
  }
  return "unknown";
}

}  // namespace holdfast
