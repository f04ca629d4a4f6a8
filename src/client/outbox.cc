#include "client/outbox.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <string_view>
#include <utility>
#include <variant>

namespace holdfast::client {
namespace {

// Bounds how long one batch keeps the others waiting.
constexpr std::size_t kMaxBatch = 1024;
constexpr std::size_t kUpkeepShare = 256;
// So many together are company enough: more of them are better served beside each other.
constexpr std::size_t kCompany = 16;

bool is_upkeep(const Errand& errand) {
  const auto* poll = std::get_if<core::Poll>(&errand.command.operation);
  return std::holds_alternative<core::Renew>(errand.command.operation) ||
         (poll != nullptr && poll->heartbeat);
}

bool asks_for(const Errand& errand, core::TenancyId tenancy) {
  return errand.tenancy == tenancy &&
         (std::holds_alternative<core::Acquire>(errand.command.operation) ||
          std::holds_alternative<core::Requeue>(errand.command.operation) ||
          std::holds_alternative<core::Transfer>(errand.command.operation));
}

}  // namespace

std::size_t Outbox::lane_of(const std::string& name) const {
  if (lanes_.size() == 1) {
    return 0;
  }
  const auto it = pins_.find(name);
  return it == pins_.end() ? free_lane() : it->second.lane;
}

std::size_t Outbox::free_lane() const noexcept {
  const auto queued = [](const Lane& lane) { return lane.queue.size() + lane.upkeep.size(); };
  const auto rank = [&](const Lane& lane) {
    const std::size_t load = queued(lane);
    return load < kCompany ? kMaxBatch + load : kMaxBatch - std::min(load, kMaxBatch);
  };
  const auto best = std::ranges::max_element(lanes_, [&](const Lane& a, const Lane& b) {
    const bool a_free = a.on_its_way.empty();
    const bool b_free = b.on_its_way.empty();
    if (a_free != b_free) {
      return b_free;
    }
    return a_free ? rank(a) < rank(b) : queued(a) > queued(b);
  });
  return static_cast<std::size_t>(best - lanes_.begin());
}

Outbox::Lane& Outbox::pin(const Errand& errand) {
  if (lanes_.size() == 1) {
    return lanes_.front();
  }
  const auto [it, fresh] = pins_.try_emplace(errand.command.name);
  if (fresh) {
    it->second.lane = is_upkeep(errand) ? 0 : free_lane();
  }
  ++it->second.commands;
  return lanes_[it->second.lane];
}

void Outbox::unpin(const std::string& name) {
  const auto it = pins_.find(name);
  if (it != pins_.end() && --it->second.commands == 0) {
    pins_.erase(it);
  }
}

void Outbox::push(Errand errand) {
  hurry_releases(errand);
  Lane& lane = pin(errand);
  (is_upkeep(errand) ? lane.upkeep : lane.queue).push_back(std::move(errand));
}

// A new request for a name goes behind its release, also one that failed and
// waits to be repeated: nobody shall find the lock taken by himself.
void Outbox::hurry_releases(const Errand& errand) {
  if (!std::holds_alternative<core::Acquire>(errand.command.operation)) {
    return;
  }
  for (auto it = retries_.begin(); it != retries_.end();) {
    const bool frees = it->second.command.name == errand.command.name &&
                       std::holds_alternative<core::Release>(it->second.command.operation);
    if (frees) {
      pin(it->second).queue.push_back(std::move(it->second));
    }
    it = frees ? retries_.erase(it) : std::next(it);
  }
}

void Outbox::push_later(Errand errand, core::Time when) {
  retries_.emplace(when, std::move(errand));
}

void Outbox::wake(core::Time now) {
  while (!retries_.empty() && retries_.begin()->first <= now) {
    push(std::move(retries_.begin()->second));
    retries_.erase(retries_.begin());
  }
}

core::Time Outbox::next_retry() const noexcept {
  return retries_.empty() ? base::kNever : retries_.begin()->first;
}

std::optional<Errand> Outbox::take_back(core::TenancyId tenancy) {
  for (Lane& lane : lanes_) {
    const auto it = std::ranges::find_if(
        lane.queue, [tenancy](const Errand& errand) { return asks_for(errand, tenancy); });
    if (it != lane.queue.end()) {
      Errand errand = std::move(*it);
      lane.queue.erase(it);
      unpin(errand.command.name);
      return errand;
    }
  }
  const auto it = std::ranges::find_if(
      retries_, [tenancy](const auto& retry) { return asks_for(retry.second, tenancy); });
  if (it == retries_.end()) {
    return std::nullopt;
  }
  Errand errand = std::move(it->second);
  retries_.erase(it);
  return errand;
}

std::span<const core::Command> Outbox::start(std::size_t index, core::Time now) {
  Lane& lane = lanes_[index];
  if (!lane.on_its_way.empty()) {
    return {};
  }
  const std::size_t upkeep = std::min(lane.upkeep.size(), kUpkeepShare);
  send(lane, lane.queue, kMaxBatch - upkeep, now);
  send(lane, lane.upkeep, kMaxBatch, now);
  return lane.commands;
}

// Moves errands onto their way until the batch has `up_to` of them.
void Outbox::send(Lane& lane, std::deque<Errand>& from, std::size_t up_to, core::Time now) {
  while (!from.empty() && lane.on_its_way.size() < up_to) {
    Errand& errand = from.front();
    errand.sent = now;
    lane.commands.push_back(std::move(errand.command));
    lane.on_its_way.push_back(std::move(errand));
    from.pop_front();
  }
}

std::vector<Errand> Outbox::finish(std::size_t index) {
  Lane& lane = lanes_[index];
  std::vector<Errand> errands = std::exchange(lane.on_its_way, {});
  for (std::size_t i = 0; i < errands.size(); ++i) {
    errands[i].command = std::move(lane.commands[i]);
    unpin(errands[i].command.name);
  }
  lane.commands.clear();
  return errands;
}

bool Outbox::can_start() const noexcept {
  return std::ranges::any_of(lanes_, [](const Lane& lane) {
    return lane.on_its_way.empty() && !(lane.queue.empty() && lane.upkeep.empty());
  });
}

bool Outbox::empty() const noexcept {
  return retries_.empty() && std::ranges::all_of(lanes_, [](const Lane& lane) {
           return lane.queue.empty() && lane.upkeep.empty() && lane.on_its_way.empty();
         });
}

}  // namespace holdfast::client
