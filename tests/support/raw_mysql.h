#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

struct st_mysql;

namespace holdfast::test {

// Talks to a MySQL or MariaDB server as any other program would.
class RawMysql {
 public:
  explicit RawMysql(const std::string& port, const std::string& user = "root",
                    const std::string& database = "holdfast");

  // The rows, every cell as text ("NULL" for NULL). Throws what goes wrong.
  std::vector<std::vector<std::string>> ask(const std::string& statement);
  std::string ask_one(const std::string& statement);   // the first cell
  std::uint64_t change(const std::string& statement);  // the rows affected
  unsigned error_of(const std::string& statement);     // 0: it succeeded

  st_mysql* get() { return mysql_.get(); }

 private:
  struct Close {
    void operator()(st_mysql* mysql) const noexcept;
  };
  std::unique_ptr<st_mysql, Close> mysql_;
};

}  // namespace holdfast::test
