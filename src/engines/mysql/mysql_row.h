#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/ids.h"
#include "base/time.h"
#include "engines/mysql/mysql_lock.h"
#include "engines/mysql/mysql_session.h"

namespace holdfast::engines {

// A row that one of the reads of MysqlSql gave.
struct MysqlRow {
  bool is_clock_only = false;  // no lock: it only brings the time
  std::string_view name;
  std::uint64_t version = 0;
  std::uint64_t mark = 0;
  base::Time now{};  // by the server's clock
  LockRow row;
};

// What became of a wish of MysqlSql::ask.
struct MysqlVerdict {
  std::uint64_t version = 0;
  std::uint64_t mark = 0;
  std::uint64_t last_token = 0;
  base::Duration ttl{};
};
MysqlVerdict read_verdict(const MysqlReply& reply, std::size_t index);

base::Id read_id(const MysqlReply::Cell& cell);
MysqlRow read_row(const MysqlReply& reply, std::size_t index);

}  // namespace holdfast::engines
