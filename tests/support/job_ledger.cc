#include "support/job_ledger.h"

#include <sqlite3.h>

#include <stdexcept>
#include <string>

namespace holdfast::test {
namespace {

void require(bool fine, sqlite3* handle) {
  if (!fine) throw std::runtime_error{std::string{"ledger: "} + ::sqlite3_errmsg(handle)};
}

class Statement {
 public:
  Statement(sqlite3* handle, const char* text) : handle_{handle} {
    require(::sqlite3_prepare_v2(handle, text, -1, &statement_, nullptr) == SQLITE_OK, handle);
  }
  ~Statement() { ::sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  void bind(int index, std::int64_t value) { ::sqlite3_bind_int64(statement_, index, value); }
  bool step() {
    const int result = ::sqlite3_step(statement_);
    require(result == SQLITE_ROW || result == SQLITE_DONE, handle_);
    return result == SQLITE_ROW;
  }
  int column() { return ::sqlite3_column_int(statement_, 0); }

 private:
  sqlite3* handle_;
  sqlite3_stmt* statement_ = nullptr;
};

}  // namespace

JobLedger::JobLedger(const std::filesystem::path& path) {
  require(::sqlite3_open(path.c_str(), &handle_) == SQLITE_OK, handle_);
  ::sqlite3_busy_timeout(handle_, 60'000);
  for (const char* text :
       {"PRAGMA journal_mode = WAL", "PRAGMA synchronous = OFF",
        "CREATE TABLE IF NOT EXISTS jobs (job INTEGER PRIMARY KEY, fence INTEGER NOT NULL DEFAULT "
        "0, accepted INTEGER NOT NULL DEFAULT 0)"}) {
    require(::sqlite3_exec(handle_, text, nullptr, nullptr, nullptr) == SQLITE_OK, handle_);
  }
}

JobLedger::~JobLedger() {
  ::sqlite3_close(handle_);
}

void JobLedger::add(int jobs) const {
  Statement add{handle_,
                "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?1) "
                "INSERT INTO jobs (job) SELECT i FROM n"};
  add.bind(1, jobs);
  add.step();
}

int JobLedger::change(const char* statement, int job, std::uint64_t token) const {
  Statement change{handle_, statement};
  change.bind(1, job);
  change.bind(2, static_cast<std::int64_t>(token));
  change.step();
  return ::sqlite3_changes(handle_);
}

bool JobLedger::begin(int job, std::uint64_t token) const {
  return change("UPDATE jobs SET fence = ?2 WHERE job = ?1 AND fence <= ?2 AND accepted = 0", job,
                token) == 1;
}

bool JobLedger::complete(int job, std::uint64_t token) const {
  return change("UPDATE jobs SET accepted = accepted + 1 WHERE job = ?1 AND fence = ?2", job,
                token) == 1;
}

std::vector<int> JobLedger::numbers(const char* query) const {
  Statement all{handle_, query};
  std::vector<int> found;
  while (all.step()) found.push_back(all.column());
  return found;
}

std::set<int> JobLedger::open_jobs() const {
  const auto open = numbers("SELECT job FROM jobs WHERE accepted = 0");
  return {open.begin(), open.end()};
}

std::vector<int> JobLedger::acceptances() const {
  return numbers("SELECT accepted FROM jobs ORDER BY job");
}

}  // namespace holdfast::test
