#include "core/lease_keeper.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <functional>

namespace holdfast::core {
namespace {

// The grid is about this fraction of the interval: early enough to batch,
// seldom enough to cost nothing.
constexpr int kGridDivisor = 6;

// Dates that may stay behind in a small agenda.
constexpr std::size_t kMostLeftBehind = 64;

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
    if (it->second == when) {
      return;
    }
    it->second = when;
  }
  heap_.emplace_back(when, key);
  std::ranges::push_heap(heap_, std::greater{});
  tidy();
}

void LeaseKeeper::Agenda::erase(std::uint64_t key) {
  if (dates_.erase(key) > 0) {
    tidy();
  }
}

std::vector<std::uint64_t> LeaseKeeper::Agenda::take(Time now) {
  std::vector<std::uint64_t> keys;
  while (!heap_.empty() && heap_.front().first <= now) {
    if (stands(heap_.front())) {
      keys.push_back(heap_.front().second);
      dates_.erase(heap_.front().second);
    }
    pop();
  }
  tidy();
  return keys;
}

Time LeaseKeeper::Agenda::next() const noexcept {
  return heap_.empty() ? base::kNever : heap_.front().first;
}

bool LeaseKeeper::Agenda::stands(const Entry& entry) const {
  const auto it = dates_.find(entry.second);
  return it != dates_.end() && it->second == entry.first;
}

void LeaseKeeper::Agenda::pop() {
  std::ranges::pop_heap(heap_, std::greater{});
  heap_.pop_back();
}

void LeaseKeeper::Agenda::tidy() {
  if (heap_.size() > dates_.size() + dates_.size() / 4 + kMostLeftBehind) {
    heap_ = {};  // gives its memory back as well
    for (const auto& [key, when] : dates_) {
      heap_.emplace_back(when, key);
    }
    std::ranges::make_heap(heap_, std::greater{});
  }
  while (!heap_.empty() && !stands(heap_.front())) {
    pop();
  }
}

}  // namespace holdfast::core
