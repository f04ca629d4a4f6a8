#include <sqlite3.h>
#include <unistd.h>

#include <array>

#include "baselines.h"
#include "engines/sqlite/sqlite_sql.h"

namespace baselines {
namespace {

using holdfast::engines::kSqliteSchema;
using holdfast::engines::kSqliteSql;
using holdfast::engines::Sql;

// The bytes of a lock record with one holder, and without.
constexpr int kHeldBytes = 94;
constexpr int kIdleBytes = 21;
constexpr std::size_t kNames = 100;

class Loop {
 public:
  explicit Loop(const std::string& file) {
    check(sqlite3_open_v2(file.c_str(), &db_,
                          SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                          nullptr));
    execute("PRAGMA page_size = 1024");
    execute("PRAGMA journal_mode = WAL");
    execute("PRAGMA synchronous = NORMAL");
    execute(kSqliteSchema);
    for (const Sql sql :
         {Sql::begin_write, Sql::find_lock, Sql::insert_lock, Sql::update_lock, Sql::commit}) {
      check(sqlite3_prepare_v3(db_, kSqliteSql.at(static_cast<std::size_t>(sql)), -1,
                               SQLITE_PREPARE_PERSISTENT, &at(sql), nullptr));
    }
  }
  ~Loop() {
    for (sqlite3_stmt* statement : statements_) {
      sqlite3_finalize(statement);
    }
    sqlite3_close(db_);
  }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  void transaction(const std::string& name, int bytes) {
    run(Sql::begin_write);
    const bool there = find(name);
    sqlite3_stmt* put = at(there ? Sql::update_lock : Sql::insert_lock);
    sqlite3_bind_blob(put, 1, name.data(), static_cast<int>(name.size()), SQLITE_STATIC);
    sqlite3_bind_blob(put, 2, record_.data(), bytes, SQLITE_STATIC);
    sqlite3_bind_int64(put, 3, ++until_);
    check(sqlite3_step(put));
    sqlite3_reset(put);
    run(Sql::commit);
  }

 private:
  sqlite3_stmt*& at(Sql sql) { return statements_.at(static_cast<std::size_t>(sql)); }

  void check(int code) {
    if (code != SQLITE_OK && code != SQLITE_DONE) {
      give_up(std::string{"sqlite: "} + sqlite3_errstr(code));
    }
  }
  void execute(const char* sql) { check(sqlite3_exec(db_, sql, nullptr, nullptr, nullptr)); }
  void run(Sql sql) {
    check(sqlite3_step(at(sql)));
    sqlite3_reset(at(sql));
  }
  bool find(const std::string& name) {
    sqlite3_stmt* find = at(Sql::find_lock);
    sqlite3_bind_blob(find, 1, name.data(), static_cast<int>(name.size()), SQLITE_STATIC);
    const bool there = sqlite3_step(find) == SQLITE_ROW;
    if (there) {
      found_.assign(static_cast<const char*>(sqlite3_column_blob(find, 0)),
                    static_cast<std::size_t>(sqlite3_column_bytes(find, 0)));
    }
    sqlite3_reset(find);
    return there;
  }

  sqlite3* db_ = nullptr;
  std::array<sqlite3_stmt*, kSqliteSql.size()> statements_{};
  std::array<char, kHeldBytes> record_{};
  std::string found_;
  sqlite3_int64 until_ = 0;
};

}  // namespace

double sqlite_cold_write(const std::string& directory, double seconds) {
  const std::string file = directory + "/baseline.db";
  double time = 0;
  {
    Loop loop{file};
    loop.transaction("cold", kHeldBytes);
    time = repeat_cold(seconds, [&] { loop.transaction("cold", kIdleBytes); });
  }
  unlink(file.c_str());
  return time;
}

double sqlite_cycles(const std::string& directory, double seconds) {
  const std::string file = directory + "/baseline.db";
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kNames; ++i) {
    names.push_back("holdfast-bench:0123456789abcdef:0:" + std::to_string(i));
  }
  double rate = 0;
  {
    Loop loop{file};
    rate = repeat(seconds, 1, [&](unsigned, std::size_t i) {
      loop.transaction(names[i % kNames], kHeldBytes);
      loop.transaction(names[i % kNames], kIdleBytes);
    });
  }
  unlink(file.c_str());
  return rate;
}

}  // namespace baselines
