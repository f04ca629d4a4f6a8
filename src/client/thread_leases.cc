#include "client/thread_leases.h"

#include <utility>

#include "client/wish.h"

namespace holdfast::client {

ThreadLeases::ThreadLeases(std::shared_ptr<Service> service, std::string name,
                           AcquireOptions options, Reentrancy reentrancy)
    : service_{std::move(service)},
      name_{std::move(name)},
      options_{std::move(options)},
      reentrancy_{reentrancy} {
  options_.owner = std::nullopt;
  options_.wait = std::nullopt;
}

void ThreadLeases::require(Mode mode) const {
  AcquireOptions options = options_;
  options.mode = mode;
  if (auto wish = make_wish(name_, options, service_->capabilities()); !wish) {
    throw LockError{std::move(wish.error())};
  }
}

bool ThreadLeases::enter_again(Mode mode) {
  const std::lock_guard lock{mutex_};
  const auto it = held_.find(std::this_thread::get_id());
  if (it == held_.end()) {
    return false;
  }
  if (it->second.lease.loss()) {
    throw LockError{{ErrorCode::lease_lost,
                     "this thread's lease was lost; unlock before locking again", std::nullopt}};
  }
  if (reentrancy_ == Reentrancy::refused) {
    throw LockError{{ErrorCode::invalid_argument,
                     "this thread holds the lock already; ask for Reentrancy::by_thread",
                     std::nullopt}};
  }
  if (it->second.mode != mode) {
    throw LockError{{ErrorCode::invalid_argument,
                     "this thread holds the lock in another mode; release it first", std::nullopt}};
  }
  ++it->second.depth;
  return true;
}

bool ThreadLeases::lock(Mode mode, std::optional<Duration> wait) {
  if (!service_->is_ours()) {
    throw LockError{{ErrorCode::invalid_argument,
                     "this lock was made before fork(); make a new one in the child",
                     std::nullopt}};
  }
  if (enter_again(mode)) {
    return true;
  }
  AcquireOptions options = options_;
  options.mode = mode;
  options.wait = wait;
  auto lease = service_->acquire(name_, options);
  if (!lease) {
    const ErrorCode code = lease.error().code;
    if (code == ErrorCode::busy || code == ErrorCode::timed_out) {
      return false;
    }
    throw LockError{std::move(lease.error())};
  }
  const std::lock_guard lock{mutex_};
  held_.insert_or_assign(std::this_thread::get_id(), Held{std::move(*lease), mode});
  return true;
}

void ThreadLeases::unlock() noexcept {
  if (!service_->is_ours()) {
    return;
  }
  Lease lease;
  {
    const std::lock_guard lock{mutex_};
    const auto it = held_.find(std::this_thread::get_id());
    if (it == held_.end() || --it->second.depth > 0) {
      return;
    }
    lease = std::move(it->second.lease);
    held_.erase(it);
  }
  lease.release_in_background();
}

const Lease* ThreadLeases::current() const noexcept {
  if (!service_->is_ours()) {
    return nullptr;
  }
  const std::lock_guard lock{mutex_};
  const auto it = held_.find(std::this_thread::get_id());
  return it == held_.end() ? nullptr : &it->second.lease;
}

}  // namespace holdfast::client
