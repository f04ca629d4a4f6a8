#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/driver.h"
#include "engine/registry.h"
#include "engines/mysql/mysql_clerk.h"
#include "engines/mysql/mysql_doorbell.h"
#include "engines/mysql/mysql_exchange.h"
#include "engines/mysql/mysql_options.h"
#include "engines/mysql/mysql_sql.h"

namespace holdfast::engines {

// mysql://user@host/database: locks in a table of MySQL or MariaDB.
engine::Registration mysql_registration();

class MysqlEngine : public engine::Engine {
 public:
  MysqlEngine(MysqlOptions options, const engine::EngineOptions& client);
  ~MysqlEngine() override;

  const Capabilities& capabilities() const noexcept override;
  std::size_t lanes() const noexcept override { return exchanges_.size(); }
  void submit(std::size_t lane, std::span<const core::Command> batch, engine::Patience patience,
              engine::Done done) override;
  base::Duration ride() const noexcept override { return std::chrono::milliseconds{1}; }
  int doorbell_fd() const noexcept override { return doorbell_.fd(); }
  std::vector<engine::Ring> answer_doorbell() override;
  void tidy() override;
  Result<std::string> fence_sql(std::string_view name, std::uint64_t token) override;
  Result<void> guard(std::string_view name, std::uint64_t token,
                     const engine::NativeConnection& connection, engine::AfterGuard after) override;
  Result<std::vector<LockInfo>> list(std::string_view prefix) override;
  Result<LockInfo> show(std::string_view name) override;
  Result<std::optional<core::Value>> load_value(std::string_view name) override;
  Result<core::ValueOutcome> write_value(const core::ValueWrite& write) override;
  Result<std::vector<core::NamedValue>> list_values(std::string_view prefix) override;
  Result<void> init() override;
  Result<std::string> init_script() override;
  std::vector<Finding> doctor() override;

 private:
  bool inherited() const noexcept;

  const MysqlOptions options_;
  const engine::EngineOptions client_;
  const std::uint64_t generation_;
  MysqlSql sql_;
  MysqlDoorbell doorbell_;
  std::vector<std::unique_ptr<MysqlExchange>> exchanges_;
  // Ends before what it drives.
  std::unique_ptr<engine::Driver> driver_;
  MysqlClerk clerk_;
  std::mutex fences_mutex_;
  std::map<std::string, std::uint64_t, std::less<>> fences_;  // that we know of, for these tokens
};

}  // namespace holdfast::engines
