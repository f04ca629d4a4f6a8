// The lock checked where the data is.
#include <gtest/gtest.h>
#include <holdfast/client.h>
#include <holdfast/mysql.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <future>
#include <mutex>
#include <optional>
#include <thread>

#include "support/child_process.h"
#include "support/engine_driver.h"
#include "support/eventually.h"
#include "support/given_time.h"
#include "support/mysql_store.h"
#include "support/needs.h"

namespace holdfast::test {
namespace {

class MysqlGuard : public ::testing::Test {
 protected:
  void SetUp() override {
    HOLDFAST_SKIP_IF_MISSING(missing_program("mariadbd"));
    store_.emplace();
    store_->root().ask("CREATE TABLE " + table() + " (id INT PRIMARY KEY, value TEXT)");
    store_->root().ask("INSERT INTO " + table() + " VALUES (1, 'old')");
  }

  std::string table() const { return store_->prefix() + "data"; }
  std::string value() { return store_->root().ask_one("SELECT value FROM " + table()); }
  RawMysql& data() {
    if (!data_) {
      data_.emplace(store_->port_text());
    }
    return *data_;
  }
  void begin_and_write() {
    data().ask("START TRANSACTION");
    data().ask("UPDATE " + table() + " SET value='new'");
  }
  Client& client() { return open(client_); }
  Client& client2() { return open(client2_); }
  // Waits until the store has given the lock to somebody else.
  void lose(const Lease& lease) {
    auto other = client2().acquire(lease.name(), {.wait = kPatience});
    ASSERT_TRUE(other) << other.error();
    ASSERT_GT(*other->token(), *lease.token());
  }

  std::optional<MysqlStore> store_;

 private:
  Client& open(std::optional<Client>& client) {
    if (!client) {
      client.emplace(std::move(*Client::open(store_->url())));
    }
    return *client;
  }
  std::optional<Client> client_;
  std::optional<Client> client2_;
  std::optional<RawMysql> data_;
};

TEST_F(MysqlGuard, TheHolderCommitsAndALateOneIsRolledBack) {
  auto lease = client().acquire("seat", {.ttl = 1s, .renew = false});
  ASSERT_TRUE(lease) << lease.error();
  begin_and_write();
  const auto done = mysql::guarded_commit(*lease, data().get());
  ASSERT_TRUE(done) << done.error();
  EXPECT_EQ(value(), "new");
  store_->root().ask("UPDATE " + table() + " SET value='old'");
  lose(*lease);
  begin_and_write();
  const auto late = mysql::guarded_commit(*lease, data().get());
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::lease_lost) << late.error();
  EXPECT_EQ(value(), "old");
}

TEST_F(MysqlGuard, WhoeverLostItBeforeTheFirstCheckIsRolledBack) {
  auto lease = client().acquire("seat", {.ttl = 100ms, .renew = false});
  ASSERT_TRUE(lease) << lease.error();
  begin_and_write();
  lose(*lease);
  const auto late = mysql::guard(*lease, data().get());
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::lease_lost) << late.error();
  EXPECT_EQ(value(), "old");
}

TEST_F(MysqlGuard, AGuardKeepsOthersOutThoughTheLeaseIsOver) {
  for (const bool releases : {false, true}) {
    auto lease = client().acquire("seat", {.ttl = 400ms, .renew = false});
    ASSERT_TRUE(lease) << lease.error();
    begin_and_write();
    const auto guarded = mysql::guard(*lease, data().get());
    ASSERT_TRUE(guarded) << guarded.error();
    if (releases) {
      ASSERT_TRUE(lease->release());
    }
    auto next = std::async(std::launch::async,
                           [&] { return client2().acquire("seat", {.wait = kPatience}); });
    EXPECT_EQ(next.wait_for(1200ms), std::future_status::timeout);  // three times the ttl
    EXPECT_FALSE(client().try_acquire("seat"));
    data().ask("COMMIT");
    auto granted = next.get();
    ASSERT_TRUE(granted) << granted.error();
    EXPECT_GT(*granted->token(), *lease->token());
    EXPECT_TRUE(granted->release());
  }
  EXPECT_EQ(value(), "new");
}

// Stopped between its check and its commit: whoever comes next waits for that
// commit, and does not overwrite it or get overwritten.
TEST_F(MysqlGuard, AHolderStoppedBetweenCheckAndCommitIsNotOvertaken) {
  Shared<std::atomic<int>> step;
  Shared<std::atomic<int>> result;
  const std::string url = store_->url();
  const std::string port = store_->port_text();
  const std::string write = "UPDATE " + table() + " SET value='from the one who was stopped'";
  ChildProcess holder{[&] {
    auto client = Client::open(url);
    RawMysql data{port};
    auto lease = client->acquire("seat", {.ttl = 300ms, .renew = false});
    if (!lease) {
      return 1;
    }
    data.ask("START TRANSACTION");
    data.ask(write);
    if (!mysql::guard(*lease, data.get())) {
      return 2;
    }
    *step = 1;
    eventually([&] { return *step == 2; });
    data.ask("COMMIT");
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

TEST_F(MysqlGuard, AThousandOthersRenewUndisturbedByALongGuard) {
  given_time([&](int scale) {
    const AcquireOptions brief{.ttl = scale * 2s, .wait = kPatience};
    auto lease = client().acquire("seat", brief);
    ASSERT_TRUE(lease) << lease.error();
    std::vector<Lease> others;
    std::atomic<int> failures = 0;
    std::mutex mutex;
    std::vector<std::jthread> threads;
    threads.reserve(8);
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        for (int i = t; i < 1000; i += 8) {
          auto other = client().acquire("other " + std::to_string(i), brief);
          const std::lock_guard lock{mutex};
          if (other) {
            others.push_back(*std::move(other));
          } else {
            ++failures;
          }
        }
      });
    }
    threads.clear();
    ASSERT_EQ(failures, 0);
    begin_and_write();
    ASSERT_TRUE(mysql::guard(*lease, data().get()));
    // Somebody wants it all the time, and meets the fence.
    std::atomic<bool> over = false;
    std::jthread rival{[&] {
      while (!over) {
        client2().acquire("seat", {.wait = 20ms});
      }
    }};
    EXPECT_TRUE(lease->release());
    EXPECT_TRUE(throughout(scale * 6s, [&] {
      return std::all_of(others.begin(), others.end(),
                         [](const Lease& other) { return other.is_alive(); });
    }));
    data().ask("COMMIT");
    over = true;
    EXPECT_EQ(value(), "new");
  });
}

TEST_F(MysqlGuard, TheConditionWorksInOnesOwnStatement) {
  const std::string odd{"it's 100% \\ odd\0\xff", 17};
  auto lease = client().acquire(odd, {.ttl = 1s, .renew = false});
  ASSERT_TRUE(lease) << lease.error();
  const auto condition = lease->fence_sql();
  ASSERT_TRUE(condition) << condition.error();
  const auto update = [&](const std::string& text) {
    return data().change("UPDATE " + table() + " SET value='" + text + "' WHERE id=1 AND " +
                         *condition);
  };
  for (const char* level : {"REPEATABLE READ", "READ COMMITTED"}) {
    data().ask(std::string{"SET SESSION TRANSACTION ISOLATION LEVEL "} + level);
    EXPECT_EQ(update(level), 1U);
  }
  data().ask("START TRANSACTION");
  EXPECT_EQ(update("open"), 1U);
  auto next =
      std::async(std::launch::async, [&] { return client2().acquire(odd, {.wait = kPatience}); });
  EXPECT_EQ(next.wait_for(1500ms), std::future_status::timeout);
  data().ask("COMMIT");
  auto granted = next.get();
  ASSERT_TRUE(granted) << granted.error();
  EXPECT_EQ(update("late"), 0U);
  EXPECT_EQ(value(), "open");
}

TEST_F(MysqlGuard, ReadersShareAFence) {
  const AcquireOptions read{.wait = kPatience, .mode = Mode::shared};
  auto first = client().acquire("page", read);
  auto second = client2().acquire("page", read);
  ASSERT_TRUE(first && second);
  for (const Lease* lease : {&*first, &*second, &*first}) {
    data().ask("START TRANSACTION");
    const auto done = mysql::guarded_commit(*lease, data().get());
    EXPECT_TRUE(done) << done.error();
  }
  ASSERT_TRUE(first->release());
  data().ask("START TRANSACTION");
  EXPECT_TRUE(mysql::guarded_commit(*second, data().get()));
}

TEST_F(MysqlGuard, AForgottenNameTakesItsFenceAlong) {
  const std::string url = store_->url() + "&keep_idle=0s";
  auto mine = Client::open(url);
  auto lease = mine->acquire("seat");
  ASSERT_TRUE(lease);
  data().ask("START TRANSACTION");
  ASSERT_TRUE(mysql::guard(*lease, data().get()));
  ASSERT_TRUE(lease->release());
  const auto engine = open_engine(url, 7);
  engine->tidy();
  EXPECT_EQ(store_->rows(), 1U) << "a transaction relies on it";
  data().ask("COMMIT");
  EXPECT_TRUE(eventually([&] {
    engine->tidy();
    return store_->rows() == 0;
  }));
  EXPECT_EQ(store_->root().ask_one("SELECT COUNT(*) FROM " + store_->prefix() + "fences"), "0");
}

// The account of the data need not be that of the locks.
TEST_F(MysqlGuard, TheDocumentedPrivilegesAreEnough) {
  auto lease = client().acquire("seat");
  ASSERT_TRUE(lease) << lease.error();
  const std::string user = store_->prefix() + "guard";
  store_->root().ask("CREATE USER " + user);
  store_->root().ask("GRANT SELECT, UPDATE ON holdfast." + table() + " TO " + user);
  store_->root().ask("GRANT SELECT, UPDATE ON holdfast." + store_->prefix() + "fences TO " + user);
  {
    RawMysql own{store_->port_text(), user};
    own.ask("START TRANSACTION");
    own.ask("UPDATE " + table() + " SET value='new'");
    const auto done = mysql::guarded_commit(*lease, own.get());
    EXPECT_TRUE(done) << done.error();
  }
  EXPECT_EQ(value(), "new");
  store_->drop_user(user);
}

TEST_F(MysqlGuard, MistakesAreNamed) {
  auto lease = client().acquire("seat");
  ASSERT_TRUE(lease);
  EXPECT_EQ(mysql::guard(*lease, data().get()).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(mysql::guard(*lease, nullptr).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(mysql::guard(Lease{}, data().get()).error().code, ErrorCode::invalid_argument);
  auto elsewhere = Client::open("memory:");
  auto local = elsewhere->acquire("seat");
  EXPECT_EQ(mysql::guard(*local, data().get()).error().code, ErrorCode::unsupported);
}

}  // namespace
}  // namespace holdfast::test
