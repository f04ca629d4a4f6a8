// What this process has: its places in the tables, and the thread that keeps
// leases alive and ends places whose time is up.
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"  // GCC's own code for coroutines

#include <algorithm>

#include "engines/etcd/etcd_recipe.h"

namespace holdfast::engines {
namespace {

constexpr Duration kRetry = std::chrono::milliseconds{500};
// Only what is held for long is watched for a revocation: it is a request more.
constexpr Duration kGuardAfter = std::chrono::milliseconds{200};
constexpr std::size_t kMostGuarded = 1000;  // the others learn of it by their renewal
constexpr std::string_view kRevokeLease = "/etcdserverpb.Lease/LeaseRevoke";
constexpr std::string_view kTransact = "/etcdserverpb.KV/Txn";

}  // namespace

EtcdRecipe::EtcdRecipe(EtcdOptions options, engine::EngineOptions client)
    : options_{std::move(options)}, client_{std::move(client)} {
  session_ = std::make_unique<EtcdSession>(
      options_, EtcdSession::Events{
                    .changed = [this](auto watch, const auto& ended) { on_changed(watch, ended); },
                    .connected = [this] { on_connected(); }});
  joint_ = std::make_unique<EtcdJoint>(
      *session_, options_.has_identity ? EtcdJoint::Company::no : EtcdJoint::Company::yes);
  caretaker_ = std::thread{[this] { run(); }};
}

EtcdRecipe::~EtcdRecipe() {
  stop();
}

void EtcdRecipe::stop() {
  {
    const std::lock_guard lock{mutex_};
    stopping_ = true;
  }
  wake_.notify_all();
  if (caretaker_.joinable()) {
    caretaker_.join();
    const auto told = std::make_shared<std::promise<void>>();
    const auto answered = told->get_future();
    give_back_leases(told);
    answered.wait_for(kDrainTime);
  }
  session_->stop();
}

// Whatever waits goes with its lease, at once and not after its ttl. What is
// held may have been given away, to somebody who has not taken it yet.
engine::Detached EtcdRecipe::give_back_leases(std::shared_ptr<std::promise<void>> told) {
  std::vector<std::int64_t> all;
  std::vector<core::RequestId> waiting;
  {
    const std::lock_guard lock{mutex_};
    std::set<std::int64_t> kept;
    for (const auto& [id, place] : places_) {
      if (place.held) {
        kept.insert(place.lease);
      }
    }
    for (const auto& [id, place] : places_) {
      if (!place.held && kept.contains(place.lease)) {
        waiting.push_back(id);
      }
    }
    for (const auto& [id, lease] : leases_) {
      if (!kept.contains(id)) {
        all.push_back(id);
      }
    }
  }
  for (const core::RequestId& id : waiting) {
    co_await release(id);
  }
  for (const std::int64_t lease : all) {
    co_await session_->call(kRevokeLease, encode_lease(lease));
  }
  told->set_value();
}

// --- the tables

std::optional<EtcdRecipe::Place> EtcdRecipe::find(const core::RequestId& id) {
  const std::lock_guard lock{mutex_};
  const auto found = places_.find(id);
  return found == places_.end() ? std::nullopt : std::optional{found->second};
}

void EtcdRecipe::put(const core::RequestId& id, Place place) {
  const std::lock_guard lock{mutex_};
  place.due = ends(place);
  const base::Time due = place.due;
  const auto lease = leases_.find(place.lease);
  if (places_.try_emplace(id, std::move(place)).second) {
    if (lease != leases_.end()) {
      ++lease->second.users;
    }
    const auto date = agenda_.emplace(due, id).first;
    if (date == agenda_.begin() || places_.size() == 1) {
      wake_.notify_all();
    }
  }
}

void EtcdRecipe::forget(const core::RequestId& id) {
  std::int64_t watch = 0;
  {
    const std::lock_guard lock{mutex_};
    const auto found = places_.find(id);
    if (found == places_.end()) {
      return;
    }
    watch = found->second.watch;
    agenda_.erase({found->second.due, id});
    const auto lease = leases_.find(found->second.lease);
    if (lease != leases_.end()) {
      --lease->second.users;
    }
    if (found->second.heir_of) {
      heirs_.erase(*found->second.heir_of);
    }
    places_.erase(found);
  }
  end_watch(watch);
}

// What is left of a grant is counted from what last kept it alive, and never
// beyond its lease; a look prolongs nothing.
core::Outcome EtcdRecipe::granted(const core::RequestId& id, base::Time started) {
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
  const auto lease = leases_.find(place.lease);
  const base::Time end = lease == leases_.end()
                             ? started
                             : std::min(place.beat + place.ttl, lease->second.alive_until);
  if (end > started) {
    outcome = {.status = core::Status::granted, .token = place.token, .lease_for = end - started};
  }
  return outcome;
}

core::Outcome EtcdRecipe::queued(const core::RequestId& id, base::Time beat, std::uint32_t ahead) {
  core::Outcome outcome{.status = core::Status::not_held};
  change(id, [&](Place& place) {
    if (!place.ending) {
      place.beat = std::max(place.beat, beat);
      outcome = {.status = core::Status::queued, .ahead = ahead};
    }
  });
  return outcome;
}

// --- watches

std::int64_t EtcdRecipe::new_watch(const core::RequestId& id) {
  const std::lock_guard lock{mutex_};
  watches_.emplace(next_watch_, id);
  return next_watch_++;
}

void EtcdRecipe::end_watch(std::int64_t watch) {
  if (watch == 0) {
    return;
  }
  {
    const std::lock_guard lock{mutex_};
    watches_.erase(watch);
  }
  session_->unwatch(watch);
}

void EtcdRecipe::end_if_unwanted(std::int64_t watch, const core::RequestId& id) {
  const auto place = find(id);
  if (!place || place->watch != watch) {
    end_watch(watch);
  }
}

// What it watched saw all that ended in this line, in its order: the only one in front of it
// did, and it did not.
bool EtcdRecipe::is_next(const Place& place, const std::vector<EtcdKey>& ended) {
  const auto gone = [&](const std::string& key) {
    return std::ranges::any_of(ended, [&](const EtcdKey& each) {
      return each.key == key && each.mod_revision > place.next_at;
    });
  };
  return place.next_at != 0 && gone(place.blocker) && !gone(place.key);
}

void EtcdRecipe::on_changed(std::int64_t watch, const std::vector<EtcdKey>& ended) {
  changes_.fetch_add(1);
  std::optional<core::RequestId> id;
  bool next = false;
  {
    const std::lock_guard lock{mutex_};
    if (const auto found = watches_.extract(watch)) {
      id = found.mapped();
      const auto place = places_.find(*id);
      if (place != places_.end() && place->second.watch == watch) {
        place->second.watch = 0;
        next = is_next(place->second, ended);
        place->second.next_at = 0;
      }
    }
  }
  if (id) {
    follow_up(*id, next);
  }
}

// Whatever was watched is not any more: look at all of it.
void EtcdRecipe::on_connected() {
  changes_.fetch_add(1);
  std::vector<core::RequestId> all;
  {
    const std::lock_guard lock{mutex_};
    watches_.clear();
    for (auto& [id, place] : places_) {
      place.next_at = 0;
      if (std::exchange(place.watch, 0) != 0) {
        all.push_back(id);
      }
    }
  }
  for (const core::RequestId& id : all) {
    follow_up(id, false);
  }
}

// Somebody in front of it went, or its own key changed.
engine::Detached EtcdRecipe::follow_up(core::RequestId id, bool is_next) {
  const auto place = find(id);
  if (!place) {
    co_return;
  }
  if (place->held) {
    bell_.ring({.id = id, .token = place->upgrading ? place->token : 0});
    if (!place->upgrading) {
      watch_own(id);
    }
    co_return;
  }
  core::Outcome outcome;
  const base::Time now = base::BootClock::now();
  if (is_next && alive_until(place->lease) >= now + place->window) {
    outcome = granted(id, now);
  } else {
    outcome = co_await look(id, Beat::no);
  }
  if (outcome.status == core::Status::granted) {
    bell_.ring({.id = id, .token = outcome.token});
  } else if (outcome.status != core::Status::queued) {
    bell_.ring({.id = id, .token = 0});
  }
}

engine::Detached EtcdRecipe::watch_own(core::RequestId id) {
  const auto place = find(id);
  if (!place || place->watch != 0) {
    co_return;
  }
  const std::int64_t watch = new_watch(id);
  change(id, [&](Place& found) { found.watch = watch; });
  const EtcdRequest::Reply reply = co_await session_->watch(watch, place->key);
  if (!reply.ok()) {
    change(id, [&](Place& found) { found.watch = found.watch == watch ? 0 : found.watch; });
  } else {
    end_if_unwanted(watch, id);
    bell_.ring({.id = id, .token = 0});  // it may have happened before
  }
}

engine::Detached EtcdRecipe::give_up(core::RequestId id) {
  co_await release(id);
}

engine::Detached EtcdRecipe::remove_ghost(EtcdKey key) {
  EtcdTransaction transaction;
  transaction.compares.push_back(
      {.key = key.key, .target = EtcdCompare::Target::mod, .revision = key.mod_revision});
  transaction.success.push_back({.what = EtcdOperation::What::remove, .key = std::move(key.key)});
  co_await session_->call(kTransact, encode(transaction));
}

// --- the thread

void EtcdRecipe::run() {
  std::unique_lock lock{mutex_};
  while (!stopping_) {
    const base::Time now = base::BootClock::now();
    base::Time next = base::kNever;
    const auto keep = leases_to_keep(now, next);
    const Due due = take_due(now);
    if (!agenda_.empty()) {
      next = std::min(next, agenda_.begin()->first);
    }
    if (!keep.empty() || !due.over.empty() || !due.to_guard.empty()) {
      lock.unlock();
      std::ranges::for_each(keep, [this](std::int64_t lease) { keep_in_background(lease); });
      std::ranges::for_each(due.over, [this](const auto& id) { give_up(id); });
      std::ranges::for_each(due.to_guard, [this](const auto& id) { watch_own(id); });
      lock.lock();
    }
    if (stopping_) {
      break;
    }
    if (next == base::kNever) {
      wake_.wait(lock);
    } else {
      wake_.wait_for(lock, std::max<Duration>(next - base::BootClock::now(), Duration::zero()));
    }
  }
}

EtcdRecipe::Due EtcdRecipe::take_due(base::Time now) {
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
    } else if (place.held && !std::exchange(place.guarded, true) &&
               watches_.size() < kMostGuarded) {
      due.to_guard.push_back(id);
    }
    agenda_.emplace(place.due, id);
  }
  return due;
}

}  // namespace holdfast::engines
