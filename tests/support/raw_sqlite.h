#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

struct sqlite3;

namespace holdfast::test {

// Looks at a database behind the engine's back.
class RawSqlite {
 public:
  explicit RawSqlite(const std::filesystem::path& file);
  ~RawSqlite();
  RawSqlite(const RawSqlite&) = delete;
  RawSqlite& operator=(const RawSqlite&) = delete;

  void run(const std::string& sql);  // fails the test if it cannot
  std::string text(const std::string& query);
  std::int64_t number(const std::string& query);

 private:
  sqlite3* db_ = nullptr;
};

}  // namespace holdfast::test
