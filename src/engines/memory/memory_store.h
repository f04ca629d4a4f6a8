#pragma once

#include <holdfast/inspect.h>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/lock_record.h"
#include "core/value_record.h"
#include "engine/bell.h"
#include "engine/engine.h"

namespace holdfast::engines {

// One named set of locks in this process. Thread-safe.
class MemoryStore {
 public:
  MemoryStore();

  // The store of that name; the same one for all who have it open.
  static std::shared_ptr<MemoryStore> open(const std::string& name);

  void attach(const core::SessionId& session, const Party& party,
              std::shared_ptr<engine::Bell> doorbell);
  void detach(const core::SessionId& session);

  engine::Outcomes apply(std::span<const core::Command> batch, const engine::EngineOptions& client);
  void tidy(const core::LockRecord::Context& now);
  std::vector<LockInfo> list(std::string_view prefix, base::Time now);
  LockInfo show(std::string_view name, base::Time now);

  std::optional<core::Value> load_value(std::string_view name, core::Micros now);
  core::ValueOutcome write_value(const core::ValueWrite& write,
                                 const engine::EngineOptions& client);
  std::vector<core::NamedValue> list_values(std::string_view prefix, core::Micros now);

  // Rises whenever somebody had to be woken.
  std::uint64_t version() const noexcept { return version_.load(std::memory_order_acquire); }

 private:
  struct Session {
    Party party;
    std::shared_ptr<engine::Bell> doorbell;  // null once its engine is gone
  };

  using Records = std::unordered_map<std::string, core::LockRecord>;

  Records::iterator forget(Records::iterator entry);
  void forget_dead_sessions();
  Party party_of(const core::SessionId& session) const;
  void ring(const std::vector<core::Wake>& wakes);

  std::mutex mutex_;
  Records records_;
  std::map<std::string, core::ValueRecord, std::less<>> values_;
  std::unordered_map<core::SessionId, Session> sessions_;
  // Above every token, and every version, of the names that were forgotten.
  std::uint64_t token_floor_;
  std::atomic<std::uint64_t> version_{1};
};

}  // namespace holdfast::engines
