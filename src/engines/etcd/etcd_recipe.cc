// A key in the lock's queue, bound to a lease; the first that was created holds,
// and who waits watches one in front.
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"  // GCC's own code for coroutines

#include "engines/etcd/etcd_recipe.h"

#include <algorithm>
#include <variant>

#include "engine/batch.h"

namespace holdfast::engines {
namespace {

using core::Outcome;
using core::Status;

constexpr std::string_view kTransact = "/etcdserverpb.KV/Txn";
constexpr std::string_view kRange = "/etcdserverpb.KV/Range";
constexpr int kAttempts = 5;

Error unknown(std::string text) {
  return {ErrorCode::outcome_unknown, std::move(text), std::nullopt};
}

}  // namespace

engine::Task<Outcome> EtcdRecipe::perform(core::Command command) {
  if (auto good = engine::check_name(command.name); !good) {
    co_return engine::failed(std::move(good.error()));
  }
  auto dir = etcd_directory(options_, command.name);
  if (!dir) {
    co_return engine::failed(std::move(dir.error()));
  }
  if (const auto* wanted = std::get_if<core::Acquire>(&command.operation)) {
    co_return co_await acquire(*dir, *wanted);
  }
  if (const auto* wanted = std::get_if<core::Poll>(&command.operation)) {
    co_return co_await look(wanted->id, wanted->heartbeat ? Beat::yes : Beat::no);
  }
  if (const auto* wanted = std::get_if<core::Release>(&command.operation)) {
    co_return co_await release(wanted->id);
  }
  if (const auto* wanted = std::get_if<core::Requeue>(&command.operation)) {
    co_return co_await requeue(*dir, *wanted);
  }
  if (const auto* wanted = std::get_if<core::Revoke>(&command.operation)) {
    co_return co_await revoke(*dir, *wanted);
  }
  if (const auto* wanted = std::get_if<core::Resize>(&command.operation)) {
    co_return co_await resize(*dir, wanted->limit);
  }
  if (const auto* wanted = std::get_if<core::Upgrade>(&command.operation)) {
    co_return co_await upgrade(*dir, *wanted);
  }
  if (const auto* wanted = std::get_if<core::Downgrade>(&command.operation)) {
    co_return co_await downgrade(*dir, wanted->id);
  }
  if (const auto* wanted = std::get_if<core::Transfer>(&command.operation)) {
    co_return co_await transfer(*dir, *wanted);
  }
  std::vector<core::RequestId> ids{std::get<core::Renew>(command.operation).id};
  auto outcomes = co_await renew(std::move(ids));
  co_return outcomes.front();
}

engine::Task<std::optional<Error>> EtcdRecipe::transact(EtcdTransaction transaction,
                                                        EtcdTransactionAnswer& answer,
                                                        EtcdTurn turn) {
  const EtcdRequest::Reply reply = co_await session_->call(kTransact, encode(transaction), turn);
  if (!reply.ok()) {
    co_return reply.error();
  }
  auto decoded = decode_transaction(reply.body);
  if (!decoded) {
    co_return unknown("etcd: an answer that makes no sense");
  }
  answer = *std::move(decoded);
  co_return std::nullopt;
}

engine::Task<std::optional<Error>> EtcdRecipe::transact_jointly(std::string dir,
                                                                EtcdTransaction transaction,
                                                                EtcdTransactionAnswer& answer) {
  EtcdJoint::Passenger trip{*joint_, std::move(dir), std::move(transaction)};
  co_await trip;
  answer = std::move(trip.answer);
  co_return std::move(trip.problem);
}

engine::Task<std::optional<Error>> EtcdRecipe::range(std::string dir, EtcdRange& found) {
  const EtcdRequest::Reply reply = co_await session_->call(kRange, encode_range(etcd_all_of(dir)));
  if (!reply.ok()) {
    co_return reply.error();
  }
  auto decoded = decode_range(reply.body);
  if (!decoded) {
    co_return unknown("etcd: an answer that makes no sense");
  }
  found = *std::move(decoded);
  co_return std::nullopt;
}

std::string EtcdRecipe::note_text(const core::Shape& shape) const {
  EtcdNote note;
  note.party = client_.party;
  note.shape = shape;
  note.since_ms = static_cast<std::int64_t>(base::wall_microseconds() / 1000);
  return note.text();
}

// One transaction that puts the key, unless it is there, and lists the queue.
engine::Task<Outcome> EtcdRecipe::acquire(std::string dir, core::Acquire wanted) {
  const Step step{
      .id = wanted.id, .started = base::BootClock::now(), .queue = wanted.queue, .first = true};
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    auto place = find(wanted.id);
    if (place && place->create_revision != 0) {
      co_return co_await look(wanted.id, Beat::yes);
    }
    if (!place) {
      std::int64_t lease = 0;
      auto problem = co_await find_lease(wanted.ttl, lease);
      if (problem) {
        co_return engine::failed(*std::move(problem));
      }
      put(wanted.id, {.key = etcd_key(dir, lease, wanted.id),
                      .ttl = wanted.ttl,
                      .window = wanted.window,
                      .lease = lease,
                      .beat = step.started});
      place = find(wanted.id);
      if (!place) {
        continue;
      }
    }
    EtcdTransaction transaction;
    transaction.compares.push_back({.key = place->key});
    transaction.compares.push_back({.key = etcd_gone_key(options_, wanted.id)});
    transaction.success.push_back({.what = EtcdOperation::What::put,
                                   .key = place->key,
                                   .value = note_text(wanted.shape),
                                   .lease = place->lease});
    transaction.success.push_back(etcd_all_of(dir));
    transaction.failure.push_back(etcd_all_of(dir));
    EtcdTransactionAnswer answer;
    auto problem = co_await transact_jointly(dir, std::move(transaction), answer);
    if (problem && etcd_lease_is_gone(*problem)) {
      lease_gone(place->lease);
      forget(wanted.id);
      continue;
    }
    if (problem && etcd_is_full(*problem)) {
      co_return co_await look_whether_put(dir, step, *std::move(problem));
    }
    if (problem) {
      const bool in_doubt = problem->code == ErrorCode::outcome_unknown || place->put_in_doubt;
      if (in_doubt) {
        change(wanted.id, [](Place& mine) { mine.put_in_doubt = true; });
      } else {
        forget(wanted.id);
      }
      co_return engine::failed(*std::move(problem));
    }
    EtcdRange found{.revision = answer.revision, .keys = std::move(answer.parts.back().keys)};
    co_return co_await settle(dir, step, std::move(found));
  }
  co_return engine::failed(
      {ErrorCode::unavailable, "etcd: our leases keep vanishing", std::nullopt});
}

// The server said no after it had put the key, or without: nothing follows after that answer.
engine::Task<Outcome> EtcdRecipe::look_whether_put(std::string dir, Step step, Error why) {
  EtcdRange found;
  const auto unseen = co_await range(dir, found);
  const auto place = find(step.id);
  if (unseen || !place || place->put_in_doubt) {
    co_return engine::failed(std::move(why));
  }
  if (std::ranges::any_of(found.keys, [&](const auto& each) { return each.key == place->key; })) {
    co_return co_await settle(dir, step, std::move(found));
  }
  forget(step.id);
  why.code = ErrorCode::unavailable;
  co_return engine::failed(std::move(why));
}

// Where does it stand, by this list?
// NOLINTNEXTLINE(readability-function-size): the recipe, step by step
engine::Task<Outcome> EtcdRecipe::settle(std::string dir, Step step, EtcdRange found) {
  for (;;) {
    const auto place = find(step.id);
    if (!place || place->ending) {
      co_return engine::plain(Status::not_held);
    }
    const auto line = line_of(std::move(found.keys));
    sweep(line);
    const EtcdStanding standing = standing_of(line, place->key, step.id);
    if (!standing.found) {
      forget(step.id);
      co_return engine::plain(Status::not_held);
    }
    change(step.id, [&](Place& mine) {
      mine.create_revision = standing.create_revision;
      mine.mod_revision = standing.revoked ? 0 : standing.mod_revision;
      mine.token = standing.token;
    });
    if (standing.token == 0) {
      Outcome used_up = engine::failed(
          {ErrorCode::unavailable, "this cluster has used up its tokens", std::nullopt});
      co_return co_await leave(step.id, std::move(used_up));
    }
    if (step.first && standing.refused) {
      co_return co_await leave(step.id, engine::plain(Status::refused, standing.limit));
    }
    if (standing.holds) {
      if (!place->held) {
        end_watch(place->watch);
        change(step.id, [](Place& mine) { mine.watch = 0; });
      }
      // No grant if our own lease may be gone after the wait.
      auto problem = co_await freshen(place->lease, step.started + place->window);
      if (problem) {
        co_return engine::failed(*std::move(problem));
      }
      Outcome outcome = granted(step.id, step.started);
      if (standing.revoked && outcome.status == Status::granted) {
        outcome.status = Status::revoked;
      }
      co_return outcome;
    }
    if (!step.queue) {
      co_return co_await leave(step.id, engine::plain(Status::busy));
    }
    if (place->watch != 0 && place->blocker == standing.blocker) {
      change(step.id, [&](Place& mine) {
        const bool sees = mine.ends_since != 0 && found.revision >= mine.ends_since;
        if (mine.watch == place->watch && sees && standing.next) {
          mine.next_at = found.revision;
        }
      });
      co_return queued(step.id, step.beat ? step.started : base::Time{}, standing.ahead);
    }
    // From now on, then a look: a watch that starts in the past is served late.
    end_watch(place->watch);
    const std::int64_t watch = new_watch(step.id);
    change(step.id, [&](Place& mine) {
      mine.watch = watch;
      mine.blocker = standing.blocker;
      mine.ends_since = mine.next_at = 0;
    });
    std::vector<std::string> either{standing.blocker, place->key};
    EtcdRequest set_up = standing.next ? session_->watch_ends(watch, dir, std::move(either))
                                       : session_->watch(watch, standing.blocker);
    const EtcdRequest::Reply watched = co_await set_up;
    if (!watched.ok()) {
      change(step.id, [&](Place& mine) { mine.watch = mine.watch == watch ? 0 : mine.watch; });
      co_return engine::failed(unknown("etcd: " + watched.text));
    }
    end_if_unwanted(watch, step.id);
    change(step.id, [&](Place& mine) {
      if (mine.watch == watch && standing.next) {
        mine.ends_since = watched.revision;
      }
    });
    auto problem = co_await range(dir, found);
    if (problem) {
      problem->code = ErrorCode::outcome_unknown;
      co_return engine::failed(*std::move(problem));
    }
  }
}

// A put that came after its own release, because calls overtake each other,
// would stay as long as our lease does.
void EtcdRecipe::sweep(const std::vector<Entrant>& line) {
  std::vector<EtcdKey> ghosts;
  {
    const std::lock_guard lock{mutex_};
    for (const Entrant& each : line) {
      if (!each.note.ours || !leases_.contains(each.key.lease)) {
        continue;
      }
      const auto known = each.request ? places_.find(*each.request) : places_.end();
      if (each.request && (known == places_.end() || known->second.key != each.key.key)) {
        ghosts.push_back(each.key);
      }
    }
  }
  for (EtcdKey& ghost : ghosts) {
    remove_ghost(std::move(ghost));
  }
}

engine::Task<Outcome> EtcdRecipe::leave(core::RequestId id, Outcome outcome) {
  const Outcome left = co_await release(id);
  co_return left.status == Status::failed ? left : outcome;
}

engine::Task<Outcome> EtcdRecipe::look(core::RequestId id, Beat beat) {
  const Step step{.id = id, .started = base::BootClock::now(), .beat = beat == Beat::yes};
  const auto place = find(id);
  if (!place || place->ending) {
    co_return engine::plain(Status::not_held);
  }
  if (beat == Beat::yes) {
    auto late = co_await freshen(place->lease, step.started + place->window);
    if (late) {
      co_return engine::failed(*std::move(late));
    }
  }
  EtcdRange found;
  const std::string dir = etcd_directory_of(place->key);
  auto problem = co_await range(dir, found);
  if (problem) {
    co_return engine::failed(*std::move(problem));
  }
  co_return co_await settle(dir, step, std::move(found));
}

}  // namespace holdfast::engines
