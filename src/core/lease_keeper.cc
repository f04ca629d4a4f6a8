#include "core/lease_keeper.h"

#include <algorithm>
#include <bit>
#include <chrono>

namespace holdfast::core {
namespace {

// The grid is about this fraction of the interval: early enough to batch,
// seldom enough to cost nothing.
constexpr int kGridDivisor = 6;

Time on_grid(Time when, Duration interval) {
  const auto width = static_cast<std::uint64_t>(std::max<Duration::rep>(interval.count(), 1));
  const auto cell =
      static_cast<Duration::rep>(std::bit_floor(std::max<std::uint64_t>(width / kGridDivisor, 1)));
  const Duration::rep since = when.time_since_epoch().count();
  return Time{Duration{since - since % cell}};
}

}  // namespace

Time LeaseKeeper::deadline(Time sent, Duration lease_for) noexcept {
  return sent + lease_for - lease_for / kDriftDivisor - kFixedDrift;
}

void LeaseKeeper::refresh_after(TenancyId tenancy, Time sent, Duration interval) {
  refreshes_.set(tenancy, std::max(on_grid(sent + interval, interval), sent));
}

void LeaseKeeper::refresh_at(TenancyId tenancy, Time when) {
  refreshes_.set(tenancy, when);
}

void LeaseKeeper::stop_refreshing(TenancyId tenancy) {
  refreshes_.erase(tenancy);
}

void LeaseKeeper::warn(ClaimId claim, Time deadline, Duration grace) {
  warnings_.set(claim, deadline - grace);
}

void LeaseKeeper::stop_warning(ClaimId claim) {
  warnings_.erase(claim);
}

LeaseKeeper::Duties LeaseKeeper::due(Time now) {
  return {.refresh = refreshes_.take(now), .warn = warnings_.take(now)};
}

Time LeaseKeeper::next() const noexcept {
  return std::min(refreshes_.next(), warnings_.next());
}

void LeaseKeeper::Agenda::set(std::uint64_t key, Time when) {
  const auto [it, added] = dates_.try_emplace(key, when);
  if (!added) {
    order_.erase({it->second, key});
    it->second = when;
  }
  order_.emplace(when, key);
}

void LeaseKeeper::Agenda::erase(std::uint64_t key) {
  if (const auto it = dates_.find(key); it != dates_.end()) {
    order_.erase({it->second, key});
    dates_.erase(it);
  }
}

std::vector<std::uint64_t> LeaseKeeper::Agenda::take(Time now) {
  std::vector<std::uint64_t> keys;
  while (!order_.empty() && order_.begin()->first <= now) {
    keys.push_back(order_.begin()->second);
    dates_.erase(order_.begin()->second);
    order_.erase(order_.begin());
  }
  return keys;
}

Time LeaseKeeper::Agenda::next() const noexcept {
  return order_.empty() ? base::kNever : order_.begin()->first;
}

}  // namespace holdfast::core
