#include "support/raw_sqlite.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

namespace holdfast::test {

RawSqlite::RawSqlite(const std::filesystem::path& file) {
  EXPECT_EQ(sqlite3_open(file.c_str(), &db_), SQLITE_OK);
  sqlite3_busy_timeout(db_, 30'000);
}

RawSqlite::~RawSqlite() {
  sqlite3_close(db_);
}

void RawSqlite::run(const std::string& sql) {
  EXPECT_EQ(sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
      << sql << ": " << sqlite3_errmsg(db_);
}

std::string RawSqlite::text(const std::string& query) {
  sqlite3_stmt* statement = nullptr;
  EXPECT_EQ(sqlite3_prepare_v2(db_, query.c_str(), -1, &statement, nullptr), SQLITE_OK)
      << query << ": " << sqlite3_errmsg(db_);
  std::string value;
  if (sqlite3_step(statement) == SQLITE_ROW) {
    const void* bytes = sqlite3_column_blob(statement, 0);
    value.assign(static_cast<const char*>(bytes == nullptr ? "" : bytes),
                 static_cast<std::size_t>(sqlite3_column_bytes(statement, 0)));
  }
  sqlite3_finalize(statement);
  return value;
}

std::int64_t RawSqlite::number(const std::string& query) {
  const std::string value = text("SELECT CAST((" + query + ") AS TEXT)");
  return value.empty() ? 0 : std::stoll(value);
}

}  // namespace holdfast::test
