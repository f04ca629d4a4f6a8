#include "engine/describe.h"

#include <utility>

namespace holdfast::engine {

LockInfo describe(std::string name, const core::LockRecord& record, base::Time now,
                  const PartyOf& party_of) {
  LockInfo info;
  info.name = std::move(name);
  for (const core::Holder& holder : record.holders()) {
    if (holder.expires > now) {
      info.holders.push_back({.party = party_of(holder.session),
                              .mode = holder.shape.mode,
                              .permits = holder.shape.permits,
                              .token = holder.token,
                              .held_for = now - holder.since,
                              .expires_in = holder.expires - now,
                              .revoked = holder.revoked});
    }
  }
  for (const core::Waiter& waiter : record.queue()) {
    if (waiter.expires > now) {
      info.queue.push_back({.party = party_of(waiter.session),
                            .mode = waiter.shape.mode,
                            .permits = waiter.shape.permits,
                            .waiting_for = now - waiter.since});
    }
  }
  info.limit = info.holders.empty() && info.queue.empty() ? 0 : record.limit();
  return info;
}

}  // namespace holdfast::engine
