#pragma once

#include <cstdint>
#include <forward_list>
#include <list>
#include <optional>
#include <variant>
#include <vector>

#include "core/commands.h"

namespace holdfast::core {

using ClaimId = std::uint64_t;    // one caller's wish for the lock; never 0
using TenancyId = std::uint64_t;  // one stay of this process: from asking the store to letting go

// For hash tables of things that are many: half the buckets, hardly slower.
inline constexpr float kLeanLoad = 2;

struct Terms {
  Shape shape;
  Duration ttl{};
  bool renew = true;
  bool queue = true;            // false: a try; turned away instead of waiting
  bool barge = false;           // may overtake the store's queue
  std::uint32_t hand_over = 0;  // 0: stands in the store's queue by itself
  Duration grace{};             // no entry with less than this left to trust

  // How often a lease is renewed, and a waiter says that it lives.
  Duration refresh_interval() const noexcept { return ttl / kRefreshesPerTtl; }
  // How long the store waits for the next heartbeat, and how long a pushed
  // grant lasts before its first renewal.
  Duration window() const noexcept { return refresh_interval() * 2; }

  // May the lock pass from one to the other without the store?
  bool passes_to(const Terms& next) const noexcept {
    return shape == next.shape && ttl == next.ttl && renew == next.renew;
  }
};

// One name's line inside one process. Callers that want the same lock line up
// here; one of them stands in the store's queue for all. A lock that comes
// free passes to the next in line without the store, at most `hand_over` times
// and for kHandOverTime, so that other processes get their turn.
//
// Pure: events go in, steps for the owner to carry out come back, in order.
class LocalQueue {
 public:
  // Ask the store for a new tenancy; `after` is given back in the same step.
  struct Stand {
    TenancyId tenancy;
    Terms terms;
    std::optional<TenancyId> after;
  };
  // Release the tenancy, held or only asked for. It is forgotten here.
  struct GiveBack {
    TenancyId tenancy;
  };
  // The caller holds the lock. `offset` is added to the tenancy's token.
  struct Admit {
    ClaimId claim;
    TenancyId tenancy;
    std::uint32_t offset;
  };
  // A try that found the lock taken by this very process.
  struct TurnAway {
    ClaimId claim;
  };
  using Step = std::variant<Stand, GiveBack, Admit, TurnAway>;
  using Steps = std::vector<Step>;

  // Tenancy ids are drawn from `next_tenancy`, shared by all queues.
  explicit LocalQueue(TenancyId* next_tenancy) : next_tenancy_{next_tenancy} {}

  void join(ClaimId claim, const Terms& terms, Time now, Steps& steps);

  // The claim gives up before it was admitted. False if it is not in line.
  bool leave(ClaimId claim, Time now, Steps& steps);

  // The store granted what Stand asked for. The lock passes on without the
  // store only before `trusted_until`.
  void granted(TenancyId tenancy, Time trusted_until, Time now, Steps& steps);
  void renewed(TenancyId tenancy, Time trusted_until);

  // The store did not: returns the claim that must be told, if it still waits.
  std::optional<ClaimId> denied(TenancyId tenancy, Time now, Steps& steps);

  // An admitted claim lets go.
  void let_go(ClaimId claim, Time now, Steps& steps);

  // From now on the tenancy is held in another shape, and passes only to those
  // who want that.
  void reshape(TenancyId tenancy, const Shape& shape, Time now, Steps& steps);

  // The tenancy is or may be lost: it passes to nobody any more.
  void close(TenancyId tenancy, Time now, Steps& steps);
  // The store no longer knows it: nothing needs to be given back.
  void gone(TenancyId tenancy, Time now, Steps& steps);

  // Until when the head of the line waits for a hand-over instead of standing
  // in the store's queue, where others may line up before it; kNever if it
  // does not. The owner calls stop_hoping() then.
  Time hopes_until() const;
  void stop_hoping(Time now, Steps& steps) { serve(now, steps); }

  // Those who hold the lock under this tenancy.
  std::vector<ClaimId> users(TenancyId tenancy) const;
  // The claim a tenancy that is not granted yet stands for.
  std::optional<ClaimId> stands_for(TenancyId tenancy) const;

  // Those who were not admitted yet.
  std::vector<ClaimId> in_line() const;
  // The tenancy that has been waiting longest for the store's grant.
  std::optional<TenancyId> first_waiting() const;
  bool taken_by_us() const;

  std::size_t waiting() const noexcept { return line_.size(); }
  // As many wait as may (kMaxWaiters); those who hold do not count.
  bool is_full() const;
  bool idle() const noexcept { return line_.empty() && tenancies_.empty(); }

 private:
  struct Claim {
    ClaimId id;
    Terms terms;
  };
  // Hardly ever more than one: that one needs no memory of its own.
  class Users {
   public:
    bool empty() const noexcept { return first_ == 0; }
    bool contain(ClaimId claim) const;
    void add(ClaimId claim);
    void remove(ClaimId claim);
    std::vector<ClaimId> all() const;

   private:
    ClaimId first_ = 0;
    std::forward_list<ClaimId> others_;  // at most kMaxHandOver
  };
  struct Tenancy {
    TenancyId id;
    Terms terms;
    ClaimId stands_for = 0;
    bool strict = false;  // for one claim alone
    bool held = false;
    bool closed = false;
    bool gone = false;
    std::uint32_t passed = 0;  // hand-overs and further readers so far
    Time granted_at{};
    Time trusted_until{};
    Users users;

    bool stands_for_line() const noexcept { return !held && !strict; }
    // Until when it may pass to a claim with these terms, once it is free.
    Time passes_until(const Terms& next) const noexcept;
  };

  Tenancy* find(TenancyId id);
  const Tenancy* find(TenancyId id) const;
  void erase(TenancyId id);
  Tenancy* standing();
  Tenancy* open_for(const Terms& terms, Time now);
  Time passes_until(const Terms& next) const;
  Tenancy& stand(const Claim& claim, bool strict, std::optional<TenancyId> after, Steps& steps);
  void admit(Tenancy& tenancy, ClaimId claim, Steps& steps);
  void admit_from_line(Time now, Steps& steps);
  void serve(Time now, Steps& steps);

  TenancyId* next_tenancy_;
  std::list<Claim> line_;  // waiting, without those that stand by themselves
  std::vector<Tenancy> tenancies_;
};

}  // namespace holdfast::core
