// The values of a MemoryStore.
#include <utility>

#include "engine/batch.h"
#include "engines/memory/memory_store.h"

namespace holdfast::engines {

std::optional<core::Value> MemoryStore::load_value(std::string_view name, core::Micros now) {
  const std::lock_guard lock{mutex_};
  const auto found = values_.find(name);
  if (found == values_.end()) {
    return std::nullopt;
  }
  return found->second.seen(now);
}

core::ValueOutcome MemoryStore::write_value(const core::ValueWrite& write,
                                            const engine::EngineOptions& client) {
  const std::lock_guard lock{mutex_};
  const auto found = values_.find(write.name);
  std::optional<core::ValueRecord> record;
  if (found != values_.end()) {
    record = std::move(found->second);
  }
  const core::ValueOutcome outcome =
      core::apply(record, write, engine::moment(client).token_floor, token_floor_);
  if (found != values_.end()) {
    found->second = *std::move(record);
  } else if (record) {
    values_.emplace(write.name, *std::move(record));
  }
  return outcome;
}

std::vector<core::NamedValue> MemoryStore::list_values(std::string_view prefix, core::Micros now) {
  const std::lock_guard lock{mutex_};
  std::vector<core::NamedValue> all;
  for (auto entry = values_.lower_bound(prefix);
       entry != values_.end() && entry->first.starts_with(prefix); ++entry) {
    if (entry->second.bytes) {
      all.push_back({.name = entry->first, .value = entry->second.seen(now)});
    }
  }
  return all;
}

}  // namespace holdfast::engines
