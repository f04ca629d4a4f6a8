// Readers become writers and back: what is noted in the key is written anew, and
// its place in the line, which is all that strangers look at, stays.
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"  // GCC's own code for coroutines

#include <algorithm>

#include "engine/batch.h"
#include "engines/etcd/etcd_recipe.h"

namespace holdfast::engines {
namespace {

using core::Outcome;
using core::Status;

constexpr int kAttempts = 50;  // others may come and go at any time

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
  if (problem && problem->code == ErrorCode::outcome_unknown) {
    change(wanted.id, [&](Place& found) { found.in_doubt_at = key.mod_revision; });
  }
  if (done) {
    change(wanted.id, [&](Place& found) {
      found.mod_revision = answer.revision;
      found.token = wanted.to.note.token != 0 ? wanted.to.note.token : wanted.to.token;
      if (found.heir_of) {  // its key names it now
        heirs_.erase(*found.heir_of);
        found.heir_of.reset();
      }
    });
  }
  co_return problem;
}

// A reader notes that it waits, and who reads beside it. Once those are gone it
// notes that it writes.
engine::Task<Outcome> EtcdRecipe::upgrade(std::string dir, core::Upgrade wanted) {
  using Next = EtcdUpgrade::Step;
  const base::Time started = base::BootClock::now();
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    Look look;
    auto outcome = co_await look_to_change(dir, wanted.id, started, look);
    if (outcome) {
      co_return *std::move(outcome);
    }
    if (look.mine->note.shape.mode == Mode::exclusive) {
      end_upgrade(wanted.id);
      co_return granted(wanted.id, started);
    }
    auto next = next_of_upgrade(look.line, *look.mine, look.revision, wanted.queue);
    if (next.step == Next::busy) {
      end_upgrade(wanted.id);
      co_return Outcome{.status = Status::busy};
    }
    if (next.step == Next::no_token) {
      co_return engine::failed(etcd_changed_too_often());
    }
    std::optional<Error> problem;
    bool done = false;
    if (next.step == Next::write) {
      // Who waits already is known to all: nobody was let in meanwhile.
      const bool noted = look.mine->note.readers_until != 0;
      Change step{.id = wanted.id, .to = *look.mine, .seen = look.revision, .others = {}};
      step.others = noted ? Others::may_change : Others::unchanged;
      step.to.note = std::move(next.note);
      problem = co_await rewrite(dir, std::move(step), done);
    } else if (is_watching(wanted.id, next.blocker)) {
      co_return Outcome{.status = Status::queued};
    } else {
      problem = co_await await_change_of(wanted.id, next.blocker);
    }
    if (problem) {
      co_return engine::failed(*std::move(problem));
    }
  }
  co_return engine::failed(etcd_keeps_changing());
}

// Where it stands, if its mode can change; else what there is to say.
engine::Task<std::optional<Outcome>> EtcdRecipe::look_to_change(std::string dir, core::RequestId id,
                                                                base::Time started, Look& look) {
  const auto place = find(id);
  if (!place || !place->held || place->ending) {
    co_return Outcome{.status = Status::not_held};
  }
  EtcdRange found;
  auto problem = co_await range(dir, found);
  if (problem) {
    co_return engine::failed(*std::move(problem));
  }
  look.line = line_of(std::move(found.keys));
  look.revision = found.revision;
  look.mine = entrant_in(look.line, place->key, id);
  if (look.mine == nullptr) {
    forget(id);
    co_return Outcome{.status = Status::not_held};
  }
  const EtcdNote& note = look.mine->note;
  if (note.shape.mode == Mode::permits) {
    co_return Outcome{.status = Status::refused, .count = note.shape.limit};
  }
  change(id, [&](Place& known) {
    known.token = look.mine->token;
    known.mod_revision = note.revoked ? 0 : look.mine->key.mod_revision;
  });
  if (!note.revoked) {
    co_return std::nullopt;
  }
  end_upgrade(id);
  Outcome outcome = granted(id, started);
  outcome.status = outcome.status == Status::granted ? Status::revoked : outcome.status;
  co_return outcome;
}

bool EtcdRecipe::is_watching(const core::RequestId& id, const std::string& blocker) {
  const auto place = find(id);
  return place && place->watch != 0 && place->blocker == blocker;
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
    end_if_unwanted(watch, id);
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
    Look look;
    auto outcome = co_await look_to_change(dir, id, started, look);
    if (outcome) {
      co_return *std::move(outcome);
    }
    Change step{.id = id, .to = *look.mine};
    step.to.note.shape.mode = Mode::shared;
    step.to.note.readers_until = 0;
    bool done = false;
    auto problem = co_await rewrite(dir, std::move(step), done);
    if (problem) {
      co_return engine::failed(*std::move(problem));
    }
    if (done) {
      end_upgrade(id);
      co_return granted(id, started);
    }
  }
  co_return engine::failed(etcd_keeps_changing());
}

}  // namespace holdfast::engines
