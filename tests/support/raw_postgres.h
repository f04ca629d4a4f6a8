#pragma once

#include <string>
#include <vector>

struct pg_conn;

namespace holdfast::test {

// PostgreSQL without us in between. Throws on errors.
class RawPostgres {
 public:
  using Row = std::vector<std::string>;  // NULL is ""

  explicit RawPostgres(const std::string& conninfo);
  ~RawPostgres();
  RawPostgres(const RawPostgres&) = delete;
  RawPostgres& operator=(const RawPostgres&) = delete;

  std::vector<Row> rows(const std::string& sql);
  void run(const std::string& sql) { rows(sql); }
  std::string value(const std::string& sql) { return rows(sql).at(0).at(0); }

  pg_conn* get() const noexcept { return connection_; }

 private:
  pg_conn* connection_;
};

}  // namespace holdfast::test
