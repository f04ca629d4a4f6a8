// PostgreSQL's own locks: the session is the lease.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <holdfast/holdfast.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "support/engine_driver.h"
#include "support/eventually.h"
#include "support/needs.h"
#include "support/postgres_store.h"
#include "support/server.h"

namespace holdfast::test {
namespace {

using core::Status;
using ::testing::HasSubstr;

class PostgresSessionLocks : public ::testing::Test {
 protected:
  void SetUp() override { HOLDFAST_SKIP_IF_MISSING(missing_postgres()); }

  PostgresStore& store(const std::string& strategy) {
    return store_.emplace(shared_server_port("postgres"), strategy);
  }
  std::string table(const char* name) { return store_->schema() + "." + name; }
  // As anybody computes it who wants to take part.
  std::string hash(const std::string& name) {
    return store_->sql().value("SELECT ('x' || encode(substr(sha256('" + table(name.c_str()) +
                               "'), 1, 8), 'hex'))::bit(64)::bigint");
  }
  void terminate_holders() {
    store_->sql().run("SELECT pg_terminate_backend(connection) FROM " + table("session_locks"));
  }

  std::optional<PostgresStore> store_;
};

TEST_F(PostgresSessionLocks, AdvisoryIsTheServersOwnLock) {
  for (const char* scope : {"session", "transaction"}) {
    SCOPED_TRACE(scope);
    RawPostgres& other = store("advisory").sql();
    const std::string take = "SELECT pg_try_advisory_lock(" + hash("advised") + ")";
    const auto engine = open_engine(store_->url(std::string{"scope="} + scope));
    ASSERT_EQ(submit(*engine, "advised", acquire(1)).status, Status::granted);
    EXPECT_EQ(other.value(take), "f");
    EXPECT_EQ(submit(*engine, "advised", release(1)).status, Status::released);
    EXPECT_EQ(other.value(take), "t");
    EXPECT_EQ(submit(*engine, "advised", try_acquire(2)).status, Status::busy);
    EXPECT_EQ(submit(*engine, "advised", acquire(3)).status, Status::queued);
    other.run("SELECT pg_advisory_unlock_all()");
    EXPECT_EQ(wait_for_ring(*engine).at(0).id, id(3));
    EXPECT_EQ(submit(*engine, "advised", poll(3)).status, Status::granted);
  }
}

TEST_F(PostgresSessionLocks, RowIsALockedRow) {
  RawPostgres& other = store("row").sql();
  const auto engine = open_engine(store_->url());
  ASSERT_EQ(submit(*engine, "row", acquire(1)).status, Status::granted);
  const std::string lock = "SELECT 1 FROM " + table("session_names") + " FOR UPDATE NOWAIT";
  EXPECT_THROW(other.run(lock), std::runtime_error);
  EXPECT_EQ(submit(*engine, "row", release(1)).status, Status::released);
  EXPECT_EQ(other.rows(lock).size(), 1U);
}

TEST_F(PostgresSessionLocks, RowLocksRowsOfYourOwnTable) {
  RawPostgres& other = store("row").sql();
  other.run("CREATE TABLE " + table("jobs") + " (name text PRIMARY KEY, note text)");
  other.run("INSERT INTO " + table("jobs") + " VALUES ('nightly', 'kept')");
  const auto engine = open_engine(store_->url("table=jobs"));
  other.run("BEGIN");
  other.run("SELECT 1 FROM " + table("jobs") + " WHERE name = 'nightly' FOR UPDATE");
  EXPECT_EQ(submit(*engine, "nightly", try_acquire(1)).status, Status::busy);
  EXPECT_EQ(submit(*engine, "hourly", try_acquire(2)).status, Status::granted);
  other.run("COMMIT");
  EXPECT_EQ(submit(*engine, "nightly", try_acquire(1)).status, Status::granted);
  EXPECT_EQ(other.value("SELECT note FROM " + table("jobs") + " WHERE name = 'nightly'"), "kept");
}

// Somebody removes the row behind our back: it is made again.
TEST_F(PostgresSessionLocks, ARowThatVanishedIsMadeAgain) {
  RawPostgres& other = store("row").sql();
  const auto engine = open_engine(store_->url());
  for (std::uint32_t i = 1; i < 4; ++i) {
    ASSERT_EQ(submit(*engine, "row", acquire(i)).status, Status::granted);
    EXPECT_EQ(submit(*engine, "row", release(i)).status, Status::released);
    other.run("DELETE FROM " + table("session_names"));
  }
}

TEST_F(PostgresSessionLocks, ANameThatCollidesIsRefused) {
  RawPostgres& sql = store("advisory").sql();
  sql.run("INSERT INTO " + table("session_names") + " VALUES ('another', " + hash("one") + ")");
  const auto engine = open_engine(store_->url());
  const auto outcome = submit(*engine, "one", acquire(1));
  ASSERT_EQ(outcome.status, Status::failed);
  EXPECT_THAT(outcome.error->text, HasSubstr("hash"));
}

TEST_F(PostgresSessionLocks, TheCapOnSessionsIsNamed) {
  store("advisory");
  const auto engine = open_engine(store_->url("max_sessions=2"));
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
TEST_F(PostgresSessionLocks, AKilledSessionIsALossAtOnce) {
  for (const char* strategy : {"advisory", "row"}) {
    SCOPED_TRACE(strategy);
    store(strategy);
    auto one = Client::open(store_->url());
    auto other = Client::open(store_->url());
    ASSERT_TRUE(one && other);
    auto lease = one->acquire("x", {.ttl = std::chrono::hours{3}});
    ASSERT_TRUE(lease) << lease.error();
    terminate_holders();
    EXPECT_TRUE(eventually([&] { return lease->lost().stop_requested(); }));
    EXPECT_FALSE(lease->is_alive());
    auto next = other->acquire("x", {.wait = kPatience});
    ASSERT_TRUE(next) << next.error();
    EXPECT_FALSE(lease->release());
    EXPECT_TRUE(next->is_alive());
  }
}

TEST_F(PostgresSessionLocks, AWaiterWhoseSessionIsKilledLinesUpAgain) {
  store("row");
  auto one = Client::open(store_->url());
  auto other = Client::open(store_->url());
  auto held = one->acquire("x");
  ASSERT_TRUE(held) << held.error();
  std::atomic<bool> granted = false;
  other->acquire_then("x", {.wait = kPatience}, [&](Result<Lease> lease) { granted = !!lease; });
  const std::string waiting = " FROM " + table("session_locks") + " WHERE waiting";
  ASSERT_TRUE(eventually([&] { return store_->sql().rows("SELECT 1" + waiting).size() == 1; }));
  store_->sql().run("SELECT pg_terminate_backend(connection)" + waiting);
  ASSERT_TRUE(held->release());
  EXPECT_TRUE(eventually([&] { return granted.load(); }));
}

// A server that ends sessions which idle in a transaction would end our locks.
TEST_F(PostgresSessionLocks, TheServersIdleTimeOutsDoNotConcernThem) {
  for (const char* strategy : {"advisory", "row"}) {
    SCOPED_TRACE(strategy);
    store(strategy);
    const auto engine = open_engine(store_->url(
        "options=-c%20idle_in_transaction_session_timeout=1000%20-c%20idle_session_timeout=1000%20"
        "-c%20statement_timeout=2000"));
    ASSERT_EQ(submit(*engine, "x", acquire(1)).status, Status::granted);
    std::this_thread::sleep_for(1500ms);  // longer than that
    EXPECT_EQ(submit(*engine, "x", renew(1)).status, Status::renewed);
    EXPECT_EQ(submit(*engine, "x", release(1)).status, Status::released);
  }
}

// What nobody renews ends, though the server knows no ttl.
TEST_F(PostgresSessionLocks, AHoldThatNobodyRenewsEnds) {
  store("advisory");
  auto one = Client::open(store_->url());
  auto other = Client::open(store_->url());
  auto lease = one->acquire("x", {.ttl = 200ms, .renew = false});
  ASSERT_TRUE(lease) << lease.error();
  auto next = other->acquire("x", {.wait = kPatience});
  ASSERT_TRUE(next) << next.error();
  EXPECT_FALSE(lease->is_alive());
}

TEST_F(PostgresSessionLocks, BehindAPoolerTheyAreRefused) {
  HOLDFAST_SKIP_IF_MISSING(missing_program("pgbouncer"));
  store("advisory");
  const PrivateServer pooler{"pgbouncer", {"upstream=" + store_->port()}};
  for (const char* strategy : {"advisory", "row"}) {
    const auto url =
        engine::Url::parse("postgres://postgres@127.0.0.1:" + std::to_string(pooler.port()) +
                           "/postgres?strategy=" + strategy);
    const auto engine = engine::open(*url, {.session = id(1), .party = {}, .now = nullptr});
    ASSERT_FALSE(engine);
    EXPECT_EQ(engine.error().code, ErrorCode::unsupported);
  }
}

// It tells us a number of its own in place of the session's.
TEST_F(PostgresSessionLocks, BehindAPoolerThatGivesEachAConnectionTheyLast) {
  HOLDFAST_SKIP_IF_MISSING(missing_program("pgbouncer"));
  for (const char* strategy : {"advisory", "row"}) {
    SCOPED_TRACE(strategy);
    store(strategy);
    const PrivateServer pooler{"pgbouncer", {"upstream=" + store_->port(), "pool_mode=session"}};
    const auto engine = open_engine(
        "postgres://postgres@127.0.0.1:" + std::to_string(pooler.port()) +
        "/postgres?pooler=session&" + "strategy=" + strategy + "&schema=" + store_->schema());
    const auto other = open_engine(store_->url(), 2);
    ASSERT_EQ(submit(*engine, "x", acquire(1)).status, Status::granted);
    EXPECT_EQ(submit(*engine, "x", renew(1)).status, Status::renewed);
    EXPECT_EQ(engine->show("x")->holders.size(), 1U);
    EXPECT_EQ(submit(*other, "x", try_acquire(2)).status, Status::busy);
    EXPECT_EQ(submit(*engine, "x", release(1)).status, Status::released);
    EXPECT_EQ(submit(*other, "x", try_acquire(3)).status, Status::granted);
  }
}

TEST_F(PostgresSessionLocks, NamesThatNobodyUsesAreForgotten) {
  for (const char* strategy : {"advisory", "row"}) {
    SCOPED_TRACE(strategy);
    store(strategy);
    const auto engine = open_engine(store_->url());
    ASSERT_EQ(submit(*engine, "held", acquire(1)).status, Status::granted);
    ASSERT_EQ(submit(*engine, "idle", acquire(2)).status, Status::granted);
    ASSERT_EQ(submit(*engine, "idle", release(2)).status, Status::released);
    engine->tidy();
    EXPECT_EQ(store_->sql().value("SELECT string_agg(name, ',') FROM " + table("session_names")),
              "held");
    EXPECT_EQ(submit(*engine, "idle", acquire(3)).status, Status::granted);
  }
}

TEST_F(PostgresSessionLocks, NotesOfTheDeadAreSweptAway) {
  store("advisory");
  const auto engine = open_engine(store_->url());
  ASSERT_EQ(submit(*engine, "x", acquire(1)).status, Status::granted);
  store_->sql().run("INSERT INTO " + table("session_locks") +
                    " SELECT gen_random_uuid(), name, waiting, shared, revoked, since - interval "
                    "'1 hour', ttl, holder, host, pid, connection, beacon + 1 FROM " +
                    table("session_locks"));
  EXPECT_EQ(engine->show("x")->holders.size(), 1U);
  engine->tidy();
  EXPECT_EQ(store_->sql().value("SELECT count(*) FROM " + table("session_locks")), "1");
}

}  // namespace
}  // namespace holdfast::test
