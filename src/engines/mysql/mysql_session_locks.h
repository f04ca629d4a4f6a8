#pragma once

#include <holdfast/error.h>
#include <holdfast/inspect.h>
#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "core/commands.h"
#include "engine/engine.h"
#include "engines/mysql/mysql_options.h"
#include "engines/relational/lock_session.h"

namespace holdfast::engines {

// strategy=row, upsert and advisory: the server's own locks.
inline constexpr std::array<std::string_view, 3> kMysqlSessionStrategies{"row", "upsert",
                                                                         "advisory"};
bool is_session_strategy(std::string_view strategy);
Capabilities mysql_session_locks_row(std::string_view strategy);
Result<std::unique_ptr<engine::Engine>> open_mysql_session_locks(
    const MysqlOptions& options, const engine::EngineOptions& client);

// The statements; packets of several are separated by semicolons.
class MysqlSessionSql {
 public:
  MysqlSessionSql(const MysqlOptions& options, const Party& party);

  bool in_transaction() const noexcept { return strategy_ != "advisory"; }

  std::string settle(std::int64_t beacon) const;  // 1: lit
  // `version`: as the server gives it. One cell that is 1 if it was got; where
  // a row is locked, also no row at all; of an upsert, no answer but success.
  std::string try_lock(const relational::Wanted& wanted, std::string_view version) const;
  // One statement, for it is interrupted: if that fell between two of a packet, the server
  // would promise another answer and never give it. What must be said first goes before.
  std::string await_lock(const relational::Wanted& wanted) const;
  std::string before_await() const;
  bool answers() const noexcept { return strategy_ != "upsert"; }
  std::string free(const relational::Wanted& wanted) const;

  std::string know(const relational::Wanted& wanted) const;  // empty: nothing is needed
  std::string write(const relational::Books::Note& note) const;
  std::string strike(const std::vector<core::RequestId>& requests) const;
  // One row with a cell each; then the requests that are revoked.
  std::string look(
      const std::vector<std::pair<core::RequestId, relational::Identity>>& holds) const;
  static std::string is_alive(const relational::Identity& session);
  std::string revoke(std::string_view key) const;
  std::string holders(std::string_view key) const;  // connections and beacons
  std::string find(std::string_view prefix) const;
  std::string tidy() const;
  bool owns_rows() const noexcept { return own_rows_; }
  std::string unused_names() const;
  std::string forget_name(std::string_view key) const;
  std::string create() const;

 private:
  std::string lock_name(const relational::Wanted& wanted) const;  // of GET_LOCK
  std::string upsert(const std::string& key) const;
  std::string select(const std::string& key) const;

  const std::string strategy_;
  const std::string prefix_;
  const std::string rows_;   // the table whose rows are locked
  const std::string name_;   // its column
  const std::string notes_;  // who holds and waits
  const bool own_rows_;      // the table with the rows is ours alone
  const Party party_;
};

}  // namespace holdfast::engines
