// MySQL's own locks: the session is the lease.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <holdfast/holdfast.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "support/engine_driver.h"
#include "support/eventually.h"
#include "support/mysql_store.h"
#include "support/needs.h"

namespace holdfast::test {
namespace {

using core::Status;
using ::testing::HasSubstr;

class MysqlSessionLocks : public ::testing::Test {
 protected:
  void SetUp() override {
    HOLDFAST_SKIP_IF_MISSING(missing_program("mariadbd"));
    store_ = std::make_unique<MysqlStore>();
  }
  std::string url(const std::string& strategy, const std::string& more = "") const {
    return store_->url() + "&strategy=" + strategy + more;
  }
  std::string notes() const { return store_->prefix() + "session_locks"; }
  RawMysql& sql() { return store_->root(); }
  void kill(const std::string& which) {
    for (const auto& row : sql().ask("SELECT connection FROM " + notes() + " WHERE " + which)) {
      sql().ask("KILL " + row.front());
    }
  }

  std::unique_ptr<MysqlStore> store_;
};

// As docs/engines/mysql-classics.md says how others compute the name.
TEST_F(MysqlSessionLocks, AdvisoryIsAUserLock) {
  const auto engine = open_engine(url("advisory"));
  const std::string name = "CONCAT('holdfast:',LEFT(SHA2(CONCAT(DATABASE(),'/','" +
                           store_->prefix() + "advised'),256),40))";
  ASSERT_EQ(submit(*engine, "advised", acquire(1)).status, Status::granted);
  EXPECT_EQ(sql().ask_one("SELECT GET_LOCK(" + name + ",0)"), "0");
  EXPECT_EQ(submit(*engine, "advised", release(1)).status, Status::released);
  EXPECT_EQ(sql().ask_one("SELECT GET_LOCK(" + name + ",0)"), "1");
  EXPECT_EQ(submit(*engine, "advised", try_acquire(2)).status, Status::busy);
  EXPECT_EQ(submit(*engine, "advised", acquire(3)).status, Status::queued);
  sql().ask("DO RELEASE_LOCK(" + name + ")");
  EXPECT_EQ(wait_for_ring(*engine).at(0).id, id(3));
  EXPECT_EQ(submit(*engine, "advised", poll(3)).status, Status::granted);
}

// A server that is interrupted between two statements of a packet promises another answer and
// never gives it: then the wait would not end in time, and its release fail.
TEST_F(MysqlSessionLocks, AWaitThatIsInterruptedAtAnyMomentEnds) {
  for (const char* strategy : {"row", "upsert", "advisory"}) {
    SCOPED_TRACE(strategy);
    const auto holder = open_engine(url(strategy), 1);
    const auto waiter = open_engine(url(strategy), 2);
    ASSERT_EQ(submit(*holder, "x", acquire(1)).status, Status::granted);
    for (std::uint32_t turn = 100; turn < 400; ++turn) {
      ASSERT_EQ(submit(*waiter, "x", acquire(turn)).status, Status::queued) << turn;
      const auto ended = submit(*waiter, "x", release(turn));
      ASSERT_EQ(ended.status, Status::released) << (ended.error ? ended.error->text : "");
    }
    EXPECT_EQ(submit(*holder, "x", release(1)).status, Status::released);
  }
}

TEST_F(MysqlSessionLocks, RowAndUpsertLockRowsOfYourOwnTable) {
  const std::string table = store_->prefix() + "own";
  sql().ask("CREATE TABLE " + table + " (job VARCHAR(100) PRIMARY KEY, note INT)");
  sql().ask("INSERT INTO " + table + " VALUES ('nightly', 7)");
  for (const char* strategy : {"row", "upsert"}) {
    SCOPED_TRACE(strategy);
    const auto engine = open_engine(url(strategy, "&table=" + table + "&column_name=job"));
    sql().ask("START TRANSACTION");
    sql().ask("SELECT 1 FROM " + table + " WHERE job='nightly' FOR UPDATE");
    EXPECT_EQ(submit(*engine, "nightly", try_acquire(1)).status, Status::busy);
    EXPECT_EQ(submit(*engine, "hourly", try_acquire(2)).status, Status::granted);
    sql().ask("COMMIT");
    EXPECT_EQ(submit(*engine, "nightly", try_acquire(1)).status, Status::granted);
    EXPECT_THAT(sql().error_of("SELECT 1 FROM " + table + " WHERE job='nightly' FOR UPDATE NOWAIT"),
                ::testing::AnyOf(1205U, 3572U));  // MariaDB, MySQL
    EXPECT_EQ(sql().ask_one("SELECT note FROM " + table + " WHERE job='nightly'"), "7");
  }
}

// Many names that do not exist yet, by many at once: gap locks would end in deadlocks.
TEST_F(MysqlSessionLocks, MissingRowsAreMadeWithoutTrouble) {
  for (const char* strategy : {"row", "upsert"}) {
    SCOPED_TRACE(strategy);
    std::vector<std::thread> threads;
    std::atomic<int> granted = 0;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        auto client = Client::open(url(strategy));
        ASSERT_TRUE(client) << client.error();
        for (int i = 0; i < 20; ++i) {
          const std::string name = strategy + std::to_string((i * (t % 2 == 0 ? 1 : 19)) % 20);
          auto lease = client->acquire(name, {.wait = kPatience});
          ASSERT_TRUE(lease) << lease.error();
          ++granted;
        }
      });
    }
    for (auto& each : threads) each.join();
    EXPECT_EQ(granted, 80);
  }
}

TEST_F(MysqlSessionLocks, TheCapOnSessionsIsNamed) {
  const auto engine = open_engine(url("row", "&max_sessions=2"));
  EXPECT_EQ(submit(*engine, "a", acquire(1)).status, Status::granted);
  EXPECT_EQ(submit(*engine, "b", acquire(2)).status, Status::granted);
  const auto third = submit(*engine, "c", acquire(3));
  ASSERT_EQ(third.status, Status::failed);
  EXPECT_EQ(third.error->code, ErrorCode::unavailable);
  EXPECT_THAT(third.error->text, HasSubstr("max_sessions"));
  EXPECT_EQ(submit(*engine, "a", release(1)).status, Status::released);
  EXPECT_EQ(submit(*engine, "c", acquire(4)).status, Status::granted);
}

// Renewals are an hour apart: the end of the connection itself tells.
TEST_F(MysqlSessionLocks, AKilledSessionIsALossAtOnce) {
  for (const char* strategy : {"row", "upsert", "advisory"}) {
    SCOPED_TRACE(strategy);
    auto one = Client::open(url(strategy));
    auto other = Client::open(url(strategy));
    ASSERT_TRUE(one && other);
    auto lease = one->acquire("x", {.ttl = std::chrono::hours{3}});
    ASSERT_TRUE(lease) << lease.error();
    kill("waiting=0");
    EXPECT_TRUE(eventually([&] { return lease->lost().stop_requested(); }));
    EXPECT_FALSE(lease->is_alive());
    auto next = other->acquire("x", {.wait = kPatience});
    ASSERT_TRUE(next) << next.error();
    EXPECT_FALSE(lease->release());
    EXPECT_TRUE(next->is_alive());
  }
}

TEST_F(MysqlSessionLocks, AWaiterWhoseSessionIsKilledLinesUpAgain) {
  for (const char* strategy : {"row", "upsert", "advisory"}) {
    SCOPED_TRACE(strategy);
    auto one = Client::open(url(strategy));
    auto other = Client::open(url(strategy));
    auto held = one->acquire("x");
    ASSERT_TRUE(held) << held.error();
    std::atomic<bool> granted = false;
    other->acquire_then("x", {.wait = kPatience}, [&](Result<Lease> lease) { granted = !!lease; });
    ASSERT_TRUE(eventually([&] {
      return sql().ask_one("SELECT COUNT(*) FROM " + notes() + " WHERE waiting=1") == "1";
    }));
    kill("waiting=1");
    ASSERT_TRUE(held->release());
    EXPECT_TRUE(eventually([&] { return granted.load(); }));
  }
}

TEST_F(MysqlSessionLocks, NamesThatNobodyUsesAreForgotten) {
  for (const char* strategy : {"row", "upsert"}) {
    SCOPED_TRACE(strategy);
    const auto engine = open_engine(url(strategy));
    ASSERT_EQ(submit(*engine, "held", acquire(1)).status, Status::granted);
    ASSERT_EQ(submit(*engine, "idle", acquire(2)).status, Status::granted);
    ASSERT_EQ(submit(*engine, "idle", release(2)).status, Status::released);
    engine->tidy();
    EXPECT_LE(sql().ask("SELECT name FROM " + store_->prefix() + "session_names").size(), 1U);
    EXPECT_EQ(submit(*engine, "idle", acquire(3)).status, Status::granted);
    EXPECT_EQ(submit(*engine, "idle", release(3)).status, Status::released);
    EXPECT_EQ(submit(*engine, "held", release(1)).status, Status::released);
  }
}

TEST_F(MysqlSessionLocks, TheDocumentedPrivilegesAreEnough) {
  const auto owner = open_engine(url("row"));
  ASSERT_TRUE(owner->init());
  const std::string user = store_->prefix() + "session";
  sql().ask("CREATE USER " + user);
  for (const char* table : {"session_locks", "session_names"}) {
    sql().ask("GRANT SELECT, INSERT, UPDATE, DELETE ON holdfast." + store_->prefix() + table +
              " TO " + user);
  }
  for (const char* strategy : {"row", "upsert", "advisory"}) {
    SCOPED_TRACE(strategy);
    const auto engine = open_engine(store_->url_of(user) + "&strategy=" + strategy);
    ASSERT_EQ(submit(*engine, "x", acquire(1)).status, Status::granted);
    EXPECT_EQ(submit(*engine, "x", acquire(2)).status, Status::queued);
    EXPECT_EQ(engine->show("x")->queue.size(), 1U);
    EXPECT_EQ(submit(*engine, "x", release(2)).status, Status::released);
    EXPECT_EQ(submit(*engine, "x", renew(1)).status, Status::renewed);
    EXPECT_EQ(submit(*engine, "x", core::Revoke{}).count, 1U);
    EXPECT_EQ(submit(*engine, "x", renew(1)).status, Status::revoked);
    EXPECT_EQ(submit(*engine, "x", release(1)).status, Status::released);
  }
  store_->drop_user(user);
}

}  // namespace
}  // namespace holdfast::test
