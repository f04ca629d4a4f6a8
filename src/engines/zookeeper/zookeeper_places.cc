// What this process has: its places in the tables, and the thread that ends
// those whose time is up.
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"  // GCC's own code for coroutines

#include <algorithm>

#include "engine/batch.h"
#include "engines/zookeeper/zookeeper_recipe.h"

namespace holdfast::engines {
namespace {

constexpr Duration kRetry = std::chrono::milliseconds{500};
// Only what is held for long is watched for a revocation: it is a read more.
constexpr Duration kGuardAfter = std::chrono::milliseconds{200};

}  // namespace

std::optional<std::uint64_t> zookeeper_token(std::int64_t czxid) {
  const auto number = static_cast<std::uint64_t>(czxid);
  if (czxid <= 0 || number > (core::kMaxToken >> kTokenBits) - 1) {
    return std::nullopt;
  }
  return number << kTokenBits;
}

core::Outcome zookeeper_failure(const ZookeeperReply& reply) {
  return {.status = core::Status::failed, .error = reply.error()};
}

core::Outcome zookeeper_not_recalled() {
  return engine::failed(
      {ErrorCode::outcome_unknown, "zookeeper: the connection was lost", std::nullopt});
}

core::Outcome zookeeper_out_of_tokens() {
  return engine::failed({ErrorCode::unavailable,
                         "this ensemble has used up its tokens (its leaders changed too often)",
                         std::nullopt});
}

ZookeeperRecipe::ZookeeperRecipe(ZookeeperOptions options, engine::EngineOptions client)
    : options_{std::move(options)}, client_{std::move(client)} {
  session_ = std::make_unique<ZookeeperSession>(
      options_, ZookeeperSession::Events{.changed = [this](const auto& path) { on_changed(path); },
                                         .connected = [this] { on_connected(); },
                                         .disconnected =
                                             [this](bool expired) {
                                               if (expired) {
                                                 on_expired();
                                               }
                                               wake_.notify_all();
                                             }});
  joint_ = std::make_unique<ZookeeperJoint>(*session_);
  caretaker_ = std::thread{[this] { run(); }};
}

ZookeeperRecipe::~ZookeeperRecipe() {
  stop();
}

void ZookeeperRecipe::stop() {
  {
    const std::lock_guard lock{mutex_};
    stopping_ = true;
  }
  wake_.notify_all();
  if (caretaker_.joinable()) {
    caretaker_.join();
  }
}

// --- the tables

std::optional<ZookeeperRecipe::Place> ZookeeperRecipe::find(const core::RequestId& id) {
  const std::lock_guard lock{mutex_};
  const auto found = places_.find(id);
  return found == places_.end() ? std::nullopt : std::optional{found->second};
}

void ZookeeperRecipe::put(const core::RequestId& id, Place place) {
  const std::lock_guard lock{mutex_};
  enter(id, std::move(place));
}

void ZookeeperRecipe::enter(const core::RequestId& id, Place place) {
  place.due = ends(place);
  const base::Time due = place.due;
  if (!places_.try_emplace(id, std::move(place)).second) {
    return;
  }
  const auto date = agenda_.emplace(due, id).first;
  if (date == agenda_.begin()) {
    wake_.notify_all();
  }
}

void ZookeeperRecipe::forget(const core::RequestId& id) {
  const std::lock_guard lock{mutex_};
  leave_table(id);
}

void ZookeeperRecipe::leave_table(const core::RequestId& id) {
  const auto found = places_.find(id);
  if (found != places_.end()) {
    for (const std::string& path : found->second.watched) {
      drop_watch(path, id);
    }
    agenda_.erase({found->second.due, id});
    places_.erase(found);
  }
}

bool ZookeeperRecipe::succeed(const core::RequestId& before, const core::RequestId& id,
                              Place place) {
  const std::lock_guard lock{mutex_};
  const auto found = places_.find(before);
  if (found == places_.end() || found->second.ending || places_.contains(id)) {
    return false;
  }
  leave_table(before);
  enter(id, std::move(place));
  return true;
}

std::vector<std::string> ZookeeperRecipe::title(const Place& place) {
  std::vector<std::string> paths = place.leases;
  if (paths.empty()) {
    paths.push_back(place.path);
  }
  if (!place.badge.empty()) {
    paths.push_back(place.badge);
  }
  return paths;
}

base::Time ZookeeperRecipe::ends(const Place& place) const {
  return place.beat + (place.held ? session_->negotiated() : place.window);
}

// What is left of a grant is counted from the last proof of life, and a look
// at it is none.
core::Outcome ZookeeperRecipe::granted(const core::RequestId& id, base::Time started) {
  core::Outcome outcome{.status = core::Status::not_held};
  const std::lock_guard lock{mutex_};
  const auto found = places_.find(id);
  if (found == places_.end() || found->second.ending) {
    return outcome;
  }
  Place& place = found->second;
  if (!std::exchange(place.held, true)) {
    place.beat = std::max(place.beat, started);
    agenda_.erase({place.due, id});
    place.due = std::min(ends(place), started + kGuardAfter);
    const auto date = agenda_.emplace(place.due, id).first;
    if (date == agenda_.begin()) {
      wake_.notify_all();
    }
  }
  const Duration left = place.beat + lease() - started;
  if (left > Duration::zero()) {
    outcome = {.status = core::Status::granted, .token = place.token, .lease_for = left};
  }
  return outcome;
}

core::Outcome ZookeeperRecipe::queued(const core::RequestId& id, base::Time beat,
                                      std::uint32_t ahead) {
  core::Outcome outcome{.status = core::Status::not_held};
  change(id, [&](Place& place) {
    if (!place.ending) {
      place.beat = std::max(place.beat, beat);
      outcome = {.status = core::Status::queued, .ahead = ahead};
    }
  });
  return outcome;
}

// --- the thread

void ZookeeperRecipe::run() {
  std::unique_lock lock{mutex_};
  while (!stopping_) {
    if (session_->is_given_up(base::BootClock::now())) {
      lock.unlock();
      on_expired();
      session_->reopen();
      lock.lock();
      continue;
    }
    const base::Time now = base::BootClock::now();
    std::vector<std::coroutine_handle<>> late;
    std::erase_if(parked_, [&](const auto& each) {
      const bool is_late = each.first <= now || session_->is_connected();
      if (is_late) {
        late.push_back(each.second);
      }
      return is_late;
    });
    const Due due = take_due(now);
    if (!late.empty() || !due.over.empty() || !due.to_guard.empty()) {
      lock.unlock();
      std::ranges::for_each(late, [](auto waiter) { waiter.resume(); });
      std::ranges::for_each(due.over, [this](const auto& id) { give_up(id); });
      std::ranges::for_each(due.to_guard, [this](const auto& id) { watch_own(id); });
      lock.lock();
      continue;
    }
    wait(lock, now);
  }
  auto parked = std::exchange(parked_, {});
  lock.unlock();
  std::ranges::for_each(parked, [](const auto& each) { each.second.resume(); });
}

void ZookeeperRecipe::wait(std::unique_lock<std::mutex>& lock, base::Time now) {
  base::Time until = agenda_.empty() ? base::kNever : agenda_.begin()->first;
  for (const auto& [deadline, waiter] : parked_) {
    until = std::min(until, deadline);
  }
  if (!session_->is_connected()) {
    until = std::min(until, now + kRetry);
  }
  if (until == base::kNever) {
    wake_.wait(lock);
  } else {
    wake_.wait_for(lock, until - now);
  }
}

ZookeeperRecipe::Due ZookeeperRecipe::take_due(base::Time now) {
  Due due;
  while (!agenda_.empty() && agenda_.begin()->first <= now) {
    const core::RequestId id = agenda_.begin()->second;
    agenda_.erase(agenda_.begin());
    Place& place = places_.at(id);
    place.due = ends(place);
    if (place.due <= now) {
      place.ending = true;
      place.due = now + kRetry;  // until it is gone
      due.over.push_back(id);
    } else if (place.held && !std::exchange(place.guarded, true)) {
      due.to_guard.push_back(id);
    }
    agenda_.emplace(place.due, id);
  }
  return due;
}

engine::Detached ZookeeperRecipe::give_up(core::RequestId id) {
  const auto self = weak_from_this().lock();
  if (self) {
    co_await release(id);
  }
}

core::Outcome ZookeeperRecipe::abandon(const core::RequestId& id, Place place) {
  place.ending = true;
  place.beat = {};  // its time is up
  put(id, std::move(place));
  return engine::plain(core::Status::not_held);
}

}  // namespace holdfast::engines
