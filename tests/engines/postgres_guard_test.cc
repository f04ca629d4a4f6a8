// The lock checked where the data is.
#include <gtest/gtest.h>
#include <holdfast/holdfast.h>
#include <holdfast/postgres.h>

#include <atomic>
#include <csignal>
#include <future>

#include "support/child_process.h"
#include "support/eventually.h"
#include "support/given_time.h"
#include "support/needs.h"
#include "support/postgres_store.h"

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

class PostgresGuard : public ::testing::Test {
 protected:
  void SetUp() override {
    HOLDFAST_SKIP_IF_MISSING(missing_postgres());
    store_.emplace();
    client_.emplace(std::move(*Client::open(store_->url())));
    data_.emplace(store_->conninfo());
    data_->run("CREATE TABLE " + table() + " (id int PRIMARY KEY, value text)");
    data_->run("INSERT INTO " + table() + " VALUES (1, 'old')");
  }

  std::string table() const { return store_->schema() + ".data"; }
  std::string value() { return store_->sql().value("SELECT value FROM " + table()); }
  void begin_and_write(const std::string& begin = "BEGIN") {
    data_->run(begin);
    data_->run("UPDATE " + table() + " SET value = 'new'");
  }
  // Waits until the store has given the lock to somebody else.
  void lose(const Lease& lease) {
    auto other = client2().acquire(lease.name(), {.wait = kPatience});
    ASSERT_TRUE(other) << other.error();
    ASSERT_GT(*other->token(), *lease.token());
  }
  Client& client2() {
    if (!client2_) client2_.emplace(std::move(*Client::open(store_->url())));
    return *client2_;
  }

  std::optional<PostgresStore> store_;
  std::optional<Client> client_;
  std::optional<Client> client2_;
  std::optional<RawPostgres> data_;
};

TEST_F(PostgresGuard, TheHolderCommits) {
  auto lease = client_->acquire("seat");
  ASSERT_TRUE(lease) << lease.error();
  begin_and_write();
  const auto done = postgres::guarded_commit(*lease, data_->get());
  EXPECT_TRUE(done) << done.error();
  EXPECT_EQ(value(), "new");
}

TEST_F(PostgresGuard, WhoeverLostTheLockIsRolledBack) {
  auto lease = client_->acquire("seat", {.ttl = 100ms, .renew = false});
  ASSERT_TRUE(lease) << lease.error();
  begin_and_write();
  lose(*lease);
  const auto done = postgres::guarded_commit(*lease, data_->get());
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::lease_lost) << done.error();
  EXPECT_EQ(value(), "old");
  data_->run("BEGIN");  // the connection is free again
  data_->run("ROLLBACK");
}

TEST_F(PostgresGuard, WhoeverLostItAfterAnEarlierGuardIsRolledBack) {
  auto lease = client_->acquire("seat", {.ttl = 200ms, .renew = false});
  ASSERT_TRUE(lease) << lease.error();
  data_->run("BEGIN");
  ASSERT_TRUE(postgres::guard(*lease, data_->get()));
  data_->run("COMMIT");
  lose(*lease);
  begin_and_write();
  const auto late = postgres::guard(*lease, data_->get());
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::lease_lost) << late.error();
  EXPECT_EQ(value(), "old");
}

TEST_F(PostgresGuard, AGuardKeepsOthersOutThoughTheLeaseIsOver) {
  auto lease = client_->acquire("seat", {.ttl = 200ms, .renew = false});
  ASSERT_TRUE(lease) << lease.error();
  begin_and_write();
  const auto guarded = postgres::guard(*lease, data_->get());
  ASSERT_TRUE(guarded) << guarded.error();
  auto busy = client2().try_acquire("seat");
  EXPECT_FALSE(busy);
  auto next = std::async(std::launch::async,
                         [&] { return client2().acquire("seat", {.wait = kPatience}); });
  EXPECT_EQ(next.wait_for(600ms), std::future_status::timeout);  // three times the ttl
  data_->run("COMMIT");
  auto granted = next.get();
  ASSERT_TRUE(granted) << granted.error();
  EXPECT_GT(*granted->token(), *lease->token());
  EXPECT_EQ(value(), "new");
}

TEST_F(PostgresGuard, AReleaseBeforeTheCommitDoesNotLetOthersIn) {
  auto lease = client_->acquire("seat");
  ASSERT_TRUE(lease) << lease.error();
  begin_and_write();
  ASSERT_TRUE(postgres::guard(*lease, data_->get()));
  ASSERT_TRUE(lease->release());
  EXPECT_FALSE(client2().try_acquire("seat"));
  data_->run("COMMIT");
  EXPECT_TRUE(client2().acquire("seat", {.wait = kPatience}));
}

TEST_F(PostgresGuard, RenewalsAndOtherNamesDoNotNotice) {
  given_time([&](int scale) {
    const AcquireOptions brief{.ttl = scale * 1500ms, .wait = kPatience};
    auto lease = client_->acquire("seat", brief);
    ASSERT_TRUE(lease) << lease.error();
    std::vector<Lease> others;
    for (int i = 0; i < 200; ++i) {
      auto other = client_->acquire("other " + std::to_string(i), brief);
      ASSERT_TRUE(other) << other.error();
      others.push_back(std::move(*other));
    }
    begin_and_write("BEGIN ISOLATION LEVEL REPEATABLE READ");
    // Made after the snapshot, the fence cannot be seen in it.
    const auto early = postgres::guard(*lease, data_->get());
    ASSERT_FALSE(early);
    EXPECT_EQ(early.error().code, ErrorCode::unavailable) << early.error();
    begin_and_write("BEGIN ISOLATION LEVEL REPEATABLE READ");
    ASSERT_TRUE(postgres::guard(*lease, data_->get()));
    std::this_thread::sleep_for(scale * 2s);  // renewals fall into it
    EXPECT_TRUE(lease->is_alive());
    for (const Lease& other : others) EXPECT_TRUE(other.is_alive());
    const auto done = postgres::guarded_commit(*lease, data_->get());  // no 40001
    EXPECT_TRUE(done) << done.error();
    EXPECT_EQ(value(), "new");
  });
}

TEST_F(PostgresGuard, TheConditionWorksInOnesOwnStatement) {
  const std::string odd{"it's 100% \\ odd\0\xff", 17};
  auto lease = client_->acquire(odd, {.ttl = 300ms, .renew = false});
  ASSERT_TRUE(lease) << lease.error();
  const auto condition = lease->fence_sql();
  ASSERT_TRUE(condition) << condition.error();
  const std::string update =
      "UPDATE " + table() + " SET value = 'new' WHERE id = 1 AND " + *condition + " RETURNING id";
  EXPECT_EQ(data_->rows(update).size(), 1U);
  lose(*lease);
  EXPECT_EQ(data_->rows(update).size(), 0U);
}

TEST_F(PostgresGuard, ReadersShareAFence) {
  const AcquireOptions read{.wait = kPatience, .mode = Mode::shared};
  auto first = client_->acquire("page", read);
  auto second = client2().acquire("page", read);
  ASSERT_TRUE(first && second);
  for (const Lease* lease : {&*first, &*second, &*first}) {
    data_->run("BEGIN");
    const auto done = postgres::guarded_commit(*lease, data_->get());
    EXPECT_TRUE(done) << done.error();
  }
  ASSERT_TRUE(first->release());
  data_->run("BEGIN");
  EXPECT_TRUE(postgres::guarded_commit(*second, data_->get()));
}

// Stopped while it holds the lock, past the end of its lease: what it writes
// when it wakes up is rolled back.
TEST_F(PostgresGuard, AHolderStoppedPastItsLeaseCommitsNothing) {
  Shared<std::atomic<int>> step;
  ChildProcess holder{[&, url = store_->url(), conninfo = store_->conninfo()] {
    auto client = Client::open(url);
    RawPostgres data{conninfo};
    auto lease = client->acquire("seat", {.ttl = 300ms, .renew = false});
    if (!lease) return 1;
    *step = 1;
    eventually([&] { return *step == 2; });
    data.run("BEGIN");
    data.run("UPDATE " + table() + " SET value = 'late'");
    const auto done = postgres::guarded_commit(*lease, data.get());
    return !done && done.error().code == ErrorCode::lease_lost ? 0 : 2;
  }};
  ASSERT_TRUE(eventually([&] { return *step == 1; }));
  holder.signal(SIGSTOP);
  *step = 2;
  auto next = client2().acquire("seat", {.wait = kPatience});
  ASSERT_TRUE(next) << next.error();
  begin_and_write();
  ASSERT_TRUE(postgres::guarded_commit(*next, data_->get()));
  holder.signal(SIGCONT);
  EXPECT_EQ(holder.wait(), 0);
  EXPECT_EQ(value(), "new");
}

// Stopped between its check and its commit: whoever comes next waits for that
// commit, and does not overwrite it or get overwritten.
TEST_F(PostgresGuard, AHolderStoppedBetweenCheckAndCommitIsNotOvertaken) {
  Shared<std::atomic<int>> step;
  ChildProcess holder{[&, url = store_->url(), conninfo = store_->conninfo()] {
    auto client = Client::open(url);
    RawPostgres data{conninfo};
    auto lease = client->acquire("seat", {.ttl = 300ms, .renew = false});
    if (!lease) return 1;
    data.run("BEGIN");
    data.run("UPDATE " + table() + " SET value = 'from the one who was stopped'");
    if (!postgres::guard(*lease, data.get())) return 2;
    *step = 1;
    eventually([&] { return *step == 2; });
    data.run("COMMIT");
    return 0;
  }};
  ASSERT_TRUE(eventually([&] { return *step == 1; }));
  holder.signal(SIGSTOP);
  *step = 2;
  auto next = std::async(std::launch::async,
                         [&] { return client2().acquire("seat", {.wait = kPatience}); });
  EXPECT_EQ(next.wait_for(1s), std::future_status::timeout);
  EXPECT_EQ(value(), "old");
  holder.signal(SIGCONT);
  auto granted = next.get();
  ASSERT_TRUE(granted) << granted.error();
  EXPECT_EQ(value(), "from the one who was stopped");
  EXPECT_EQ(holder.wait(), 0);
}

// The account of the data need not be that of the locks.
TEST_F(PostgresGuard, TheDocumentedPrivilegesAreEnough) {
  const std::string role = "g_" + store_->schema();
  store_->sql().run("CREATE ROLE " + role + " LOGIN");
  store_->sql().run("GRANT USAGE ON SCHEMA " + store_->schema() + " TO " + role);
  store_->sql().run("GRANT SELECT, UPDATE ON " + store_->schema() + ".fences, " + table() + " TO " +
                    role);
  {
    RawPostgres data{"host=127.0.0.1 dbname=postgres user=" + role + " port=" + store_->port()};
    auto lease = client_->acquire("seat");
    ASSERT_TRUE(lease) << lease.error();
    data.run("BEGIN");
    data.run("UPDATE " + table() + " SET value = 'new'");
    const auto done = postgres::guarded_commit(*lease, data.get());
    EXPECT_TRUE(done) << done.error();
    EXPECT_EQ(value(), "new");
  }
  store_->sql().run("DROP OWNED BY " + role);
  store_->sql().run("DROP ROLE " + role);
}

TEST_F(PostgresGuard, MistakesAreNamed) {
  auto lease = client_->acquire("seat");
  ASSERT_TRUE(lease);
  EXPECT_EQ(postgres::guard(*lease, data_->get()).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(postgres::guard(*lease, nullptr).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(postgres::guard(Lease{}, data_->get()).error().code, ErrorCode::invalid_argument);
  auto elsewhere = Client::open("memory:");
  auto local = elsewhere->acquire("seat");
  EXPECT_EQ(postgres::guard(*local, data_->get()).error().code, ErrorCode::unsupported);
  EXPECT_EQ(local->fence_sql().error().code, ErrorCode::unsupported);
}

}  // namespace
}  // namespace holdfast::test
