#include "engines/redis/unfair_strategy.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <memory>
#include <utility>
#include <variant>

#include "base/jitter.h"
#include "engine/batch.h"
#include "engines/redis/redis_wire.h"
#include "engines/redis/unfair_scripts.h"

namespace holdfast::engines {
namespace {

using namespace std::chrono_literals;

// How soon to ask again where nobody tells us.
constexpr base::Duration kShortestRetry = 50ms;
constexpr base::Duration kLongestRetry = 150ms;
// After we gave the lock back: time for others to take it.
constexpr base::Duration kStepAside = 10ms;

constexpr std::string_view kWaiters = "holdfast:waiters:";
constexpr std::string_view kRedissonChannel = "redisson_lock__channel:";

// Scripts are kept as views.
std::string_view joined(RedisStrategyKind kind, std::string_view frame) {
  static const std::string simple = std::string{kSimpleStore}.append(kUnfairFrame);
  static const std::string redisson = std::string{kRedissonStore}.append(kUnfairFrame);
  static const std::string simple_look = std::string{kSimpleStore}.append(kUnfairLookFrame);
  static const std::string redisson_look = std::string{kRedissonStore}.append(kUnfairLookFrame);
  if (kind == RedisStrategyKind::simple) {
    return frame == kUnfairFrame ? simple : simple_look;
  }
  return frame == kUnfairFrame ? redisson : redisson_look;
}

std::string channel_of(const std::string& key) {
  const bool tagged = key.find('{') != std::string::npos;
  return std::string{kRedissonChannel} + (tagged ? key : "{" + key + "}");
}

Capabilities unfair_row(std::string strategy, WakeUp wake_up) {
  Capabilities row;
  row.engine = "redis";
  row.strategy = std::move(strategy);
  row.token = TokenKind::none;
  row.fifo = false;
  row.wake_up = wake_up;
  row.shared = false;
  row.permits = false;
  row.clock = "store";
  return row;
}

// From what PTTL said, which counts the last millisecond as none; -1: for ever.
core::Duration time_left(std::int64_t milliseconds) {
  if (milliseconds < 0) {
    return kMaxTtl;
  }
  return std::max<core::Duration>(std::chrono::milliseconds{milliseconds}, 1us);
}

core::Duration micros_since(std::string_view text, core::Duration now) {
  std::int64_t since = 0;
  std::from_chars(text.data(), text.data() + text.size(), since);
  return std::max(now - std::chrono::microseconds{since}, core::Duration::zero());
}

}  // namespace

UnfairStrategy::UnfairStrategy(const RedisOptions& options, const engine::EngineOptions& client,
                               std::string_view script, std::string_view look)
    : RedisStrategy{options, client, script, look} {}

std::unique_ptr<UnfairStrategy> UnfairStrategy::make(const RedisOptions& options,
                                                     const engine::EngineOptions& client) {
  return std::unique_ptr<UnfairStrategy>{
      new UnfairStrategy{options, client, joined(options.strategy, kUnfairFrame),
                         joined(options.strategy, kUnfairLookFrame)}};
}

const Capabilities& UnfairStrategy::row(RedisStrategyKind kind) {
  static const Capabilities simple = unfair_row("simple", WakeUp::retry);
  static const Capabilities redisson = unfair_row("redisson", WakeUp::event_herd);
  return kind == RedisStrategyKind::simple ? simple : redisson;
}

std::optional<core::Outcome> UnfairStrategy::objection(const core::Command& command) const {
  const auto* acquire = std::get_if<core::Acquire>(&command.operation);
  const auto* requeue = std::get_if<core::Requeue>(&command.operation);
  const core::Acquire* asked = requeue != nullptr ? &requeue->next : acquire;
  if (std::holds_alternative<core::Resize>(command.operation) ||
      (asked != nullptr && asked->shape.mode != Mode::exclusive)) {
    return engine::failed({ErrorCode::unsupported,
                           "this strategy has exclusive locks alone; strategy=fair can do it",
                           std::nullopt});
  }
  return RedisStrategy::objection(command);
}

Error UnfairStrategy::failure(const core::Command&) const {
  return {ErrorCode::unsupported,
          "the holder is another program, which cannot be told; use --now to take it away",
          std::nullopt};
}

core::Operation UnfairStrategy::translate(const core::Command& command) const {
  if (const auto* poll = std::get_if<core::Poll>(&command.operation)) {
    const std::lock_guard lock{mutex_};
    if (const auto found = hopefuls_.find(poll->id); found != hopefuls_.end()) {
      return found->second.request;
    }
  }
  return command.operation;
}

core::Outcome UnfairStrategy::settle(const core::Command& command, core::Outcome outcome) {
  if (const auto* release = std::get_if<core::Release>(&command.operation)) {
    if (stop_hoping(release->id)) {
      outcome.status = core::Status::released;
    }
    return outcome;
  }
  const auto* requeue = std::get_if<core::Requeue>(&command.operation);
  if (requeue != nullptr) {
    outcome.gave_back = stop_hoping(requeue->id) || outcome.gave_back;
  }
  const core::Operation sent = translate(command);
  const auto* asked = requeue != nullptr ? &requeue->next : std::get_if<core::Acquire>(&sent);
  if (asked == nullptr) {
    return outcome;
  }
  if (outcome.status != core::Status::queued) {
    stop_hoping(asked->id);
    return outcome;
  }
  hope(command.name, *asked);
  if (outcome.gave_back) {
    outcome.look_again = base::random_between(kStepAside / 2, kStepAside);
  } else if (options().strategy == RedisStrategyKind::simple) {
    const base::Duration pause = base::random_between(kShortestRetry, kLongestRetry);
    outcome.look_again =
        outcome.look_again > base::Duration::zero() ? std::min(pause, outcome.look_again) : pause;
  }
  return outcome;
}

void UnfairStrategy::hope(const std::string& name, const core::Acquire& request) {
  const std::string channel = channel_of(options().key(name));
  bool first = false;
  {
    const std::lock_guard lock{mutex_};
    if (!hopefuls_.try_emplace(request.id, Hopeful{name, request}).second) {
      return;
    }
    if (options().strategy == RedisStrategyKind::redisson) {
      auto& ids = at_channel_[channel];
      ids.push_back(request.id);
      first = ids.size() == 1;
    }
  }
  if (first && bell_ != nullptr) {
    bell_->listen(channel);
  }
}

bool UnfairStrategy::stop_hoping(const core::RequestId& id) {
  std::string channel;
  bool last = false;
  {
    const std::lock_guard lock{mutex_};
    const auto found = hopefuls_.find(id);
    if (found == hopefuls_.end()) {
      return false;
    }
    channel = channel_of(options().key(found->second.name));
    hopefuls_.erase(found);
    if (const auto at = at_channel_.find(channel); at != at_channel_.end()) {
      std::erase(at->second, id);
      last = at->second.empty();
      if (last) {
        at_channel_.erase(at);
      }
    }
  }
  if (last && bell_ != nullptr) {
    bell_->stop_listening(channel);
  }
  return true;
}

void UnfairStrategy::listen_with(RedisBell& bell) {
  bell_ = &bell;
  bell.set_others([this](const std::string& channel) { return those_at(channel); });
}

std::vector<engine::Ring> UnfairStrategy::those_at(const std::string& channel) const {
  std::vector<engine::Ring> rings;
  const std::lock_guard lock{mutex_};
  if (const auto at = at_channel_.find(channel); at != at_channel_.end()) {
    for (const core::RequestId& id : at->second) {
      rings.push_back({.id = id, .token = 0});
    }
  }
  return rings;
}

bool UnfairStrategy::is_listed(const std::string& key) const {
  return !key.starts_with(kWaiters);
}

// {info, ttl in ms, {"since|who", ...}}; info is a flag, the session, the ttl,
// "|since|who"; "?" if somebody else holds it.
bool UnfairStrategy::read(const RespValue& lock, core::Duration now, LockInfo& info) const {
  if (lock.items.size() != 3) {
    return false;
  }
  const std::string_view text = lock.items[0].text;
  const std::size_t since = std::min(text.find('|', 17), text.size());
  if (!text.empty()) {
    HolderInfo holder;
    holder.expires_in = time_left(lock.items[1].integer);
    if (const std::size_t party = text.find('|', since + 1); party != std::string_view::npos) {
      holder.revoked = text.front() == 'r';
      holder.held_for = micros_since(text.substr(since + 1), now);
      holder.party = unpack_party(text.substr(party + 1));
    } else {
      holder.party.label = "another program";
    }
    info.holders.push_back(std::move(holder));
  }
  for (const RespValue& each : lock.items[2].items) {
    const std::string_view waiter = each.text;
    const std::size_t party = std::min(waiter.find('|'), waiter.size());
    info.queue.push_back({.party = unpack_party(waiter.substr(std::min(party + 1, waiter.size()))),
                          .waiting_for = micros_since(waiter, now)});
  }
  return !info.holders.empty() || !info.queue.empty();
}

}  // namespace holdfast::engines
