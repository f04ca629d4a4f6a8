// Many requests of one caller at once: they share batches.

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "client/blocked_callers.h"
#include "client/service.h"

namespace holdfast::client {

std::vector<Result<Lease>> Service::try_each(std::span<const Wish> wishes, base::Time deadline,
                                             const std::stop_token& stop) {
  if (wishes.empty()) {
    return {};
  }
  std::vector<std::shared_ptr<BlockedCaller>> callers;
  std::vector<core::ClaimId> claims;
  std::unique_lock lock{mutex_};
  active_ = true;
  const base::Time now = base::BootClock::now();
  for (const Wish& wish : wishes) {
    callers.push_back(std::make_shared<BlockedCaller>());
    claims.push_back(coordinator_.acquire(wish, callers.back(), now));
  }
  pump(lock, {stop.stop_possible() ? std::min(deadline, now + kStoppablePatience) : deadline},
       Lead::must, coordinator_.lane_of(wishes.back().name));
  std::optional<std::stop_callback<std::function<void()>>> watch;
  if (stop.stop_possible()) {
    watch.emplace(stop, [callers] {
      std::ranges::for_each(callers, [](const auto& caller) { caller->interrupt(); });
    });
  }
  std::vector<Result<Lease>> results;
  for (std::size_t i = 0; i < callers.size(); ++i) {
    auto& box = callers[i]->box;
    auto result = box.take_until(deadline);
    if (!result) {
      cancel(claims[i], box.interrupted() ? ErrorCode::cancelled : ErrorCode::timed_out);
      result = box.take();
    }
    if (*result) {
      results.emplace_back(make_lease(std::move(**result)));
    } else {
      results.emplace_back(tl::unexpected{std::move(result->error())});
    }
  }
  return results;
}

std::vector<Result<void>> Service::release_each(std::span<const core::ClaimId> claims) {
  std::vector<std::shared_ptr<BlockedAnswer>> callers;
  std::unique_lock lock{mutex_};
  const base::Time now = base::BootClock::now();
  for (const core::ClaimId claim : claims) {
    callers.push_back(std::make_shared<BlockedAnswer>());
    coordinator_.release(claim, callers.back(), now);
  }
  pump(lock, engine::Patience::for_outcomes, Lead::must);
  std::vector<Result<void>> results;
  for (const auto& caller : callers) {
    results.push_back(caller->box.take().map([](std::uint32_t) {}));
  }
  return results;
}

void Service::release_each_in_background(std::span<const core::ClaimId> claims) noexcept {
  std::unique_lock lock{mutex_};
  const base::Time now = base::BootClock::now();
  for (const core::ClaimId claim : claims) {
    coordinator_.release(claim, nullptr, now);
  }
  pump(lock, engine::Patience::none, Lead::may);
}

namespace {

// Calls `use` with the handles of one service after the other.
template <typename Use>
void by_service(std::vector<LeaseHandle*> handles, const Use& use) {
  while (!handles.empty()) {
    const auto rest = std::stable_partition(
        handles.begin(), handles.end(),
        [&](const LeaseHandle* handle) { return handle->shares_service_with(*handles.front()); });
    use(std::span{handles.begin(), rest});
    handles.erase(handles.begin(), rest);
  }
}

}  // namespace

std::vector<Result<void>> LeaseHandle::release_each(std::span<LeaseHandle* const> handles) {
  std::vector<LeaseHandle*> held;
  for (LeaseHandle* handle : handles) {
    if (handle->is_ours() && !handle->released_.exchange(true)) {
      held.push_back(handle);
    }
  }
  by_service(std::move(held), [](std::span<LeaseHandle*> together) {
    std::vector<core::ClaimId> claims;
    for (const LeaseHandle* handle : together) {
      claims.push_back(handle->state_->claim);
    }
    const auto results = together.front()->service_->release_each(claims);
    for (std::size_t i = 0; i < together.size(); ++i) {
      if (!results[i]) {
        together[i]->failure_ = std::make_unique<const Error>(results[i].error());
      }
    }
  });
  std::vector<Result<void>> results;
  for (LeaseHandle* handle : handles) {
    results.push_back(handle->release());  // done already: says how it went
  }
  return results;
}

void LeaseHandle::release_each_in_background(std::span<LeaseHandle* const> handles) noexcept {
  std::vector<LeaseHandle*> held;
  for (LeaseHandle* handle : handles) {
    if (handle->is_ours() && !handle->released_.exchange(true)) {
      held.push_back(handle);
    }
  }
  by_service(std::move(held), [](std::span<LeaseHandle*> together) {
    std::vector<core::ClaimId> claims;
    for (const LeaseHandle* handle : together) {
      claims.push_back(handle->state_->claim);
    }
    together.front()->service_->release_each_in_background(claims);
  });
}

}  // namespace holdfast::client
