#pragma once

#include <holdfast/error.h>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

struct st_mysql;
struct st_mysql_stmt;

namespace holdfast::engines {

// One prepared statement on a connection of the user's own; blocks.
class MysqlStatement {
 public:
  using Value = std::variant<std::int64_t, std::string>;

  explicit MysqlStatement(st_mysql* connection) noexcept;
  ~MysqlStatement();
  MysqlStatement(const MysqlStatement&) = delete;
  MysqlStatement& operator=(const MysqlStatement&) = delete;

  Result<void> run(std::string_view sql, const std::vector<Value>& values);
  std::uint64_t rows_changed() const;

  // The first column of all rows: integers as such, all else as text.
  Result<std::vector<Value>> first_column();

  static Error error_of(unsigned code, const char* text);

 private:
  Error error() const;

  st_mysql* connection_;
  st_mysql_stmt* statement_;
};

}  // namespace holdfast::engines
