#pragma once

#include <holdfast/lease.h>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "base/time.h"
#include "core/local_queue.h"

namespace holdfast::client {

// What a grant looks like from the caller's side. Shared by the coordinator,
// which writes it under the client's lock, and by Lease objects, which read it
// from any thread.
class LeaseState {
 public:
  // A fence of 0 is none.
  LeaseState(std::string lock, core::ClaimId granted_to, std::uint64_t fence)
      : name{std::move(lock)}, claim{granted_to}, token_{fence} {}
  LeaseState(const LeaseState&) = delete;
  LeaseState& operator=(const LeaseState&) = delete;
  ~LeaseState() { delete lost_.load(); }

  const std::string name;
  const core::ClaimId claim;

  std::optional<std::uint64_t> token() const noexcept {
    const std::uint64_t token = token_.load(std::memory_order_acquire);
    return token == 0 ? std::nullopt : std::optional{token};
  }
  // An upgrade brings another one.
  void set_token(std::uint64_t token) noexcept { token_.store(token, std::memory_order_release); }

  base::Time deadline() const noexcept {
    return base::Time{base::Duration{deadline_.load(std::memory_order_acquire)}};
  }
  void set_deadline(base::Time deadline) noexcept {
    deadline_.store(deadline.time_since_epoch().count(), std::memory_order_release);
  }

  std::optional<LossReason> loss() const noexcept {
    const int value = loss_.load(std::memory_order_acquire);
    return value < 0 ? std::nullopt : std::optional{static_cast<LossReason>(value)};
  }
  // True the first time. The stop is requested later, outside all locks.
  bool set_loss(LossReason reason) noexcept {
    int none = -1;
    return loss_.compare_exchange_strong(none, static_cast<int>(reason));
  }

  std::stop_token lost() const noexcept { return lost_source().get_token(); }
  void request_stop() noexcept { lost_source().request_stop(); }

 private:
  // Made when first asked for: most leases are neither watched nor lost.
  std::stop_source& lost_source() const noexcept {
    std::stop_source* source = lost_.load(std::memory_order_acquire);
    if (source == nullptr) {
      auto made = std::make_unique<std::stop_source>();
      if (lost_.compare_exchange_strong(source, made.get())) {
        source = made.release();
      }
    }
    return *source;
  }

  std::atomic<std::uint64_t> token_;  // 0: none
  std::atomic<base::Duration::rep> deadline_{0};
  std::atomic<int> loss_{-1};
  mutable std::atomic<std::stop_source*> lost_{nullptr};
};

}  // namespace holdfast::client
