#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/lock_record.h"
#include "engine/registry.h"
#include "engines/sqlite/sqlite_deputy.h"
#include "engines/sqlite/sqlite_doorbell.h"
#include "engines/sqlite/sqlite_options.h"
#include "engines/sqlite/sqlite_tables.h"

namespace holdfast::engines {

// sqlite:/path/file.db. Locks between the processes of one machine: runs the
// lock record on rows of a SQLite file, a batch a transaction.
engine::Registration sqlite_registration();

class SqliteEngine : public engine::Engine {
 public:
  static Result<std::unique_ptr<SqliteEngine>> open(const SqliteOptions& options,
                                                    const engine::EngineOptions& client);
  ~SqliteEngine() override;

  const Capabilities& capabilities() const noexcept override;
  void submit(std::size_t lane, std::span<const core::Command> batch, engine::Patience patience,
              engine::Done done) override;
  int doorbell_fd() const noexcept override { return doorbell_->fd(); }
  std::vector<engine::Ring> answer_doorbell() override;
  bool may_have_changed() override;
  void tidy() override;
  Result<std::vector<LockInfo>> list(std::string_view prefix) override;
  Result<LockInfo> show(std::string_view name) override;
  Result<std::optional<core::Value>> load_value(std::string_view name) override;
  Result<core::ValueOutcome> write_value(const core::ValueWrite& write) override;
  Result<std::vector<core::NamedValue>> list_values(std::string_view prefix) override;
  Result<void> init() override;
  Result<std::string> init_script() override;
  std::vector<Finding> doctor() override;

  // For the fork hooks. SQLite's book-keeping of file locks must not reach the
  // child: the connection is closed before, and opened again by its next use.
  void prepare_fork();
  void finish_fork();

 private:
  struct Entry;  // a lock that a batch works on
  struct Survey;

  SqliteEngine(SqliteOptions options, const engine::EngineOptions& client);

  // nullopt: others kept the file locked until then.
  std::optional<engine::Outcomes> try_until(base::Time until, std::span<const core::Command> batch);

  bool inherited() const noexcept;
  base::Time now() const;

  // All below: with mutex_ held.
  Result<void> connect();
  void disconnect_after(const Error& error);
  engine::Outcomes run(std::span<const core::Command> batch, std::vector<core::Wake>& wakes);
  std::optional<engine::Outcomes> look(std::span<const core::Command> batch);
  // nullopt: the tokens reach `ceiling`, which must be raised first.
  Result<std::optional<engine::Outcomes>> write(std::span<const core::Command> batch,
                                                std::vector<core::Wake>& wakes,
                                                std::uint64_t& ceiling);
  Result<engine::Outcomes> apply(std::span<const core::Command> batch,
                                 std::vector<core::Wake>& wakes, std::uint64_t& last_token,
                                 std::vector<Entry>& entries);
  Result<Entry> load(std::string_view name, std::uint64_t& token_floor);
  Result<void> store(const std::vector<Entry>& entries);
  Result<core::ValueOutcome> apply_durably(const core::ValueWrite& write);
  Result<core::ValueOutcome> apply(const core::ValueWrite& write);  // inside a transaction
  Result<void> forget_values();
  void tidy_up();
  Result<Survey> survey();
  Result<void> forget(std::span<const std::string> names,
                      std::span<const core::SessionId> sessions);
  Result<void> forget_own_session();
  Result<std::vector<LockInfo>> describe_from(std::string_view first, std::string_view prefix,
                                              bool only_first);
  void examine(std::vector<Finding>& findings);

  void ring(const std::vector<core::Wake>& wakes);

  const SqliteOptions options_;
  const engine::EngineOptions client_;
  const std::uint64_t generation_;
  std::unique_ptr<SqliteDoorbell> doorbell_;
  std::atomic<bool> missed_ring_{false};

  std::mutex mutex_;
  std::unique_ptr<SqliteTables> tables_;  // null while disconnected
  bool introduced_ = false;               // our row of `sessions` is there
  std::optional<std::int64_t> seen_version_;
  std::string encoded_;  // room that is used again

  std::optional<SqliteDeputy> deputy_{std::in_place};
};

}  // namespace holdfast::engines
