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

void ZookeeperRecipe::remember(const std::string& dir, const ZookeeperReply& node,
                               const LockNote& note) {
  const std::lock_guard lock{mutex_};
  known_.put(dir, node.czxid, node.version, note);
}

ZookeeperJoint::Seen ZookeeperRecipe::seen(const std::string& dir) {
  const std::lock_guard lock{mutex_};
  const auto* known = known_.find(dir);
  return known == nullptr ? ZookeeperJoint::Seen{} : known->seen();
}

// It was made, seen in the list and removed, in this order: if nobody else came or went
// since it was seen, the list has changed once.
void ZookeeperRecipe::note_release(const Place& place) {
  const std::lock_guard lock{mutex_};
  auto* known = known_.find(place.dir);
  if (known != nullptr && known->czxid == place.seen.czxid) {
    known->changes = place.seen.changes + 1;
    known->has_changes = true;
  }
}

// --- what the session tells

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
