#pragma once

#include <holdfast/error.h>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/time.h"
#include "engines/sqlite/sqlite_sql.h"

struct sqlite3;
struct sqlite3_stmt;

// The only door to SQLite's own interface.
namespace holdfast::engines {

class SqliteSession;

// One run of a prepared statement; the statement is free again afterwards.
// What is bound must outlive the run; what is read lives until next().
class SqliteRun {
 public:
  SqliteRun(SqliteSession& session, Sql sql);
  ~SqliteRun();
  SqliteRun(const SqliteRun&) = delete;
  SqliteRun& operator=(const SqliteRun&) = delete;

  SqliteRun& blob(int index, std::string_view bytes);
  SqliteRun& text(int index, std::string_view text);
  SqliteRun& integer(int index, std::int64_t value);
  SqliteRun& null(int index);

  Result<bool> next();    // true: there is a row
  Result<void> finish();  // for statements without rows

  std::string_view bytes(int column) const;
  std::int64_t integer(int column) const;

 private:
  SqliteSession& session_;
  sqlite3_stmt* statement_ = nullptr;
  int trouble_ = 0;
};

enum class Durability : std::uint8_t {
  ordered,   // commits survive the death of processes
  power_cut  // each commit survives the death of the machine
};

// One connection. Not thread-safe. Errors are `unavailable` with SQLite's
// extended code, and nothing was applied unless they say otherwise.
class SqliteSession {
 public:
  static Result<std::unique_ptr<SqliteSession>> open(const std::string& path,
                                                     base::Duration busy_timeout);
  ~SqliteSession();
  SqliteSession(const SqliteSession&) = delete;
  SqliteSession& operator=(const SqliteSession&) = delete;

  Result<void> execute(const char* sql);
  Result<std::int64_t> number(Sql sql);
  Result<std::string> word(Sql sql);

  // Not inside a transaction.
  Result<void> set_durability(Durability durability);

  Result<void> begin_write();
  // outcome_unknown if SQLite cannot tell whether the disk has it.
  Result<void> commit();
  void roll_back() noexcept;

  // The file was deleted or replaced under us.
  bool moved() const noexcept;

  void set_busy_timeout(base::Duration timeout) noexcept { busy_timeout_ = timeout; }
  // Closing then writes nothing: it is quick, and leaves a stranger's file alone.
  void close_without_checkpoint() noexcept;

  static std::string version();

 private:
  friend class SqliteRun;
  SqliteSession() = default;
  Error error(int code) const;
  sqlite3_stmt* prepared(Sql sql, int& trouble);
  static int when_busy(void* session, int times) noexcept;

  sqlite3* db_ = nullptr;
  std::string path_;
  std::array<sqlite3_stmt*, kSqliteSql.size()> statements_{};
  base::Duration busy_timeout_{};
  base::Time busy_since_{};
};

bool is_busy(const Error& error) noexcept;
bool is_not_a_database(const Error& error) noexcept;
// Whether the connection is as good as before.
bool is_passing(const Error& error) noexcept;

}  // namespace holdfast::engines
