// What is given back, renewed and taken in one batch, in both forms of that statement.
#include <gtest/gtest.h>

#include <future>
#include <optional>
#include <string>

#include "support/engine_driver.h"
#include "support/eventually.h"
#include "support/needs.h"
#include "support/postgres_store.h"
#include "support/server.h"

namespace holdfast {
namespace {

using namespace test;
using core::Status;

class PostgresBatch : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    HOLDFAST_SKIP_IF_MISSING(missing_postgres());
    store_.emplace();
    a_ = open_engine(store_->url("pooler=" + GetParam()), 1);
    b_ = open_engine(store_->url(), 2);
  }

  std::optional<PostgresStore> store_;
  std::unique_ptr<engine::Engine> a_;
  std::unique_ptr<engine::Engine> b_;
};

TEST_P(PostgresBatch, ReleasesRenewalsAndGrantsMeet) {
  std::uint64_t token = 0;
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) {  // rows that are known to exist
    token = submit(*a_, name, acquire(1)).token;
    ASSERT_EQ(submit(*a_, name, release(1)).status, Status::released);
  }
  ASSERT_EQ(submit(*a_, "b", acquire(2)).status, Status::granted);
  ASSERT_EQ(submit(*a_, "c", acquire(3)).status, Status::granted);
  ASSERT_EQ(submit(*b_, "d", acquire(4)).status, Status::granted);
  ASSERT_EQ(submit(*a_, "e", acquire(5)).status, Status::granted);
  ASSERT_EQ(submit(*b_, "e", acquire(6)).status, Status::queued);

  const auto outcomes = submit(*a_, {{"f", acquire(11)},
                                     {"e", release(5)},
                                     {"d", try_acquire(14)},
                                     {"c", renew(3)},
                                     {"b", release(2)},
                                     {"a", acquire(16)}});
  ASSERT_EQ(outcomes.size(), 6U);
  EXPECT_EQ(outcomes[0].status, Status::granted);
  EXPECT_GT(outcomes[0].token, token);
  EXPECT_EQ(outcomes[0].lease_for, 30s);
  EXPECT_EQ(outcomes[1].status, Status::released);
  EXPECT_EQ(outcomes[2].status, Status::busy);
  EXPECT_EQ(outcomes[3].status, Status::renewed);
  EXPECT_EQ(outcomes[3].lease_for, 30s);
  EXPECT_EQ(outcomes[4].status, Status::released);
  EXPECT_EQ(outcomes[5].status, Status::granted);
  EXPECT_EQ(submit(*b_, "e", poll(6)).status, Status::granted);
  EXPECT_EQ(submit(*b_, "b", try_acquire(7)).status, Status::granted);
  EXPECT_EQ(submit(*b_, "a", try_acquire(7)).status, Status::busy);
  EXPECT_EQ(submit(*b_, "f", try_acquire(7)).status, Status::busy);
}

INSTANTIATE_TEST_SUITE_P(, PostgresBatch, ::testing::Values("none", "transaction"),
                         [](const auto& tested) { return tested.param; });

// A pooler that keeps our settings from the server, and a server that would rather not plan by the
// index: rows are still locked in the order of their names.
TEST(PostgresBatchOrder, IsKeptOnPlansThatAreNotOurs) {
  HOLDFAST_SKIP_IF_MISSING(missing_postgres());
  HOLDFAST_SKIP_IF_MISSING(missing_program("pgbouncer"));
  const PrivateServer server{"postgres",
                             {"enable_nestloop=off", "enable_mergejoin=off", "enable_indexscan=off",
                              "enable_bitmapscan=off", "autovacuum_naptime=1h"}};
  PostgresStore store{std::to_string(server.port())};
  const PrivateServer pooler{"pgbouncer", {"upstream=" + store.port(), "pool_mode=session"}};
  const auto engine = open_engine("postgres://postgres@127.0.0.1:" + std::to_string(pooler.port()) +
                                  "/postgres?pooler=session&schema=" + store.schema());
  const std::string locks = store.schema() + ".locks";
  for (const char* name : {"z", "m", "a"}) {
    ASSERT_EQ(submit(*engine, name, acquire(1)).status, Status::granted);
    ASSERT_EQ(submit(*engine, name, release(1)).status, Status::released);
  }
  std::uint32_t request = 10;
  for (const bool three : {false, true}) {
    ASSERT_EQ(submit(*engine, "z", acquire(request)).status, Status::granted);
    ASSERT_EQ(submit(*engine, "a", acquire(request + 1)).status, Status::granted);
    ASSERT_EQ(submit(*engine, "a", release(request + 1)).status, Status::released);
    const std::string order =
        store.sql().value("SELECT string_agg(name, '' ORDER BY ctid) FROM " + locks);
    ASSERT_LT(order.find('z'), order.find('a')) << order;
    std::vector<core::Command> batch{{"z", release(request)}, {"a", acquire(request + 2)}};
    if (three) {
      batch.push_back({"m", acquire(request + 3)});
    }
    RawPostgres first{store.conninfo()};
    first.run("BEGIN");
    first.run("SELECT FROM " + locks + " WHERE name = 'a' FOR UPDATE");
    auto outcomes = std::async(std::launch::async, [&] { return submit(*engine, batch); });
    EXPECT_TRUE(eventually([&] {
      return store.sql().value("SELECT count(*) FROM pg_locks WHERE NOT granted") == "1";
    }));
    EXPECT_EQ(store.sql()
                  .rows("SELECT name FROM " + locks + " WHERE name = 'z' FOR UPDATE SKIP LOCKED")
                  .size(),
              1U)
        << "it waits for the first with the last in hand";
    first.run("COMMIT");
    for (const core::Outcome& outcome : outcomes.get()) {
      EXPECT_NE(outcome.status, Status::failed);
    }
    ASSERT_EQ(submit(*engine, "a", release(request + 2)).status, Status::released);
    request += 10;
  }
}

}  // namespace
}  // namespace holdfast
