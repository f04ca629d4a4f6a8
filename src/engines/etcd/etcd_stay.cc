// The lock passes from one request of this process to the next, and its key stays.
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"  // GCC's own code for coroutines

#include <utility>

#include "engine/batch.h"
#include "engines/etcd/etcd_recipe.h"

namespace holdfast::engines {
namespace {

using core::Outcome;

constexpr int kAttempts = 10;  // others may note something in it at any time

}  // namespace

// Nobody else is in line, by quorum, and nothing was noted in the key, or will be by us: it goes
// on under the next request's id, and nothing is written. nullopt: that cannot be, and nothing was
// done.
engine::Task<std::optional<Outcome>> EtcdRecipe::stay(std::string dir, core::Requeue wanted,
                                                      Place old) {
  const base::Time started = base::BootClock::now();
  const core::Acquire& next = wanted.next;
  if (!old.held || old.upgrading || old.mod_revision == 0 || old.ttl != next.ttl ||
      old.is_in_doubt()) {
    co_return std::nullopt;
  }
  EtcdRange found;
  const auto problem = co_await range(dir, found);
  if (problem || found.keys.size() != 1 || found.keys[0].key != old.key ||
      found.keys[0].mod_revision != old.mod_revision || found.keys[0].lease != old.lease) {
    co_return std::nullopt;
  }
  Entrant mine = entrant_of(std::move(found.keys[0]));
  const auto named = mine.request;
  mine.token = old.token;
  const auto token = etcd_token_after(mine);
  if (!token || !named || mine.note.shape != next.shape) {
    co_return std::nullopt;
  }
  Place place{.key = old.key,
              .ttl = next.ttl,
              .window = next.window,
              .lease = old.lease,
              .create_revision = old.create_revision,
              .mod_revision = old.mod_revision,
              .token = *token,
              .beat = started};
  place.heir_of = named;
  if (!succeed(wanted.id, next.id, std::move(place))) {
    co_return std::nullopt;
  }
  Outcome outcome = granted(next.id, started);
  outcome.gave_back = true;
  co_return outcome;
}

// In one step: whoever ends a place whose time is up finds the one or the other.
bool EtcdRecipe::succeed(const core::RequestId& before, const core::RequestId& id, Place place) {
  std::int64_t watch = 0;  // may have been set since the caller looked
  {
    const std::lock_guard lock{mutex_};
    const auto found = places_.find(before);
    if (found == places_.end() || found->second.ending || found->second.is_in_doubt() ||
        places_.contains(id)) {
      return false;
    }
    watch = found->second.watch;
    agenda_.erase({found->second.due, before});
    if (found->second.heir_of) {
      heirs_.erase(*found->second.heir_of);
    }
    places_.erase(found);
    heirs_.insert_or_assign(*place.heir_of, id);
    place.due = ends(place);
    const auto date = agenda_.emplace(place.due, id).first;
    places_.emplace(id, std::move(place));
    if (date == agenda_.begin()) {
      wake_.notify_all();
    }
  }
  end_watch(watch);
  return true;
}

// What stands in the key is the first one's. Whatever this process notes in it from now on says
// whose it is.
void EtcdRecipe::name_heir(Entrant& entrant) {
  const auto heir = entrant.request ? heirs_.find(*entrant.request) : heirs_.end();
  const auto place = heir == heirs_.end() ? places_.end() : places_.find(heir->second);
  if (place != places_.end() && place->second.key == entrant.key.key &&
      place->second.create_revision == entrant.key.create_revision) {
    entrant.request = entrant.note.request = heir->second;
    entrant.token = entrant.note.token = place->second.token;
  }
}

Entrant EtcdRecipe::as_known(EtcdKey key) {
  Entrant entrant = entrant_of(std::move(key));
  const std::lock_guard lock{mutex_};
  name_heir(entrant);
  return entrant;
}

std::vector<Entrant> EtcdRecipe::line_of(std::vector<EtcdKey> keys) {
  auto line = line_up(std::move(keys));
  const std::lock_guard lock{mutex_};
  if (!heirs_.empty()) {
    for (Entrant& each : line) {
      name_heir(each);
    }
  }
  return line;
}

// Whatever became of the note, the lease is as it was.
engine::Task<Result<void>> EtcdRecipe::disclose(core::RequestId id) {
  auto disclosed = co_await try_to_disclose(id);
  if (!disclosed && disclosed.error().code == ErrorCode::outcome_unknown) {
    disclosed.error().code = ErrorCode::unavailable;
  }
  co_return disclosed;
}

engine::Task<Result<void>> EtcdRecipe::try_to_disclose(core::RequestId id) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const auto place = find(id);
    if (!place || place->ending) {
      co_return fail(ErrorCode::lease_lost, "the lease was lost before it could be handed over");
    }
    if (!place->heir_of) {
      co_return Result<void>{};
    }
    const std::string dir = etcd_directory_of(place->key);
    EtcdRange found;
    auto problem = co_await range(dir, found);
    if (problem) {
      co_return tl::unexpected{*std::move(problem)};
    }
    const auto line = line_of(std::move(found.keys));
    const Entrant* const mine = entrant_in(line, place->key, id);
    if (mine == nullptr || mine->note.revoked) {
      co_return fail(ErrorCode::lease_lost, "the lease was lost before it could be handed over");
    }
    bool done = false;
    Change step{.id = id, .to = *mine};
    problem = co_await rewrite(dir, std::move(step), done);
    if (problem) {
      co_return tl::unexpected{*std::move(problem)};
    }
    if (done) {
      co_return Result<void>{};
    }
  }
  co_return tl::unexpected{etcd_keeps_changing()};
}

}  // namespace holdfast::engines
