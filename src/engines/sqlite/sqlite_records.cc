#include "engines/sqlite/sqlite_records.h"

#include <algorithm>

namespace holdfast::engines {

std::int64_t until_of(const core::LockRecord& record) noexcept {
  base::Time latest{};
  for (const core::Holder& holder : record.holders()) {
    latest = std::max(latest, holder.expires);
  }
  for (const core::Waiter& waiter : record.queue()) {
    latest = std::max(latest, waiter.expires);
  }
  return latest.time_since_epoch().count();
}

bool mentions(const core::LockRecord& record, const core::SessionId& session) noexcept {
  const auto same = [&](const auto& party) { return party.session == session; };
  return std::any_of(record.holders().begin(), record.holders().end(), same) ||
         std::any_of(record.queue().begin(), record.queue().end(), same);
}

}  // namespace holdfast::engines
