#pragma once

#include <holdfast/error.h>
#include <holdfast/inspect.h>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/value_record.h"
#include "engine/driver.h"
#include "engines/mysql/mysql_session.h"
#include "engines/mysql/mysql_sql.h"

namespace holdfast::engines {

// What makes the table of values; safe to run again.
std::string values_schema(const MysqlOptions& options);

// What is not locking: looking around, making tables, keeping house. On a
// connection of its own, which is open only while it is used. Thread-safe;
// blocks.
class MysqlClerk {
 public:
  MysqlClerk(const MysqlOptions& options, const MysqlSql& sql, engine::Driver& driver);

  // Tests only: the store's time, in place of the server's, for values.
  void set_now(std::function<base::Time()> now) { now_ = std::move(now); }

  Result<std::vector<LockInfo>> list(std::string_view prefix);
  Result<LockInfo> show(std::string_view name);
  Result<void> init();
  std::vector<Finding> doctor();
  void tidy();
  Result<std::optional<core::Value>> load_value(std::string_view name);
  Result<core::ValueOutcome> write_value(const core::ValueWrite& write);
  Result<std::vector<core::NamedValue>> list_values(std::string_view prefix);
  // Sees to it that the name has a fence, for the holder with this token.
  // lease_lost: there is no such holder.
  Result<void> make_fence(std::string_view name, std::uint64_t token);

  void forget() noexcept { session_.forget(); }

 private:
  Result<void> connect();
  Result<void> run(std::string packet);
  Result<std::string> ask(std::string question);  // the first cell of the last answer
  bool no_tables() const;
  Result<std::vector<LockInfo>> described();
  Result<void> tidy_some();
  std::string clock() const;  // an expression
  Result<void> run_on_values(const std::string& packet);
  Result<void> look_at_values(const std::string& packet);
  void forget_values();
  bool is_in_a_cluster();  // or cannot say
  Result<bool> try_to_make_fence(std::string_view name, std::uint64_t token);
  void examine(std::vector<Finding>& findings);
  void examine_settings(std::vector<Finding>& findings);
  void examine_replication(std::vector<Finding>& findings);
  std::string ask_first(std::initializer_list<const char*> names);
  void examine_speed(std::vector<Finding>& findings);
  void examine_doorbell(std::vector<Finding>& findings);

  const MysqlOptions& options_;
  const MysqlSql& sql_;
  engine::Driver& driver_;
  std::function<base::Time()> now_;
  std::mutex mutex_;
  MysqlSession session_;
  std::string tidied_to_;
};

}  // namespace holdfast::engines
