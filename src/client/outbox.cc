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

bool asks_for(const Errand& errand, core::TenancyId tenancy) {
  return errand.tenancy == tenancy &&
         (std::holds_alternative<core::Acquire>(errand.command.operation) ||
          std::holds_alternative<core::Requeue>(errand.command.operation));
}

}  // namespace

Outbox::Lane& Outbox::lane_of(const Errand& errand) {
  const std::size_t hash = std::hash<std::string_view>{}(errand.command.name);
  return lanes_[hash % lanes_.size()];
}

void Outbox::push(Errand errand) {
  Lane& lane = lane_of(errand);
  lane.queue.push_back(std::move(errand));
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
  if (!lane.on_its_way.empty() || lane.queue.empty()) {
    return {};
  }
  const std::size_t count = std::min(lane.queue.size(), kMaxBatch);
  lane.on_its_way.reserve(count);
  lane.commands.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    Errand& errand = lane.queue.front();
    errand.sent = now;
    lane.commands.push_back(std::move(errand.command));
    lane.on_its_way.push_back(std::move(errand));
    lane.queue.pop_front();
  }
  return lane.commands;
}

std::vector<Errand> Outbox::finish(std::size_t index) {
  Lane& lane = lanes_[index];
  std::vector<Errand> errands = std::exchange(lane.on_its_way, {});
  for (std::size_t i = 0; i < errands.size(); ++i) {
    errands[i].command = std::move(lane.commands[i]);
  }
  lane.commands.clear();
  return errands;
}

bool Outbox::empty() const noexcept {
  return retries_.empty() && std::ranges::all_of(lanes_, [](const Lane& lane) {
           return lane.queue.empty() && lane.on_its_way.empty();
         });
}

}  // namespace holdfast::client
