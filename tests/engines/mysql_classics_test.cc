// What each classic must get right beside the contract it claims.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "support/engine_driver.h"
#include "support/eventually.h"
#include "support/mysql_store.h"
#include "support/needs.h"

namespace holdfast::test {
namespace {

using core::Outcome;
using core::Status;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class MysqlClassics : public ::testing::Test {
 protected:
  void SetUp() override {
    HOLDFAST_SKIP_IF_MISSING(missing_program("mariadbd"));
    store_ = std::make_unique<MysqlStore>();
  }
  std::string table() const { return store_->prefix() + "own"; }
  std::string url(const std::string& strategy, const std::string& more = "") const {
    return store_->url() + "&strategy=" + strategy + "&table=" + table() + more;
  }
  // Granted, and over soon; not sooner than one can be told of it.
  static void take_briefly(engine::Engine& engine, std::uint32_t number) {
    core::Acquire made = acquire(number);
    Outcome outcome;
    for (made.ttl = 50ms; outcome.status != Status::granted && made.ttl < kPatience;
         made.ttl *= 2) {
      outcome = submit(engine, "x", made);
    }
    EXPECT_EQ(outcome.status, Status::granted);
  }
  RawMysql& sql() { return store_->root(); }

  std::unique_ptr<MysqlStore> store_;
};

// ShedLock's own statements, as its documentation gives the table.
class Java {
 public:
  Java(const std::string& port, std::string table) : sql_{port}, table_{std::move(table)} {}

  bool lock(const std::string& name) {
    const std::string now = "UTC_TIMESTAMP(3)";
    const std::string until = "TIMESTAMPADD(MICROSECOND, 30000000, " + now + ")";
    return sql_.change("INSERT IGNORE INTO " + table_ +
                       "(name, lock_until, locked_at, locked_by) VALUES('" + name + "', " + until +
                       ", " + now + ", 'java-host')") == 1 ||
           sql_.change("UPDATE " + table_ + " SET lock_until = " + until + ", locked_at = " + now +
                       ", locked_by = 'java-host' WHERE name = '" + name +
                       "' AND lock_until <= " + now) == 1;
  }
  void unlock(const std::string& name) {
    sql_.ask("UPDATE " + table_ + " SET lock_until = UTC_TIMESTAMP(3) WHERE name = '" + name +
             "' AND locked_by = 'java-host'");
  }

 private:
  RawMysql sql_;
  std::string table_;
};

TEST_F(MysqlClassics, ShedlockSharesItsTableWithJava) {
  sql().ask("CREATE TABLE " + table() +
            "(name VARCHAR(64) NOT NULL, lock_until TIMESTAMP(3) NOT NULL, locked_at TIMESTAMP(3) "
            "NOT NULL DEFAULT CURRENT_TIMESTAMP(3), locked_by VARCHAR(255) NOT NULL, PRIMARY KEY "
            "(name))");
  Java java{store_->port_text(), table()};
  const auto engine = open_engine(url("shedlock"));
  EXPECT_EQ(submit(*engine, "job", acquire(1)).status, Status::granted);
  EXPECT_FALSE(java.lock("job"));
  EXPECT_EQ(submit(*engine, "job", release(1)).status, Status::released);
  EXPECT_TRUE(java.lock("job"));
  EXPECT_EQ(submit(*engine, "job", try_acquire(2)).status, Status::busy);
  EXPECT_EQ(engine->show("job")->holders.at(0).party.label, "java-host");
  java.unlock("job");
  EXPECT_EQ(submit(*engine, "job", try_acquire(3)).status, Status::granted);
  const Outcome refused = submit(*engine, std::string(65, 'x'), try_acquire(4));
  ASSERT_TRUE(refused.error);
  EXPECT_EQ(refused.error->code, ErrorCode::invalid_argument) << refused.error->text;
}

// TIMESTAMP columns mean another moment in another time zone: ours must be
// everybody's.
TEST_F(MysqlClassics, ShedlockUsesTheTimeZoneOfTheServer) {
  const MysqlStore far{{"--default-time-zone=-07:00"}};
  Java java{far.port_text(), "shedlock"};
  const auto engine = open_engine(far.url() + "&strategy=shedlock");
  ASSERT_TRUE(engine->init());
  ASSERT_TRUE(java.lock("job"));
  EXPECT_EQ(submit(*engine, "job", try_acquire(1)).status, Status::busy);
  const auto left = engine->show("job")->holders.at(0).expires_in;
  EXPECT_LE(left, 31s);
  java.unlock("job");
  EXPECT_EQ(submit(*engine, "job", try_acquire(2)).status, Status::granted);
  EXPECT_FALSE(java.lock("job"));
}

TEST_F(MysqlClassics, ShedlockKeepsTheLockAtLeastAsLongAsAsked) {
  const auto engine = open_engine(url("shedlock", "&lock_at_least=1h"));
  ASSERT_EQ(submit(*engine, "job", acquire(1)).status, Status::granted);
  ASSERT_EQ(submit(*engine, "job", release(1)).status, Status::released);
  EXPECT_EQ(submit(*engine, "job", try_acquire(2)).status, Status::busy);
  EXPECT_GT(engine->show("job")->holders.at(0).expires_in, 59min);
}

TEST_F(MysqlClassics, InsertReleasesByTheRowItMade) {
  const auto engine = open_engine(url("insert"));
  const Outcome first = submit(*engine, "x", acquire(1));
  ASSERT_EQ(first.status, Status::granted);
  // Somebody deletes the row by hand, and somebody else makes a new one.
  sql().ask("DELETE FROM " + table());
  const Outcome second = submit(*engine, "x", acquire(2));
  ASSERT_EQ(second.status, Status::granted);
  EXPECT_GT(second.token, first.token);
  EXPECT_EQ(submit(*engine, "x", release(1)).status, Status::not_held);
  EXPECT_EQ(submit(*engine, "x", renew(2)).status, Status::renewed);
  EXPECT_EQ(submit(*engine, "x", release(2)).status, Status::released);
  EXPECT_EQ(sql().ask_one("SELECT COUNT(*) FROM " + table()), "0");
}

TEST_F(MysqlClassics, OneOfManyTakesOverAnExpiredLock) {
  for (const std::string strategy : {"insert", "timestamp", "slots", "status", "shedlock"}) {
    SCOPED_TRACE(strategy);
    sql().ask("DROP TABLE IF EXISTS " + table() + "," + table() + "_waiting");
    const auto first = open_engine(url(strategy));
    for (int round = 0; round < 5; ++round) {
      take_briefly(*first, 1);
      ASSERT_TRUE(eventually([&] { return first->show("x")->holders.empty(); }));
      std::atomic<int> winners = 0;
      std::vector<std::jthread> threads;
      threads.reserve(4);
      for (std::uint32_t number = 2; number < 6; ++number) {
        threads.emplace_back([&, number] {
          const auto engine = open_engine(url(strategy), number);
          const Outcome outcome = submit(*engine, "x", try_acquire(number));
          EXPECT_NE(outcome.status, Status::failed) << outcome.error->text;
          winners += outcome.status == Status::granted ? 1 : 0;
        });
      }
      threads.clear();
      EXPECT_EQ(winners, 1);
      EXPECT_EQ(submit(*first, "x", renew(1)).status, Status::not_held);
      EXPECT_EQ(submit(*first, "x", core::Revoke{.now = true}).status, Status::done);
    }
  }
}

TEST_F(MysqlClassics, TwoNamesInOneSlotAreTwoLocks) {
  const auto engine = open_engine(url("slots"));
  std::string one = "name 0";
  std::string other;
  for (int i = 1; other.empty(); ++i) {
    const std::string name = "name " + std::to_string(i);
    if (sql().ask_one("SELECT CRC32('" + one + "')%64=CRC32('" + name + "')%64") == "1") {
      other = name;
    }
  }
  ASSERT_EQ(submit(*engine, one, try_acquire(1)).status, Status::granted);
  EXPECT_EQ(submit(*engine, other, try_acquire(2)).status, Status::granted);
  EXPECT_EQ(submit(*engine, one, try_acquire(3)).status, Status::busy);
  EXPECT_EQ(submit(*engine, other, release(2)).status, Status::released);
  EXPECT_EQ(submit(*engine, one, renew(1)).status, Status::renewed);
}

TEST_F(MysqlClassics, StatusRecordsTheOutcomeAndRunsOnceAPeriod) {
  const auto engine = open_engine(url("status", "&period=1h"));
  const auto status = [&] { return sql().ask_one("SELECT status FROM " + table()); };
  ASSERT_EQ(submit(*engine, "job", acquire(1)).status, Status::granted);
  EXPECT_EQ(status(), "P");
  ASSERT_EQ(submit(*engine, "job", core::Revoke{}).status, Status::done);
  ASSERT_EQ(submit(*engine, "job", release(1)).status, Status::released);
  EXPECT_EQ(status(), "F");
  ASSERT_EQ(submit(*engine, "job", try_acquire(2)).status, Status::granted) << "it failed";
  ASSERT_EQ(submit(*engine, "job", release(2)).status, Status::released);
  EXPECT_EQ(status(), "S");
  EXPECT_EQ(submit(*engine, "job", try_acquire(3)).status, Status::busy) << "it has run";
  sql().ask("UPDATE " + table() + " SET begin_time=begin_time-INTERVAL 1 HOUR");
  EXPECT_EQ(submit(*engine, "job", try_acquire(4)).status, Status::granted);
}

TEST_F(MysqlClassics, ColumnsMayHaveOtherNames) {
  const std::string who(56, 'w');  // as long as they may be
  sql().ask("CREATE TABLE " + table() + " (k VARCHAR(64) PRIMARY KEY, " + who +
            " VARCHAR(255) NOT NULL, seen DATETIME(6) NOT NULL, micros BIGINT NOT NULL)");
  const auto engine =
      open_engine(url("timestamp", "&column_lock_key=k&column_holder=" + who +
                                       "&column_last_lock_time=seen&column_timeout=micros"));
  ASSERT_EQ(submit(*engine, "x", acquire(1)).status, Status::granted);
  EXPECT_THAT(sql().ask_one("SELECT " + who + " FROM " + table() + " WHERE k='x'"),
              StartsWith("test 1 on"));
}

TEST_F(MysqlClassics, NonsenseIsRefused) {
  const auto refusal = [&](const std::string& text) {
    const auto opened =
        engine::open(*engine::Url::parse(text), {.session = id(1), .party = {}, .now = nullptr});
    return opened ? std::string{"accepted"} : opened.error().text;
  };
  EXPECT_THAT(refusal(store_->url() + "&strategy=magic"), HasSubstr("shedlock"));
  EXPECT_THAT(refusal(url("shedlock", "&column_name=a%60b")), HasSubstr("column_name"));
  EXPECT_THAT(refusal(url("insert", "&lock_at_least=1s")), HasSubstr("lock_at_least"));
  EXPECT_THAT(refusal(store_->url() + "&table=x"), HasSubstr("table"));
}

}  // namespace
}  // namespace holdfast::test
