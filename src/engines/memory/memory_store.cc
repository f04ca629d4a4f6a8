#include "engines/memory/memory_store.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "base/fork.h"
#include "engine/batch.h"
#include "engine/describe.h"

namespace holdfast::engines {
namespace {

// All stores of the process. Never destroyed: a Client may outlive main().
struct Directory {
  std::mutex mutex;
  // A forked child finds no store of its parent's: those holders are not here.
  std::map<std::pair<std::uint64_t, std::string>, std::weak_ptr<MemoryStore>> stores;
};

Directory& directory() {
  static auto* const instance = [] {
    base::on_fork({.before = [] { directory().mutex.lock(); },
                   .in_parent = [] { directory().mutex.unlock(); },
                   .in_child = [] { directory().mutex.unlock(); }});
    return new Directory;
  }();
  return *instance;
}

// Above every token of the stores that are gone: one that is opened later
// under the same name must not start below.
std::atomic<std::uint64_t> floor_of_the_gone{1};

void raise_floor_of_the_gone(std::uint64_t to) {
  std::uint64_t now = floor_of_the_gone.load();
  while (now < to && !floor_of_the_gone.compare_exchange_weak(now, to)) {
  }
}

}  // namespace

MemoryStore::MemoryStore() : token_floor_{floor_of_the_gone.load()} {}

std::shared_ptr<MemoryStore> MemoryStore::open(const std::string& name) {
  Directory& all = directory();
  const std::lock_guard lock{all.mutex};
  std::erase_if(all.stores, [](const auto& entry) { return entry.second.expired(); });
  auto& slot = all.stores[{base::fork_generation(), name}];
  auto store = slot.lock();
  if (!store) {
    store = std::make_shared<MemoryStore>();
    slot = store;
  }
  return store;
}

void MemoryStore::attach(const core::SessionId& session, const Party& party,
                         std::shared_ptr<engine::Bell> doorbell) {
  const std::lock_guard lock{mutex_};
  sessions_[session] = {.party = party, .doorbell = std::move(doorbell)};
}

void MemoryStore::detach(const core::SessionId& session) {
  const std::lock_guard lock{mutex_};
  if (const auto found = sessions_.find(session); found != sessions_.end()) {
    found->second.doorbell = nullptr;
  }
  forget_dead_sessions();
  // This may have been the last.
  raise_floor_of_the_gone(token_floor_);
  for (const auto& [name, record] : records_) {
    raise_floor_of_the_gone(record.last_token() + 1);
  }
  for (const auto& [name, value] : values_) {
    raise_floor_of_the_gone(value.version + 1);
  }
}

engine::Outcomes MemoryStore::apply(std::span<const core::Command> batch,
                                    const engine::EngineOptions& client) {
  engine::Outcomes outcomes;
  outcomes.reserve(batch.size());
  std::vector<core::Wake> wakes;
  const std::lock_guard lock{mutex_};
  // Read under the lock: time must not run backwards for a record.
  core::LockRecord::Context context = engine::moment(client);
  context.token_floor = std::max(context.token_floor, token_floor_);
  for (const core::Command& command : batch) {
    if (auto good = engine::check_name(command.name); !good) {
      outcomes.push_back(engine::failed(std::move(good.error())));
      continue;
    }
    const auto entry = records_.try_emplace(command.name).first;
    outcomes.push_back(entry->second.apply(command.operation, context, wakes));
    if (entry->second.idle()) {
      forget(entry);
    }
    context.token_floor = std::max(context.token_floor, token_floor_);
  }
  ring(wakes);
  return outcomes;
}

MemoryStore::Records::iterator MemoryStore::forget(Records::iterator entry) {
  token_floor_ = std::max(token_floor_, entry->second.last_token() + 1);
  return records_.erase(entry);
}

void MemoryStore::tidy(const core::LockRecord::Context& now) {
  const std::lock_guard lock{mutex_};
  for (auto entry = records_.begin(); entry != records_.end();) {
    entry = entry->second.idle_from() <= now.now ? forget(entry) : std::next(entry);
  }
  std::erase_if(values_, [&](const auto& entry) {
    const bool gone = entry.second.forgettable(now.token_floor);
    token_floor_ = gone ? std::max(token_floor_, entry.second.version + 1) : token_floor_;
    return gone;
  });
  forget_dead_sessions();
}

void MemoryStore::forget_dead_sessions() {
  std::erase_if(sessions_, [&](const auto& entry) {
    const auto mentions = [&](const auto& party) { return party.session == entry.first; };
    return !entry.second.doorbell &&
           std::none_of(records_.begin(), records_.end(), [&](const auto& named) {
             const core::LockRecord& record = named.second;
             return std::any_of(record.holders().begin(), record.holders().end(), mentions) ||
                    std::any_of(record.queue().begin(), record.queue().end(), mentions);
           });
  });
}

Party MemoryStore::party_of(const core::SessionId& session) const {
  const auto found = sessions_.find(session);
  return found == sessions_.end() ? Party{} : found->second.party;
}

void MemoryStore::ring(const std::vector<core::Wake>& wakes) {
  if (!wakes.empty()) {
    version_.fetch_add(1, std::memory_order_release);
  }
  for (const core::Wake& wake : wakes) {
    const auto found = sessions_.find(wake.session);
    if (found != sessions_.end() && found->second.doorbell) {
      found->second.doorbell->ring({.id = wake.id, .token = wake.token});
    }
  }
}

std::vector<LockInfo> MemoryStore::list(std::string_view prefix, base::Time now) {
  const std::lock_guard lock{mutex_};
  std::vector<LockInfo> all;
  for (const auto& [name, record] : records_) {
    if (name.starts_with(prefix)) {
      LockInfo info = engine::describe(name, record, now,
                                       [&](const auto& session) { return party_of(session); });
      if (!info.holders.empty() || !info.queue.empty()) {
        all.push_back(std::move(info));
      }
    }
  }
  std::sort(all.begin(), all.end(),
            [](const LockInfo& a, const LockInfo& b) { return a.name < b.name; });
  return all;
}

LockInfo MemoryStore::show(std::string_view name, base::Time now) {
  const std::lock_guard lock{mutex_};
  const auto found = records_.find(std::string{name});
  return engine::describe(std::string{name},
                          found == records_.end() ? core::LockRecord{} : found->second, now,
                          [&](const auto& session) { return party_of(session); });
}

}  // namespace holdfast::engines
