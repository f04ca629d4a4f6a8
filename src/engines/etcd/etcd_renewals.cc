// What is held is prolonged: one lease, and a look at every key that hangs on it.
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"  // GCC's own code for coroutines

#include <algorithm>

#include "engine/batch.h"
#include "engines/etcd/etcd_recipe.h"

namespace holdfast::engines {
namespace {

using core::Outcome;
using core::Status;

constexpr std::size_t kChecksAtOnce = 100;  // the server takes 128 operations

}  // namespace

// A lease that was kept alive is not a lock that is held: after it, the key
// itself is looked at (some versions renew leases that were revoked).
engine::Task<engine::Outcomes> EtcdRecipe::renew(std::vector<core::RequestId> ids) {
  const base::Time started = base::BootClock::now();
  engine::Outcomes outcomes(ids.size(), Outcome{.status = Status::not_held});
  std::map<std::int64_t, std::optional<Error>> leases;
  std::vector<Renewal> held;
  {
    const std::lock_guard lock{mutex_};
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const auto found = places_.find(ids[i]);
      if (found != places_.end() && found->second.held && !found->second.ending) {
        const Place& place = found->second;
        held.push_back({i, ids[i], place.key, place.mod_revision, place.lease});
        leases.try_emplace(place.lease);
      }
    }
  }
  for (auto& [lease, problem] : leases) {
    problem = co_await keep_alive(lease);
  }
  for (std::size_t from = 0; from < held.size(); from += kChecksAtOnce) {
    const auto begin = held.begin() + static_cast<std::ptrdiff_t>(from);
    const std::vector<Renewal> some{
        begin, begin + static_cast<std::ptrdiff_t>(std::min(kChecksAtOnce, held.size() - from))};
    bool same = false;
    EtcdTransactionAnswer now;
    auto problem = co_await unchanged(some, same);
    if (!problem && !same) {
      problem = co_await read_again(some, now);
    }
    for (std::size_t i = 0; i < some.size(); ++i) {
      const Renewal& each = some[i];
      const auto& late = leases[each.lease];
      if (problem || late) {
        outcomes[each.index] = engine::failed(problem ? *problem : *late);
      } else {
        outcomes[each.index] =
            same ? prolonged(each.id, started) : renewed(each.id, started, now.parts[i].keys);
      }
    }
  }
  co_return outcomes;
}

// As a rule they are, and then the question is all that costs anything: the
// server compares, and says one word. Without the range it would not ask the
// quorum before it answers.
engine::Task<std::optional<Error>> EtcdRecipe::unchanged(std::vector<Renewal> some,
                                                         bool& all_of_them) {
  EtcdTransaction transaction;
  for (const Renewal& each : some) {
    transaction.compares.push_back(
        {.key = each.key, .target = EtcdCompare::Target::mod, .revision = each.mod_revision});
  }
  const EtcdOperation by_quorum{
      .what = EtcdOperation::What::range, .key = some.front().key, .keys_only = true};
  transaction.success.push_back(by_quorum);
  transaction.failure.push_back(by_quorum);
  EtcdTransactionAnswer answer;
  auto problem = co_await transact(std::move(transaction), answer, EtcdTurn::at_once);
  all_of_them = !problem && answer.succeeded;
  co_return problem;
}

engine::Task<std::optional<Error>> EtcdRecipe::read_again(std::vector<Renewal> some,
                                                          EtcdTransactionAnswer& answer) {
  EtcdTransaction transaction;
  for (const Renewal& each : some) {
    transaction.success.push_back({.what = EtcdOperation::What::range, .key = each.key});
  }
  auto problem = co_await transact(std::move(transaction), answer, EtcdTurn::at_once);
  if (!problem && answer.parts.size() != some.size()) {
    problem = Error{ErrorCode::outcome_unknown, "etcd: an answer that makes no sense", {}};
  }
  co_return problem;
}

Outcome EtcdRecipe::renewed(const core::RequestId& id, base::Time started,
                            const std::vector<EtcdKey>& keys) {
  const auto place = find(id);
  const auto mine = keys.empty() ? std::nullopt : std::optional{as_known(keys.front())};
  if (!place || !mine || mine->request != id ||
      mine->key.create_revision != place->create_revision) {
    forget(id);
    return {.status = Status::not_held};
  }
  if (!mine->note.revoked) {
    change(id, [&](Place& found) {
      found.mod_revision = mine->key.mod_revision;
      found.token = mine->token;
    });
    return prolonged(id, started);
  }
  // What it is known by stays as it was: it is looked at again and again.
  const base::Time end = std::min(place->beat + place->ttl, alive_until(place->lease));
  return {.status = place->ending ? Status::not_held : Status::revoked,
          .token = place->token,
          .lease_for = std::max(end - started, Duration::zero())};
}

Outcome EtcdRecipe::prolonged(const core::RequestId& id, base::Time started) {
  Outcome outcome{.status = Status::not_held};
  const std::lock_guard lock{mutex_};
  const auto found = places_.find(id);
  if (found == places_.end() || found->second.ending) {
    return outcome;
  }
  Place& place = found->second;
  place.beat = std::max(place.beat, started);
  const auto lease = leases_.find(place.lease);
  if (lease != leases_.end() && lease->second.alive_until > started) {
    const base::Time end = std::min(started + place.ttl, lease->second.alive_until);
    outcome = {.status = Status::renewed, .token = place.token, .lease_for = end - started};
  }
  return outcome;
}

}  // namespace holdfast::engines
