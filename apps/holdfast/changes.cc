#include "changes.h"

#include <algorithm>

namespace holdfast::command {
namespace {

bool same_party(const Party& a, const Party& b) {
  return a.pid == b.pid && a.host == b.host && a.label == b.label;
}

bool same(const HolderInfo& a, const HolderInfo& b) {
  return a.token == b.token && a.mode == b.mode && a.permits == b.permits &&
         same_party(a.party, b.party);
}

bool same(const WaiterInfo& a, const WaiterInfo& b) {
  return a.mode == b.mode && a.permits == b.permits && same_party(a.party, b.party);
}

// Takes one entry like `wanted` out of `entries`; several may look the same.
template <typename Entry>
std::optional<Entry> take(std::vector<Entry>& entries, const Entry& wanted) {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const Entry& entry) { return same(entry, wanted); });
  if (found == entries.end()) {
    return std::nullopt;
  }
  Entry entry = *found;
  entries.erase(found);
  return entry;
}

Change change_of(Happening what, const std::string& name, const HolderInfo& holder) {
  return {what, name, holder.party, holder.mode, holder.permits, holder.token, 0};
}

Change change_of(Happening what, const std::string& name, const WaiterInfo& waiter) {
  return {what, name, waiter.party, waiter.mode, waiter.permits, std::nullopt, 0};
}

bool now_holds(const std::vector<HolderInfo>& newcomers, const WaiterInfo& waiter) {
  return std::any_of(newcomers.begin(), newcomers.end(), [&](const HolderInfo& holder) {
    return holder.mode == waiter.mode && same_party(holder.party, waiter.party);
  });
}

}  // namespace

std::string_view to_string(Happening happening) noexcept {
  switch (happening) {
    case Happening::acquired:
      return "acquired";
    case Happening::queued:
      return "queued";
    case Happening::revoked:
      return "revoked";
    case Happening::released:
      return "released";
    case Happening::expired:
      return "expired";
    case Happening::left:
      return "left";
  }
  return "";
}

void Changes::compare(const std::string& name, const Seen& before, const Seen& after,
                      std::vector<Change>& changes) {
  const std::size_t first = changes.size();
  std::vector<HolderInfo> holders = after.holders;  // what remains came anew
  std::vector<WaiterInfo> waiters = after.queue;
  for (const HolderInfo& holder : before.holders) {
    const auto still = take(holders, holder);
    if (!still) {
      const bool ran_out = before.at + holder.expires_in <= after.at;
      changes.push_back(
          change_of(ran_out ? Happening::expired : Happening::released, name, holder));
    } else if (still->revoked && !holder.revoked) {
      changes.push_back(change_of(Happening::revoked, name, *still));
    }
  }
  for (const WaiterInfo& waiter : before.queue) {
    if (!take(waiters, waiter) && !now_holds(holders, waiter)) {
      changes.push_back(change_of(Happening::left, name, waiter));
    }
  }
  for (const HolderInfo& holder : holders) {
    changes.push_back(change_of(Happening::acquired, name, holder));
    if (holder.revoked) {
      changes.push_back(change_of(Happening::revoked, name, holder));
    }
  }
  for (const WaiterInfo& waiter : waiters) {
    changes.push_back(change_of(Happening::queued, name, waiter));
  }
  for (std::size_t i = first; i < changes.size(); ++i) {
    changes[i].queue = after.queue.size();
  }
}

std::vector<Change> Changes::look(const std::vector<LockInfo>& locks, Instant now) {
  std::vector<Lock> after;
  after.reserve(locks.size());
  for (const LockInfo& lock : locks) {
    after.push_back({lock.name, {lock.holders, lock.queue, now}});
  }
  const auto by_name = [](const Lock& a, const Lock& b) { return a.name < b.name; };
  std::sort(after.begin(), after.end(), by_name);

  std::vector<Change> changes;
  const Seen nothing{{}, {}, now};
  auto old = before_.begin();
  for (const Lock& lock : after) {
    for (; old != before_.end() && old->name < lock.name; ++old) {
      compare(old->name, old->seen, nothing, changes);
    }
    const bool known = old != before_.end() && old->name == lock.name;
    compare(lock.name, known ? old->seen : nothing, lock.seen, changes);
    if (known) {
      ++old;
    }
  }
  for (; old != before_.end(); ++old) {
    compare(old->name, old->seen, nothing, changes);
  }
  before_ = std::move(after);
  return changes;
}

}  // namespace holdfast::command
