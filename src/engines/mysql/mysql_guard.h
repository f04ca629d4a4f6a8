#pragma once

#include <holdfast/error.h>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/engine.h"
#include "engines/mysql/mysql_options.h"

struct st_mysql;

// The user's connection, and the user's patience: these calls block.
namespace holdfast::engines {

// The row that a grant relies on.
class MysqlFence {
 public:
  MysqlFence(const MysqlOptions& options, std::string_view name, std::uint64_t token);

  std::string condition() const { return "EXISTS (" + select_ + ")"; }
  const std::string& select() const noexcept { return select_; }

 private:
  std::string select_;
};

// invalid_argument: there is none open.
Result<void> check_transaction(st_mysql* connection);
// Checks the fence in the open transaction; rolls back unless it holds.
Result<void> guard_transaction(st_mysql* connection, const MysqlFence& fence,
                               engine::AfterGuard after);
void roll_back(st_mysql* connection);

}  // namespace holdfast::engines
