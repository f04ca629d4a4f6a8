#include "engines/sqlite/sqlite_session.h"

#include <sched.h>
#include <sqlite3.h>

#include <algorithm>
#include <utility>

namespace holdfast::engines {
namespace {

using namespace std::chrono_literals;

int primary(int code) {
  return code & 0xff;
}

std::string explanation(int code) {
  switch (primary(code)) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return "another process kept the database locked for longer than busy_timeout";
    case SQLITE_FULL:
      return "the disk is full; free some space";
    case SQLITE_READONLY:
      return "the database cannot be written; check the permissions of the file and its directory";
    case SQLITE_CANTOPEN:
      return "the database cannot be opened; check the permissions of the file and its directory";
    case SQLITE_CORRUPT:
      return "the database is damaged; stop the programs that use it and move the file away "
             "together with its -wal file: a new one starts without locks";
    case SQLITE_NOTADB:
      return "the file is no SQLite database";
    case SQLITE_IOERR:
      return "the disk failed to read or write";
    default:
      return "";
  }
}

}  // namespace

SqliteRun::SqliteRun(SqliteSession& session, Sql sql)
    : session_{session}, statement_{session.prepared(sql, trouble_)} {}

SqliteRun::~SqliteRun() {
  if (statement_ != nullptr) {
    sqlite3_reset(statement_);
  }
}

SqliteRun& SqliteRun::blob(int index, std::string_view bytes) {
  if (trouble_ == SQLITE_OK) {
    // A null pointer would be NULL, not an empty blob.
    const char* data = bytes.empty() ? "" : bytes.data();
    trouble_ = sqlite3_bind_blob64(statement_, index, data, bytes.size(), SQLITE_STATIC);
  }
  return *this;
}

SqliteRun& SqliteRun::text(int index, std::string_view text) {
  if (trouble_ == SQLITE_OK) {
    const char* data = text.empty() ? "" : text.data();
    trouble_ =
        sqlite3_bind_text64(statement_, index, data, text.size(), SQLITE_STATIC, SQLITE_UTF8);
  }
  return *this;
}

SqliteRun& SqliteRun::integer(int index, std::int64_t value) {
  if (trouble_ == SQLITE_OK) {
    trouble_ = sqlite3_bind_int64(statement_, index, value);
  }
  return *this;
}

SqliteRun& SqliteRun::null(int index) {
  if (trouble_ == SQLITE_OK) {
    trouble_ = sqlite3_bind_null(statement_, index);
  }
  return *this;
}

Result<bool> SqliteRun::next() {
  const int code = trouble_ == SQLITE_OK ? sqlite3_step(statement_) : trouble_;
  if (code == SQLITE_ROW || code == SQLITE_DONE) {
    return code == SQLITE_ROW;
  }
  return tl::unexpected{session_.error(code)};
}

Result<void> SqliteRun::finish() {
  return next().map([](bool) {});
}

std::string_view SqliteRun::bytes(int column) const {
  const void* data = sqlite3_column_blob(statement_, column);
  const int size = sqlite3_column_bytes(statement_, column);
  return data == nullptr
             ? std::string_view{}
             : std::string_view{static_cast<const char*>(data), static_cast<std::size_t>(size)};
}

std::int64_t SqliteRun::integer(int column) const {
  return sqlite3_column_int64(statement_, column);
}

Result<std::unique_ptr<SqliteSession>> SqliteSession::open(const std::string& path,
                                                           base::Duration busy_timeout) {
  std::unique_ptr<SqliteSession> session{new SqliteSession};
  session->path_ = path;
  session->busy_timeout_ = busy_timeout;
  // We lock around the connection ourselves. CREATE only for file systems on
  // which create_if_missing() could not.
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX |
                    SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_EXRESCODE;
  const int code = sqlite3_open_v2(path.c_str(), &session->db_, flags, nullptr);
  if (code != SQLITE_OK) {
    return tl::unexpected{session->error(code)};
  }
  sqlite3_busy_handler(session->db_, &when_busy, session.get());
  sqlite3_db_config(session->db_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  return session;
}

SqliteSession::~SqliteSession() {
  for (sqlite3_stmt* statement : statements_) {
    sqlite3_finalize(statement);
  }
  sqlite3_close(db_);
}

// Others' transactions last some ten microseconds; SQLite's own steps, of
// milliseconds at once, would be most of the time between release and entry.
int SqliteSession::when_busy(void* session, int times) noexcept {
  auto& self = *static_cast<SqliteSession*>(session);
  if (times == 0) {
    self.busy_since_ = base::BootClock::now();
  } else if (base::BootClock::now() - self.busy_since_ >= self.busy_timeout_) {
    return 0;
  }
  if (times < 4) {
    sched_yield();
  } else {
    base::sleep_for(std::min<base::Duration>(20us * (1 << std::min(times - 4, 8)), 5ms));
  }
  return 1;
}

Error SqliteSession::error(int code) const {
  std::string text = explanation(code);
  if (text.empty()) {
    text = db_ != nullptr && code != SQLITE_MISUSE ? sqlite3_errmsg(db_) : sqlite3_errstr(code);
  }
  return {ErrorCode::unavailable, path_ + ": " + text, code};
}

sqlite3_stmt* SqliteSession::prepared(Sql sql, int& trouble) {
  const auto index = static_cast<std::size_t>(sql);
  sqlite3_stmt*& statement = statements_.at(index);
  if (statement == nullptr) {
    trouble = sqlite3_prepare_v3(db_, kSqliteSql.at(index), -1, SQLITE_PREPARE_PERSISTENT,
                                 &statement, nullptr);
  }
  return statement;
}

Result<void> SqliteSession::execute(const char* sql) {
  const int code = sqlite3_exec(db_, sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) {
    return tl::unexpected{error(code)};
  }
  return {};
}

Result<std::int64_t> SqliteSession::number(Sql sql) {
  SqliteRun run{*this, sql};
  return run.next().map([&](bool row) { return row ? run.integer(0) : 0; });
}

Result<std::string> SqliteSession::word(Sql sql) {
  SqliteRun run{*this, sql};
  return run.next().map([&](bool row) { return row ? std::string{run.bytes(0)} : ""; });
}

Result<void> SqliteSession::set_durability(Durability durability) {
  return execute(durability == Durability::power_cut ? "PRAGMA synchronous = FULL"
                                                     : "PRAGMA synchronous = NORMAL");
}

Result<void> SqliteSession::begin_write() {
  return SqliteRun{*this, Sql::begin_write}.finish();
}

Result<void> SqliteSession::commit() {
  auto committed = SqliteRun{*this, Sql::commit}.finish();
  if (!committed) {
    // Still in the transaction, it can be taken back for certain; and what
    // does not fit on the disk is not there. Else a sync may have failed after
    // the write.
    const bool unknown = sqlite3_get_autocommit(db_) != 0 &&
                         primary(committed.error().native.value_or(0)) != SQLITE_FULL;
    if (unknown) {
      committed.error().code = ErrorCode::outcome_unknown;
    }
    roll_back();
  }
  return committed;
}

void SqliteSession::roll_back() noexcept {
  if (db_ != nullptr && sqlite3_get_autocommit(db_) == 0) {
    sqlite3_exec(db_, "ROLLBACK", nullptr, nullptr, nullptr);
  }
}

bool SqliteSession::moved() const noexcept {
  int moved = 0;
  sqlite3_file_control(db_, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  return moved != 0;
}

void SqliteSession::close_without_checkpoint() noexcept {
  sqlite3_db_config(db_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
}

std::string SqliteSession::version() {
  return sqlite3_libversion();
}

bool is_busy(const Error& error) noexcept {
  const int code = primary(error.native.value_or(0));
  return code == SQLITE_BUSY || code == SQLITE_LOCKED;
}

bool is_not_a_database(const Error& error) noexcept {
  return primary(error.native.value_or(0)) == SQLITE_NOTADB;
}

bool is_passing(const Error& error) noexcept {
  return is_busy(error) || primary(error.native.value_or(0)) == SQLITE_FULL;
}

}  // namespace holdfast::engines
