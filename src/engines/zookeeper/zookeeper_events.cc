// What the session tells: of nodes that are watched, and of itself.
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"  // GCC's own code for coroutines

#include <algorithm>

#include "engines/zookeeper/zookeeper_recipe.h"

namespace holdfast::engines {

// Only for those who have a place, and no longer than that: what the library never calls,
// because its session is over, is not kept for ever.
void ZookeeperRecipe::watch_for(const std::string& path, const core::RequestId& id) {
  const std::lock_guard lock{mutex_};
  const auto found = places_.find(id);
  if (found == places_.end()) {
    return;
  }
  auto& ids = watchers_[path];
  if (std::ranges::find(ids, id) == ids.end()) {
    ids.push_back(id);
    found->second.watched.push_back(path);
  }
}

void ZookeeperRecipe::unwatch(const std::string& path, const core::RequestId& id) {
  const std::lock_guard lock{mutex_};
  drop_watch(path, id);
  const auto found = places_.find(id);
  if (found != places_.end()) {
    std::erase(found->second.watched, path);
    found->second.ahead.reset();  // another look may have relied on that watch
  }
}

void ZookeeperRecipe::drop_watch(const std::string& path, const core::RequestId& id) {
  const auto found = watchers_.find(path);
  if (found != watchers_.end()) {
    std::erase(found->second, id);
    if (found->second.empty()) {
      watchers_.erase(found);
    }
  }
}

std::size_t ZookeeperRecipe::watches() {
  const std::lock_guard lock{mutex_};
  return watchers_.size();
}

void ZookeeperRecipe::on_changed(const std::string& path) {
  changes_.fetch_add(1);
  std::vector<core::RequestId> ids;
  {
    const std::lock_guard lock{mutex_};
    if (auto found = watchers_.extract(path)) {
      ids = std::move(found.mapped());
    }
    for (const core::RequestId& id : ids) {
      const auto place = places_.find(id);
      if (place != places_.end()) {
        std::erase(place->second.watched, path);
        place->second.ahead.reset();
      }
    }
  }
  for (const core::RequestId& id : ids) {
    follow_up(id);
  }
}

// Somebody in front of it went: perhaps it is its turn.
engine::Detached ZookeeperRecipe::follow_up(core::RequestId id) {
  const auto self = weak_from_this().lock();
  const auto place = find(id);
  if (!place || !self) {
    co_return;
  }
  if (place->held || options_.strategy == ZookeeperOptions::Strategy::simple) {
    bell_.ring({.id = id, .token = 0});
    co_return;
  }
  const core::Outcome outcome = co_await look(id, Beat::no);
  switch (outcome.status) {
    case core::Status::granted:
      bell_.ring({.id = id, .token = outcome.token});
      break;
    case core::Status::queued:
      break;
    default:
      bell_.ring({.id = id, .token = 0});
  }
}

engine::Detached ZookeeperRecipe::watch_own(core::RequestId id) {
  const auto self = weak_from_this().lock();
  const auto place = find(id);
  if (!place || !self) {
    co_return;
  }
  const std::string path = place->leases.empty() ? place->path : place->leases.front();
  watch_for(path, id);
  const ZookeeperReply got = co_await session_->get(path, true);
  if (!got.ok()) {
    unwatch(path, id);
  }
  if (!got.ok() || got.version != 0) {
    bell_.ring({.id = id, .token = 0});
  }
}

void ZookeeperRecipe::on_connected() {
  changes_.fetch_add(1);
  std::vector<std::pair<base::Time, std::coroutine_handle<>>> ready;
  {
    const std::lock_guard lock{mutex_};
    ready.swap(parked_);
    for (auto& [id, place] : places_) {
      place.ahead.reset();  // its next look is at the queue
    }
  }
  for (const auto& [until, waiter] : ready) {
    waiter.resume();
  }
}

// The nodes went with the session: whoever had one must line up anew.
void ZookeeperRecipe::on_expired() {
  changes_.fetch_add(1);
  std::unordered_map<core::RequestId, Place> gone;
  {
    const std::lock_guard lock{mutex_};
    gone.swap(places_);
    agenda_.clear();
    watchers_.clear();
  }
  wake_.notify_all();
  for (const auto& [id, place] : gone) {
    bell_.ring({.id = id, .token = 0});
  }
}

// What was connected may be lost again before whoever waited for it has gone on.
engine::Task<bool> ZookeeperRecipe::connection(base::Time until) {
  while (!session_->is_connected() && !is_stopping() && base::BootClock::now() < until) {
    co_await Parking{*this, until};
  }
  co_return session_->is_connected();
}

bool ZookeeperRecipe::was_not_sent(const core::Outcome& outcome) {
  if (outcome.status != core::Status::failed || !outcome.error ||
      !zookeeper_did_not_send(*outcome.error)) {
    return false;
  }
  session_->look_again();
  wake_.notify_all();
  return true;
}

bool ZookeeperRecipe::is_stopping() {
  const std::lock_guard lock{mutex_};
  return stopping_;
}

bool ZookeeperRecipe::park(std::coroutine_handle<> waiter, base::Time until) {
  const std::lock_guard lock{mutex_};
  if (session_->is_connected() || stopping_ || until <= base::BootClock::now()) {
    return false;
  }
  parked_.emplace_back(until, waiter);
  wake_.notify_all();
  return true;
}

}  // namespace holdfast::engines
