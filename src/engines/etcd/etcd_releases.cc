// What ends, and what lines up again in the same step.
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"  // GCC's own code for coroutines

#include <algorithm>

#include "engine/batch.h"
#include "engines/etcd/etcd_recipe.h"

namespace holdfast::engines {
namespace {

using core::Outcome;
using core::Status;

constexpr int kAttempts = 5;

}  // namespace

EtcdOperation EtcdRecipe::keep_out(const core::RequestId& id, std::int64_t lease) const {
  return {.what = EtcdOperation::What::put, .key = etcd_gone_key(options_, id), .lease = lease};
}

// By the key's last change: nothing but what this request has is removed, and
// what it had may have been handed to another.
engine::Task<Outcome> EtcdRecipe::release(core::RequestId id) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const auto place = find(id);
    if (!place) {
      co_return engine::plain(Status::not_held);
    }
    if (place->create_revision == 0) {
      co_return co_await release_unseen(id, *place);
    }
    EtcdTransaction transaction;
    transaction.compares.push_back(
        {.key = place->key, .target = EtcdCompare::Target::mod, .revision = place->mod_revision});
    transaction.success.push_back({.what = EtcdOperation::What::remove, .key = place->key});
    if (place->put_in_doubt) {
      transaction.success.push_back(keep_out(id, place->lease));
    }
    transaction.failure.push_back({.what = EtcdOperation::What::range, .key = place->key});
    EtcdTransactionAnswer answer;
    auto problem =
        co_await transact_jointly(etcd_directory_of(place->key), std::move(transaction), answer);
    if (problem && etcd_lease_is_gone(*problem)) {  // and its key with it
      lease_gone(place->lease);
      forget(id);
      co_return engine::plain(Status::not_held);
    }
    if (problem) {
      co_return engine::failed(*std::move(problem));
    }
    const auto keys = answer.parts.empty() ? std::vector<EtcdKey>{} : answer.parts[0].keys;
    if (answer.succeeded || keys.empty() || as_known(keys[0]).request != id) {
      const bool removed = answer.succeeded && !answer.parts.empty() && answer.parts[0].deleted > 0;
      forget(id);
      co_return engine::plain(removed ? Status::released : Status::not_held);
    }
    change(id, [&](Place& found) { found.mod_revision = keys[0].mod_revision; });
  }
  co_return engine::failed(
      {ErrorCode::unavailable, "etcd: the key changes all the time", std::nullopt});
}

// Calls overtake each other: if we do not know that the key was put, or handed
// to us, it may yet be, and would block others for as long as our lease is used.
// A second key, which the put asks for, keeps it out.
engine::Task<Outcome> EtcdRecipe::release_unseen(core::RequestId id, Place place) {
  EtcdTransaction transaction;
  const EtcdOperation gone = keep_out(id, place.lease);
  transaction.success.push_back({.what = EtcdOperation::What::remove, .key = place.key});
  transaction.success.push_back(gone);
  if (place.adopted_at != 0) {  // until then it was the giver's
    transaction.compares.push_back(
        {.key = place.key, .target = EtcdCompare::Target::lease, .revision = place.lease});
    transaction.compares.push_back({.key = place.key,
                                    .target = EtcdCompare::Target::mod,
                                    .is = EtcdCompare::Is::greater,
                                    .revision = place.adopted_at});
    transaction.failure.push_back(gone);
  }
  EtcdTransactionAnswer answer;
  auto problem = co_await transact(std::move(transaction), answer);
  if (problem && etcd_lease_is_gone(*problem)) {  // and its key with it
    lease_gone(place.lease);
    forget(id);
    co_return engine::plain(Status::not_held);
  }
  if (problem) {
    co_return engine::failed(*std::move(problem));
  }
  forget(id);
  const bool removed = answer.succeeded && !answer.parts.empty() && answer.parts[0].deleted > 0;
  co_return engine::plain(removed ? Status::released : Status::not_held);
}

// Sent before and perhaps applied: then the new key is there and the old is not.
engine::Task<Outcome> EtcdRecipe::requeue_by_steps(std::string dir, core::Requeue wanted) {
  const auto known = find(wanted.next.id);
  bool moved = false;
  if (known) {
    EtcdRange found;
    const auto unseen = co_await range(dir, found);
    if (unseen) {
      co_return engine::failed({ErrorCode::outcome_unknown, unseen->text, std::nullopt});
    }
    moved =
        std::ranges::any_of(found.keys, [&](const EtcdKey& key) { return key.key == known->key; });
  }
  Outcome before = co_await release(wanted.id);
  if (before.status == Status::failed) {
    co_return before;
  }
  Outcome outcome = co_await acquire(dir, wanted.next);
  outcome.gave_back = moved || before.status == Status::released;
  co_return outcome;
}

// One transaction: nobody finds the lock free in between.
engine::Task<Outcome> EtcdRecipe::requeue(std::string dir, core::Requeue wanted) {
  const core::Acquire next = wanted.next;
  const Step step{
      .id = next.id, .started = base::BootClock::now(), .queue = next.queue, .first = true};
  const auto old = find(wanted.id);
  if (!old || old->create_revision == 0 || find(next.id)) {
    co_return co_await requeue_by_steps(dir, wanted);
  }
  std::int64_t lease = 0;
  auto problem = co_await find_lease(next.ttl, lease);
  if (problem) {
    co_return engine::failed(*std::move(problem));
  }
  if (lease == old->lease) {
    auto stayed = co_await stay(dir, wanted, *old);
    if (stayed) {
      co_return *std::move(stayed);
    }
  }
  Place place{.key = etcd_key(dir, lease, next.id),
              .ttl = next.ttl,
              .window = next.window,
              .lease = lease,
              .beat = step.started};
  EtcdTransaction transaction;
  transaction.compares.push_back({.key = old->key, .revision = old->create_revision});
  transaction.compares.push_back(
      {.key = old->key, .target = EtcdCompare::Target::lease, .revision = old->lease});
  transaction.compares.push_back({.key = etcd_gone_key(options_, next.id)});
  transaction.success.push_back({.what = EtcdOperation::What::remove, .key = old->key});
  transaction.success.push_back({.what = EtcdOperation::What::put,
                                 .key = place.key,
                                 .value = note_text(next.shape),
                                 .lease = lease});
  if (old->put_in_doubt) {
    transaction.success.push_back(keep_out(wanted.id, old->lease));
  }
  transaction.success.push_back(etcd_all_of(dir));
  put(next.id, std::move(place));
  EtcdTransactionAnswer answer;
  problem = co_await transact_jointly(dir, std::move(transaction), answer);
  if (problem) {
    if (problem->code != ErrorCode::outcome_unknown) {
      forget(next.id);
    }
    co_return engine::failed(*std::move(problem));
  }
  forget(wanted.id);
  if (!answer.succeeded) {  // there was nothing to give back
    co_return co_await acquire(dir, next);
  }
  EtcdRange found{.revision = answer.revision, .keys = std::move(answer.parts.back().keys)};
  Outcome outcome = co_await settle(dir, step, std::move(found));
  outcome.gave_back = true;
  co_return outcome;
}

}  // namespace holdfast::engines
