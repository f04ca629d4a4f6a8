#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/commands.h"
#include "core/local_queue.h"

namespace holdfast::core {

// What must be refreshed at the store when (held tenancies are renewed, waiting
// ones send heartbeats), and which callers must be warned when. Pure: it only
// keeps the calendar.
class LeaseKeeper {
 public:
  // Until when a grant may be trusted: counted from before the request was
  // sent, less 1 % + 2 ms for clocks that run at different speeds.
  static Time deadline(Time sent, Duration lease_for) noexcept;

  // Refresh `interval` after `sent`. Times are rounded down to a coarse grid,
  // so that what is due at about the same time goes in one batch.
  void refresh_after(TenancyId tenancy, Time sent, Duration interval);
  void refresh_at(TenancyId tenancy, Time when);
  void stop_refreshing(TenancyId tenancy);
  bool refreshes(TenancyId tenancy) const { return refreshes_.has(tenancy); }

  // Warn the caller `grace` before `deadline`. Again: moves the date.
  void warn(ClaimId claim, Time deadline, Duration grace);
  void stop_warning(ClaimId claim);

  // What is due is taken off the calendar: the caller puts it back when it
  // knows the outcome.
  struct Duties {
    std::vector<TenancyId> refresh;
    std::vector<ClaimId> warn;
  };
  Duties due(Time now);

  Time next() const noexcept;

  std::size_t refreshing() const noexcept { return refreshes_.size(); }
  std::size_t warning() const noexcept { return warnings_.size(); }

 private:
  // A calendar with at most one date a key. A process may hold very many
  // leases, so it is lean: a heap, in which moved and erased dates stay behind
  // until they come up or are too many.
  class Agenda {
   public:
    Agenda() { dates_.max_load_factor(kLeanLoad); }
    void set(std::uint64_t key, Time when);
    void erase(std::uint64_t key);
    bool has(std::uint64_t key) const { return dates_.contains(key); }
    std::vector<std::uint64_t> take(Time now);
    Time next() const noexcept;
    std::size_t size() const noexcept { return dates_.size(); }

   private:
    using Entry = std::pair<Time, std::uint64_t>;
    bool stands(const Entry& entry) const;
    void pop();
    void tidy();

    std::vector<Entry> heap_;  // the earliest on top, and that one stands
    std::unordered_map<std::uint64_t, Time> dates_;
  };

  Agenda refreshes_;
  Agenda warnings_;
};

}  // namespace holdfast::core
