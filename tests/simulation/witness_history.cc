// What is checked over longer times: exclusion over the whole history, and
// that the lock never lies idle while somebody wants it.

#include <algorithm>

#include "simulation/witness.h"
#include "simulation/words.h"

namespace holdfast::sim {
namespace {

struct Crowd {
  int exclusive = 0;
  int shared = 0;
  std::uint32_t permits = 0;

  void add(const core::Shape& shape, int sign) {
    exclusive += shape.mode == Mode::exclusive ? sign : 0;
    shared += shape.mode == Mode::shared ? sign : 0;
    if (shape.mode == Mode::permits) {
      permits = sign > 0 ? permits + shape.permits : permits - shape.permits;
    }
  }
  bool fits(std::uint32_t limit) const {
    const int kinds = (exclusive > 0 ? 1 : 0) + (shared > 0 ? 1 : 0) + (permits > 0 ? 1 : 0);
    return exclusive <= 1 && kinds <= 1 && (permits == 0 || permits <= limit);
  }
};

}  // namespace

// S2: [delivered, min(released, own deadline)) of conflicting leases are disjoint.
void Witness::sweep(const std::string& name) {
  struct Edge {
    Time at;
    bool opens;
    const Hold* hold;
    core::Shape shape;
  };
  std::vector<Edge> edges;
  std::uint32_t limit = stage_.scenario.admin_acts > 0 ? kMostPermits : 0;
  for (const auto& hold : all_) {
    if (hold->name() != name) {
      continue;
    }
    const Grant* grant = ledger_.find(name, hold->state->token().value_or(0));
    Time end = std::min(hold->ended, hold->alive_until);
    if (grant != nullptr && grant->end == End::forced) {
      end = std::min(end, grant->ended);  // whoever forces a lock accepts an overlap
    }
    core::Shape shape = hold->call->wish.terms.shape;
    limit = std::max(limit, shape.limit);
    Time from = hold->delivered;
    const auto add = [&](Time until) {
      if (std::min(until, end) > from) {
        edges.push_back({from, true, hold.get(), shape});
        edges.push_back({std::min(until, end), false, hold.get(), shape});
      }
      from = until;
    };
    for (const auto& [since, mode] : hold->changes) {
      add(since);
      shape.mode = mode;
    }
    add(end);
  }
  std::ranges::sort(edges, [](const Edge& a, const Edge& b) {
    return a.at != b.at ? a.at < b.at : a.opens < b.opens;
  });
  Crowd inside;
  for (const Edge& edge : edges) {
    inside.add(edge.shape, edge.opens ? 1 : -1);
    if (edge.opens && !inside.fits(limit)) {
      stage_.violate("S2", "too many hold " + name + " " + words(edge.at - kStart) +
                               " after the start; the last to come was " +
                               edge.hold->call->life->name() + " with token " +
                               std::to_string(edge.hold->state->token().value_or(0)));
    }
  }
}

// How long a free lock may wait for somebody who wants it: where all is well
// some messages; with wake-ups lost, until the next look or heartbeat.
Duration Witness::patience_for_free_lock() const {
  const Scenario& scenario = stage_.scenario;
  if (scenario.calm() && scenario.rings_well()) {
    return scenario.delay * 12 + std::chrono::milliseconds{2};
  }
  if (scenario.calm()) {
    return scenario.backstop + scenario.delay * 12 + std::chrono::milliseconds{2};
  }
  return scenario.backstop + scenario.longest_ttl() * 2 / 5 + scenario.delay * 12 +
         std::chrono::milliseconds{120};
}

void Witness::watch_liveness() {
  const Duration bound = patience_for_free_lock();
  check_waiting_changes();
  for (const NamedLock& lock : stage_.scenario.locks) {
    check_unused_grants(lock.name, bound);
    check_revoked(lock.name);
    const std::optional<Time> free = ledger_.free_since(lock.name);
    if (!free) {
      continue;
    }
    for (const auto& call : waiting_) {
      if (call->wish.name != lock.name || call->life->paused) {
        continue;
      }
      const Time since = std::max({*free, call->begun, call->life->disturbed_until});
      if (stage_.now() - since > bound) {
        stage_.violate("L1", lock.name + " is free for " + words(stage_.now() - *free) +
                                 " while call " + std::to_string(call->number) + " of " +
                                 call->life->name() + " waits");
      }
    }
  }
}

// A grant that nobody uses: noticed soon if its process lives (L1), ended by
// itself soon if it does not or if nobody there wants it any more (S5).
void Witness::check_unused_grants(const std::string& name, Duration bound) {
  const Scenario& scenario = stage_.scenario;
  for (Grant* grant : ledger_.standing(name)) {
    const auto known = lives_.find(grant->session);
    if (known == lives_.end() || grant->given) {
      continue;
    }
    const Life& life = *known->second;
    const Time since = std::max(grant->granted, life.disturbed_until);
    if (life.alive && !life.paused && !grant->delivered && !grant->ghost &&
        stage_.now() - since > bound) {
      stage_.violate("L1", life.name() + " does not notice that it was granted " + name + " by " +
                               words(grant->id));
    }
    const bool used =
        std::ranges::any_of(waiting_,
                            [&](const auto& call) {
                              return call->life.get() == &life && call->wish.name == name;
                            }) ||
        std::ranges::any_of(open_, [&](const auto& hold) {
          return hold->call->life.get() == &life && hold->name() == name;
        });
    if (life.alive && !life.paused && !grant->ghost && !is_wanted(*grant, life, name, used)) {
      stage_.violate("S5", life.name() + " does not give " + name + " back (" + words(grant->id) +
                               "), though nobody there wants it");
    }
    Time last =
        life.alive ? std::max(last_use_[{life.session, name}], life.disturbed_until) : life.died;
    last += scenario.longest_ghost + scenario.longest_spike + scenario.delay * 4;
    if (!(life.alive && (used || life.paused)) && grant->expires > last + grant->ttl * 2) {
      stage_.violate("S5", name + " stays with " + life.name() + " (" + words(grant->id) +
                               "), which does not want it any more");
    }
  }
}

// Or was a moment ago. What was delivered and let go by all is not wanted, even
// if others of that process wait for the lock: they would have it already.
bool Witness::is_wanted(const Grant& grant, const Life& life, const std::string& name, bool used) {
  Time until = std::max(grant.granted, life.disturbed_until);
  bool held = false;
  if (grant.delivered) {
    for (const auto& hold : all_) {
      if (hold->name() == name && ledger_.find(name, hold->state->token().value_or(0)) == &grant) {
        const bool open = std::ranges::find(open_, hold) != open_.end();
        held = held || open;
        until = std::max(until, open ? stage_.now() : hold->let_go);
      }
    }
  } else {
    held = used;
    until = std::max(until, last_use_[{life.session, name}]);
  }
  return held || stage_.now() - until <= patience_for_release();
}

// A release that fails is repeated, with growing pauses.
Duration Witness::patience_for_release() const {
  const Scenario& scenario = stage_.scenario;
  const Duration quick = scenario.delay * 12 + std::chrono::milliseconds{2};
  return scenario.calm() ? quick
                         : quick + scenario.request_timeout * 3 + std::chrono::milliseconds{60};
}

// Who is revoked hears of it at once where the bell works.
void Witness::check_revoked(const std::string& name) {
  if (!stage_.scenario.calm() || !stage_.scenario.rings_well()) {
    return;
  }
  for (const auto& hold : open_) {
    const Grant* grant = ledger_.find(name, hold->state->token().value_or(0));
    if (hold->name() != name || hold->lost || grant == nullptr || !grant->revoked) {
      continue;
    }
    const Time since = std::max(*grant->revoked, hold->delivered);
    if (stage_.now() - since > patience_for_release()) {
      stage_.violate("revoke", hold->call->life->name() + " does not hear that " + name +
                                   " was taken from it");
    }
  }
}

void Witness::finish() {
  for (const auto& call : waiting_) {
    stage_.violate("L4", "call " + std::to_string(call->number) + " of " + call->life->name() +
                             " for " + call->wish.name + " was never answered");
  }
  for (const NamedLock& lock : stage_.scenario.locks) {
    sweep(lock.name);
  }
}

}  // namespace holdfast::sim
