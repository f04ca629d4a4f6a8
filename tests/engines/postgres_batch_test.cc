// What is given back, renewed and taken in one batch, in both forms of that statement.
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "support/engine_driver.h"
#include "support/needs.h"
#include "support/postgres_store.h"

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

}  // namespace
}  // namespace holdfast
