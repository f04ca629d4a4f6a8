// A grant passes to another process: what is noted in the key is written anew,
// and its place in the line, which is all that strangers look at, stays.
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

engine::Task<Outcome> EtcdRecipe::transfer(std::string dir, core::Transfer wanted) {
  const core::RequestId next = wanted.next.id;
  const Step step{.id = next, .started = base::BootClock::now()};
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    EtcdRange found;
    auto problem = co_await range(dir, found);
    if (problem) {
      co_return engine::failed(*std::move(problem));
    }
    const auto line = line_of(found.keys);
    const auto of = [&](const core::RequestId& id) {
      return std::ranges::find_if(line, [&](const Entrant& each) { return each.request == id; });
    };
    if (const auto mine = of(next); mine != line.end()) {
      if (!mine->holds) {
        co_return Outcome{.status = Status::busy};
      }
      co_return co_await settle(dir, step, std::move(found));
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
      co_return engine::failed(etcd_changed_too_often());
    }
    problem = co_await take_over(wanted, std::move(from), step.started, done);
    if (problem) {
      co_return engine::failed(*std::move(problem));
    }
    if (done) {
      co_return granted(next, step.started);
    }
  }
  co_return engine::failed(etcd_keeps_changing());
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
    place = Place{.key = from.key.key,
                  .ttl = wanted.next.ttl,
                  .window = wanted.next.window,
                  .lease = lease,
                  .beat = started};
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
  if (problem && etcd_lease_is_gone(*problem)) {
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
