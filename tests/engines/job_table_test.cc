// Job tables of the user's own, on the user's own connection.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <holdfast/mysql.h>
#include <holdfast/postgres.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <thread>

#include "engines/mysql/mysql_claim.h"
#include "support/eventually.h"
#include "support/mysql_store.h"
#include "support/needs.h"
#include "support/postgres_store.h"

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// One worker's connection.
class Worker {
 public:
  virtual ~Worker() = default;
  virtual Result<ClaimedJobs> claim(const JobTable& table, std::uint32_t at_most) = 0;
  virtual Result<void> complete(const JobTable& table, const std::string& claim,
                                const std::string& key) = 0;
  virtual void run(const std::string& sql) = 0;
};

class Jobs {
 public:
  virtual ~Jobs() = default;
  virtual std::string table() = 0;
  virtual void create(int rows) = 0;
  virtual std::unique_ptr<Worker> connect() = 0;
  virtual int count(const std::string& condition) = 0;
};

class MysqlWorker : public Worker {
 public:
  MysqlWorker(const std::string& port, engines::SkipLocked how) : sql_{port}, how_{how} {}
  Result<ClaimedJobs> claim(const JobTable& table, std::uint32_t at_most) override {
    return how_ == engines::SkipLocked::yes ? mysql::claim(sql_.get(), table, at_most)
                                            : engines::claim_jobs(sql_.get(), table, at_most, how_);
  }
  Result<void> complete(const JobTable& table, const std::string& claim,
                        const std::string& key) override {
    return mysql::complete(sql_.get(), table, claim, key, "done");
  }
  void run(const std::string& sql) override { sql_.ask(sql); }

 private:
  RawMysql sql_;
  engines::SkipLocked how_;
};

class MysqlJobs : public Jobs {
 public:
  explicit MysqlJobs(engines::SkipLocked how) : how_{how} {}
  std::string table() override { return store_.prefix() + "jobs"; }
  void create(int rows) override {
    store_.root().ask("CREATE TABLE " + table() +
                      " (id BIGINT PRIMARY KEY, status VARCHAR(20) NOT NULL DEFAULT 'open', "
                      "claimed_by CHAR(32), claimed_at DATETIME(6), KEY (status, id), "
                      "KEY (claimed_by)) ENGINE=InnoDB");
    std::string values;
    for (int i = 0; i < rows; ++i) values += (i == 0 ? "(" : ",(") + std::to_string(i) + ")";
    store_.root().ask("INSERT INTO " + table() + " (id) VALUES " + values);
  }
  std::unique_ptr<Worker> connect() override {
    return std::make_unique<MysqlWorker>(store_.port_text(), how_);
  }
  int count(const std::string& condition) override {
    return std::stoi(
        store_.root().ask_one("SELECT COUNT(*) FROM " + table() + " WHERE " + condition));
  }

 private:
  MysqlStore store_;
  engines::SkipLocked how_;
};

class PostgresWorker : public Worker {
 public:
  explicit PostgresWorker(const std::string& conninfo) : sql_{conninfo} {}
  Result<ClaimedJobs> claim(const JobTable& table, std::uint32_t at_most) override {
    return postgres::claim(sql_.get(), table, at_most);
  }
  Result<void> complete(const JobTable& table, const std::string& claim,
                        const std::string& key) override {
    return postgres::complete(sql_.get(), table, claim, key, "done");
  }
  void run(const std::string& sql) override { sql_.run(sql); }

 private:
  RawPostgres sql_;
};

class PostgresJobs : public Jobs {
 public:
  std::string table() override { return store_.schema() + ".jobs"; }
  void create(int rows) override {
    store_.sql().run("CREATE SCHEMA IF NOT EXISTS " + store_.schema());
    store_.sql().run("CREATE TABLE " + table() +
                     " (id bigint PRIMARY KEY, status text NOT NULL DEFAULT 'open', "
                     "claimed_by text, claimed_at timestamptz)");
    store_.sql().run("INSERT INTO " + table() + " (id) SELECT generate_series(0, " +
                     std::to_string(rows - 1) + ")");
  }
  std::unique_ptr<Worker> connect() override {
    return std::make_unique<PostgresWorker>(store_.conninfo());
  }
  int count(const std::string& condition) override {
    return std::stoi(store_.sql().value("SELECT count(*) FROM " + table() + " WHERE " + condition));
  }

 private:
  PostgresStore store_;
};

struct Kind {
  std::string name;
  std::function<std::optional<std::string>()> missing;
  std::function<std::unique_ptr<Jobs>()> make;
};

class JobTables : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    HOLDFAST_SKIP_IF_MISSING(GetParam().missing());
    jobs_ = GetParam().make();
  }
  Jobs& jobs() { return *jobs_; }
  JobTable table() {
    JobTable table;
    table.table = jobs_->table();
    return table;
  }

  // Every worker dies now and then between its claim and its completion.
  void work_off(int rows, int workers) {
    jobs().create(rows);
    JobTable how = table();
    how.claimed_at = "claimed_at";
    how.again_after = 300ms;
    std::mutex mutex;
    std::map<std::string, int> accepted;
    std::atomic<int> claims = 0;
    std::atomic<int> deaths = 0;
    std::vector<std::jthread> threads;
    for (int i = 0; i < workers; ++i) {
      threads.emplace_back([&, i] {
        std::minstd_rand dice{static_cast<unsigned>(i) + std::random_device{}()};
        auto connection = jobs().connect();
        while (jobs_left(*connection, how)) {
          auto claimed = connection->claim(how, 5);
          ASSERT_TRUE(claimed) << claimed.error();
          if (claimed->keys.empty()) std::this_thread::sleep_for(20ms);
          if (claims++ == 3 || dice() % 10 == 0) {
            ++deaths;
            connection = jobs().connect();  // it died; its rows come back by themselves
            continue;
          }
          for (const std::string& key : claimed->keys) {
            const auto done = connection->complete(how, claimed->claim, key);
            if (!done) {
              ASSERT_EQ(done.error().code, ErrorCode::lease_lost) << done.error();
              continue;
            }
            const std::lock_guard lock{mutex};
            ++accepted[key];
          }
        }
      });
    }
    threads.clear();
    EXPECT_GT(deaths, 0);
    EXPECT_EQ(accepted.size(), static_cast<std::size_t>(rows));
    for (const auto& [key, times] : accepted) EXPECT_EQ(times, 1) << key;
    EXPECT_EQ(jobs().count("status = 'done'"), rows);
  }

 private:
  bool jobs_left(Worker&, const JobTable&) {
    const std::lock_guard lock{counting_};
    return jobs().count("status <> 'done'") > 0;
  }

  std::unique_ptr<Jobs> jobs_;
  std::mutex counting_;
};

const Kind kKinds[] = {
    {"mysql", [] { return missing_program("mariadbd"); },
     [] { return std::make_unique<MysqlJobs>(engines::SkipLocked::yes); }},
    {"mysqlWithoutSkipLocked", [] { return missing_program("mariadbd"); },
     [] { return std::make_unique<MysqlJobs>(engines::SkipLocked::no); }},
    {"postgres", [] { return missing_postgres(); },
     [] { return std::make_unique<PostgresJobs>(); }},
};
INSTANTIATE_TEST_SUITE_P(, JobTables, ::testing::ValuesIn(kKinds),
                         [](const auto& kind) { return kind.param.name; });

TEST_P(JobTables, AClaimTakesOpenRowsAndMarksThem) {
  jobs().create(5);
  auto worker = jobs().connect();
  auto first = worker->claim(table(), 2);
  ASSERT_TRUE(first) << first.error();
  EXPECT_THAT(first->keys, ElementsAre("0", "1"));
  EXPECT_EQ(jobs().count("status = 'taken' AND claimed_by = '" + first->claim + "'"), 2);
  auto rest = jobs().connect()->claim(table(), 10);
  ASSERT_TRUE(rest) << rest.error();
  EXPECT_THAT(rest->keys, ElementsAre("2", "3", "4"));
  EXPECT_NE(rest->claim, first->claim);
  auto nothing = worker->claim(table(), 1);
  ASSERT_TRUE(nothing) << nothing.error();
  EXPECT_THAT(nothing->keys, IsEmpty());

  EXPECT_TRUE(worker->complete(table(), first->claim, "1"));
  const auto again = worker->complete(table(), first->claim, "1");
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::lease_lost);
  const auto foreign = worker->complete(table(), first->claim, "3");
  ASSERT_FALSE(foreign);
  EXPECT_EQ(foreign.error().code, ErrorCode::lease_lost);
}

TEST_P(JobTables, InATransactionTheMarksBelongToIt) {
  jobs().create(2);
  auto worker = jobs().connect();
  worker->run("START TRANSACTION");
  auto claimed = worker->claim(table(), 1);
  ASSERT_TRUE(claimed) << claimed.error();
  worker->run("ROLLBACK");
  EXPECT_EQ(jobs().count("status = 'open'"), 2);
}

TEST_P(JobTables, NamesAreQuotedAndCheckedAndValuesBound) {
  jobs().create(1);
  auto worker = jobs().connect();
  const auto expect_refused = [&](const std::function<void(JobTable&)>& spoil, const char* field) {
    JobTable bad = table();
    spoil(bad);
    auto refused = worker->claim(bad, 1);
    ASSERT_FALSE(refused) << field;
    EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument) << refused.error();
    EXPECT_THAT(refused.error().text, HasSubstr(field));
  };
  expect_refused([](JobTable& t) { t.table = ""; }, "table");
  expect_refused([](JobTable& t) { t.table = "a."; }, "table");
  expect_refused([](JobTable& t) { t.key = std::string(100, 'x'); }, "key");
  expect_refused([](JobTable& t) { t.status = std::string{"a\0b", 3}; }, "status");
  expect_refused([](JobTable& t) { t.claimed_by = ""; }, "claimed_by");
  expect_refused([](JobTable& t) { t.taken = t.open; }, "taken");
  expect_refused([](JobTable& t) { t.again_after = 1s; }, "claimed_at");
  expect_refused([](JobTable& t) { t.claimed_at = "x", t.again_after = 0s; }, "again_after");
  for (const std::uint32_t count : {0U, kMaxJobsAtOnce + 1}) {
    auto refused = worker->claim(table(), count);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().text, HasSubstr("at_most"));
  }
  // Would end the statement, or be true for all, if it were pasted in.
  JobTable sly = table();
  sly.open = "x' OR '1'='1";
  auto none = worker->claim(sly, 1);
  ASSERT_TRUE(none) << none.error();
  EXPECT_THAT(none->keys, IsEmpty());
  sly = table();
  sly.key = "id` = \"id; DROP TABLE jobs; --";
  EXPECT_FALSE(worker->claim(sly, 1));
  EXPECT_EQ(jobs().count("status = 'open'"), 1);
}

TEST_P(JobTables, AWorkerThatComesTooLateIsRefused) {
  jobs().create(1);
  JobTable how = table();
  how.claimed_at = "claimed_at";
  how.again_after = 1ms;
  auto slow = jobs().connect();
  auto quick = jobs().connect();
  const auto first = slow->claim(how, 1);
  ASSERT_TRUE(first) << first.error();
  ASSERT_THAT(first->keys, ElementsAre("0"));
  std::string claim;
  ASSERT_TRUE(eventually([&] {
    const auto again = quick->claim(how, 1);
    claim = again && !again->keys.empty() ? again->claim : "";
    return !claim.empty();
  }));
  const auto late = slow->complete(how, first->claim, "0");
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::lease_lost) << late.error();
  EXPECT_TRUE(quick->complete(how, claim, "0"));
  EXPECT_EQ(jobs().count("status = 'done'"), 1);
}

TEST_P(JobTables, EachRowIsCompletedExactlyOnceThoughWorkersDie) {
  work_off(200, 4);
}

TEST_P(JobTables, EachOfTenThousandRowsIsCompletedExactlyOnceLongRun) {
  work_off(10'000, 16);
}

}  // namespace
}  // namespace holdfast::test
