#pragma once

#include <optional>
#include <string>

#include "support/raw_postgres.h"

namespace holdfast::test {

// A schema of its own in the PostgreSQL server that all tests share, or in
// another; dropped with the object.
class PostgresStore {
 public:
  PostgresStore();  // in the shared server
  explicit PostgresStore(const std::string& port, std::string strategy = "lease");
  ~PostgresStore();
  PostgresStore(const PostgresStore&) = delete;
  PostgresStore& operator=(const PostgresStore&) = delete;

  // With further options: "timeout=1s&strategy=row".
  std::string url(const std::string& options = "") const;
  std::string url_of(const std::string& user, const std::string& options = "") const;
  const std::string& port() const noexcept { return port_; }
  const std::string& schema() const noexcept { return schema_; }
  std::string conninfo() const;

  RawPostgres& sql();  // connects when first used

 private:
  const std::string port_;
  const std::string strategy_;
  const std::string schema_;
  std::optional<RawPostgres> sql_;
};

// nullopt if the programs are there.
std::optional<std::string> missing_postgres();

}  // namespace holdfast::test
