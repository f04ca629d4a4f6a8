// Grants that change while they last: what is noted in the key is written anew,
// and its place in the line, which is all that strangers look at, stays.
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"  // GCC's own code for coroutines

#include <algorithm>

#include "engines/etcd/etcd_recipe.h"

namespace holdfast::engines {
namespace {

using core::Outcome;
using core::Status;

constexpr int kAttempts = 50;  // others may come and go at any time

Outcome failure(Error error) {
  return {.status = Status::failed, .error = std::move(error)};
}

Error keeps_changing() {
  return {ErrorCode::unavailable, "etcd: the holders change all the time", std::nullopt};
}

Error too_often() {
  return {ErrorCode::unavailable,
          "etcd: this grant has changed too often while others wait; release it", std::nullopt};
}

}  // namespace

// The own key's note, if nobody changed it since; or if nobody in this line did.
engine::Task<std::optional<Error>> EtcdRecipe::rewrite(std::string dir, Change wanted, bool& done) {
  const EtcdKey& key = wanted.to.key;
  EtcdTransaction transaction;
  transaction.compares.push_back(
      {.key = key.key, .target = EtcdCompare::Target::mod, .revision = key.mod_revision});
  if (wanted.others == Others::unchanged) {
    transaction.compares.push_back({.key = dir,
                                    .end = etcd_prefix_end(dir),
                                    .target = EtcdCompare::Target::mod,
                                    .is = EtcdCompare::Is::less,
                                    .revision = wanted.seen + 1});
  }
  transaction.success.push_back({.what = EtcdOperation::What::put,
                                 .key = key.key,
                                 .value = wanted.to.note.text(),
                                 .keep_lease = true});
  EtcdTransactionAnswer answer;
  auto problem = co_await transact(std::move(transaction), answer);
  done = !problem && answer.succeeded;
  if (done) {
    change(wanted.id, [&](Place& found) {
      found.mod_revision = answer.revision;
      found.shape = wanted.to.note.shape;
      found.token = wanted.to.note.token != 0 ? wanted.to.note.token : wanted.to.token;
    });
  }
  co_return problem;
}

// A reader notes that it waits, and who reads beside it. Once those are gone it
// notes that it writes.
// NOLINTNEXTLINE(readability-function-size): the recipe, step by step
engine::Task<Outcome> EtcdRecipe::upgrade(std::string dir, core::Upgrade wanted) {
  const base::Time started = base::BootClock::now();
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const auto place = find(wanted.id);
    if (!place || !place->held || place->ending) {
      co_return Outcome{.status = Status::not_held};
    }
    EtcdRange found;
    auto problem = co_await range(dir, found);
    if (problem) {
      co_return failure(*std::move(problem));
    }
    const auto line = line_up(std::move(found.keys));
    const Entrant* const mine = entrant_in(line, place->key, wanted.id);
    if (mine == nullptr) {
      forget(wanted.id);
      co_return Outcome{.status = Status::not_held};
    }
    if (mine->note.shape.mode == Mode::permits) {
      co_return Outcome{.status = Status::refused, .count = mine->note.shape.limit};
    }
    if (mine->note.revoked || mine->note.shape.mode == Mode::exclusive) {
      change(wanted.id, [&](Place& mutable_place) {
        mutable_place.token = mine->token;
        mutable_place.mod_revision = mine->note.revoked ? 0 : mine->key.mod_revision;
      });
      end_upgrade(wanted.id);
      Outcome outcome = granted(wanted.id, started);
      if (mine->note.revoked && outcome.status == Status::granted) {
        outcome.status = Status::revoked;
      }
      co_return outcome;
    }
    const Entrant* other = nullptr;
    bool another = false;
    for (const Entrant& each : line) {
      if (each.holds && &each != mine) {
        other = &each;
        another = another || each.note.readers_until != 0;
      }
    }
    const bool waits = mine->note.readers_until != 0;
    const bool busy = other != nullptr && (another || !wanted.queue);
    if (busy && !waits) {
      end_upgrade(wanted.id);
      co_return Outcome{.status = Status::busy};
    }
    if (other != nullptr && waits && !busy) {
      if (place->watch != 0 && place->blocker == other->key.key) {
        co_return Outcome{.status = Status::queued};
      }
      problem = co_await await_change_of(wanted.id, other->key.key);
      if (problem) {
        co_return failure(*std::move(problem));
      }
      continue;
    }
    Change step{.id = wanted.id, .to = *mine, .seen = found.revision, .others = {}};
    step.others = waits ? Others::may_change : Others::unchanged;
    step.to.note.readers_until = 0;
    if (other == nullptr) {
      const auto token = etcd_token_alone(line, found.revision);
      if (!token) {
        co_return failure(too_often());
      }
      step.to.note.shape.mode = Mode::exclusive;
      step.to.note.token = *token;
    } else if (!busy) {
      for (const Entrant& each : line) {
        step.to.note.readers_until =
            each.holds ? each.key.create_revision : step.to.note.readers_until;
      }
    }
    bool done = false;
    problem = co_await rewrite(dir, std::move(step), done);
    if (problem) {
      co_return failure(*std::move(problem));
    }
  }
  co_return failure(keeps_changing());
}

// From now on, then a look.
engine::Task<std::optional<Error>> EtcdRecipe::await_change_of(core::RequestId id,
                                                               std::string key) {
  const auto place = find(id);
  end_watch(place ? place->watch : 0);
  const std::int64_t watch = new_watch(id);
  change(id, [&](Place& found) {
    found.watch = watch;
    found.blocker = key;
    found.upgrading = true;
  });
  const EtcdRequest::Reply watched = co_await session_->watch(watch, key);
  if (watched.ok()) {
    co_return std::nullopt;
  }
  change(id, [&](Place& found) { found.watch = found.watch == watch ? 0 : found.watch; });
  co_return Error{ErrorCode::outcome_unknown, "etcd: " + watched.text, std::nullopt};
}

// It watches its own key again, instead of another's.
void EtcdRecipe::end_upgrade(const core::RequestId& id) {
  std::int64_t watch = 0;
  bool guarded = false;
  change(id, [&](Place& found) {
    if (std::exchange(found.upgrading, false)) {
      watch = std::exchange(found.watch, 0);
      guarded = found.guarded;
    }
    found.blocker.clear();
  });
  end_watch(watch);
  if (guarded) {
    watch_own(id);
  }
}

// Written in any case: an Upgrade that is still on its way comes too late then.
engine::Task<Outcome> EtcdRecipe::downgrade(std::string dir, core::RequestId id) {
  const base::Time started = base::BootClock::now();
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const auto place = find(id);
    if (!place || !place->held || place->ending) {
      co_return Outcome{.status = Status::not_held};
    }
    EtcdRange found;
    auto problem = co_await range(dir, found);
    if (problem) {
      co_return failure(*std::move(problem));
    }
    const auto line = line_up(std::move(found.keys));
    const Entrant* const mine = entrant_in(line, place->key, id);
    if (mine == nullptr) {
      forget(id);
      co_return Outcome{.status = Status::not_held};
    }
    if (mine->note.shape.mode == Mode::permits) {
      co_return Outcome{.status = Status::refused, .count = mine->note.shape.limit};
    }
    if (mine->note.revoked) {
      Outcome outcome = granted(id, started);
      outcome.status = outcome.status == Status::granted ? Status::revoked : outcome.status;
      co_return outcome;
    }
    Change step{.id = id, .to = *mine};
    step.to.note.shape.mode = Mode::shared;
    step.to.note.readers_until = 0;
    bool done = false;
    problem = co_await rewrite(dir, std::move(step), done);
    if (problem) {
      co_return failure(*std::move(problem));
    }
    if (done) {
      end_upgrade(id);
      co_return granted(id, started);
    }
  }
  co_return failure(keeps_changing());
}

engine::Task<Outcome> EtcdRecipe::transfer(std::string dir, core::Transfer wanted) {
  const core::RequestId next = wanted.next.id;
  const Step step{.id = next, .started = base::BootClock::now()};
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    EtcdRange found;
    auto problem = co_await range(dir, found);
    if (problem) {
      co_return failure(*std::move(problem));
    }
    const auto line = line_up(found.keys);
    const auto of = [&](const core::RequestId& id) {
      return std::ranges::find_if(line, [&](const Entrant& each) { return each.request == id; });
    };
    if (const auto mine = of(next); mine != line.end()) {
      if (!mine->holds) {
        co_return Outcome{.status = Status::busy};
      }
      co_return co_await settle(dir, step, std::move(found.keys));
    }
    const auto giver = of(wanted.id);
    if (giver == line.end() || !giver->holds || giver->note.revoked) {
      forget(next);
      co_return Outcome{.status = Status::not_held};
    }
    bool done = false;
    Entrant from = *giver;
    if (const auto token = etcd_token_after(from); token) {
      from.note.token = *token;
    } else if (const auto higher = etcd_token_alone(line, found.revision);
               higher && from.note.shape.mode == Mode::exclusive) {
      from.note.token = *higher;
    } else {
      co_return failure(too_often());
    }
    problem = co_await take_over(wanted, std::move(from), step.started, done);
    if (problem) {
      co_return failure(*std::move(problem));
    }
    if (done) {
      co_return granted(next, step.started);
    }
  }
  co_return failure(keeps_changing());
}

// The key stays where it is in the line, but hangs on our lease from now on.
engine::Task<std::optional<Error>> EtcdRecipe::take_over(core::Transfer wanted, Entrant from,
                                                         base::Time started, bool& done) {
  const core::RequestId next = wanted.next.id;
  auto place = find(next);
  if (!place) {
    std::int64_t lease = 0;
    auto problem = co_await find_lease(wanted.next.ttl, lease);
    if (problem) {
      co_return problem;
    }
    place = Place{.dir = {},
                  .key = from.key.key,
                  .shape = from.note.shape,
                  .ttl = wanted.next.ttl,
                  .window = wanted.next.window,
                  .lease = lease,
                  .beat = started};
    place->dir = place->key.substr(0, place->key.rfind('/') + 1);
    place->adopted_at = from.key.mod_revision;
    put(next, *place);
  }
  change(next, [&](Place& found) { found.adopted_at = from.key.mod_revision; });
  EtcdNote note = from.note;
  note.party = client_.party;
  note.since_ms = static_cast<std::int64_t>(base::wall_microseconds() / 1000);
  note.readers_until = 0;
  note.request = next;
  EtcdTransaction transaction;
  transaction.compares.push_back(
      {.key = from.key.key, .target = EtcdCompare::Target::mod, .revision = from.key.mod_revision});
  transaction.compares.push_back({.key = etcd_gone_key(options_, next)});
  transaction.success.push_back({.what = EtcdOperation::What::put,
                                 .key = from.key.key,
                                 .value = note.text(),
                                 .lease = place->lease});
  EtcdTransactionAnswer answer;
  auto problem = co_await transact(std::move(transaction), answer);
  if (problem && problem->native == 5) {
    lease_gone(place->lease);
    problem.reset();
  } else if (problem && problem->code != ErrorCode::outcome_unknown) {
    forget(next);
  }
  done = !problem && answer.succeeded;
  if (done) {
    forget(wanted.id);
    change(next, [&](Place& found) {
      found.create_revision = from.key.create_revision;
      found.mod_revision = answer.revision;
      found.token = note.token;
    });
  }
  co_return problem;
}

}  // namespace holdfast::engines
