// Users' tests of expiry, without waiting.
#include <gtest/gtest.h>
#include <holdfast/holdfast.h>
#include <holdfast/testing.h>

#include <future>
#include <stdexcept>

#include "support/eventually.h"

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

class FakeClockTest : public ::testing::Test {
 protected:
  static Client open() { return *Client::open("memory:fake-clock"); }

  holdfast::testing::FakeClock clock_;
  Client one_ = open();
  Client two_ = open();
};

TEST_F(FakeClockTest, ALeaseEndsWhenItsTimeIsOverAndNotBefore) {
  auto lease = one_.acquire("x", {.ttl = 1h, .renew = false});
  ASSERT_TRUE(lease) << lease.error();
  clock_.advance(59min);
  EXPECT_TRUE(lease->is_alive());
  EXPECT_FALSE(two_.try_acquire("x"));
  clock_.advance(1min);
  EXPECT_FALSE(lease->is_alive());
  auto next = two_.try_acquire("x");
  ASSERT_TRUE(next) << next.error();
  EXPECT_GT(next->token(), lease->token());
  EXPECT_TRUE(eventually([&] { return lease->lost().stop_requested(); }));
  EXPECT_EQ(lease->release().error().code, ErrorCode::lease_lost);
}

TEST_F(FakeClockTest, RenewalsKeepALeaseAliveForHours) {
  auto lease = one_.acquire("x", {.ttl = 30s});
  ASSERT_TRUE(lease) << lease.error();
  for (int i = 0; i < 100; ++i) {
    clock_.advance(9s);
    ASSERT_TRUE(eventually([&] { return lease->remaining() > 20s; })) << i;
  }
  EXPECT_EQ(lease->loss(), std::nullopt);
}

TEST_F(FakeClockTest, WaitsEnd) {
  auto lease = one_.acquire("x", {.ttl = 24h});
  ASSERT_TRUE(lease) << lease.error();
  auto here = std::async(std::launch::async, [&] { return one_.acquire("x", {.wait = 1h}); });
  auto there = std::async(std::launch::async, [&] { return two_.acquire("x", {.wait = 1h}); });
  EXPECT_TRUE(eventually([&] { return two_.show("x")->queue.size() >= 1; }));
  // Whoever begins to wait only now waits from now on.
  EXPECT_TRUE(eventually([&] {
    clock_.advance(10min);
    return here.wait_for(1ms) == std::future_status::ready &&
           there.wait_for(1ms) == std::future_status::ready;
  }));
  EXPECT_EQ(here.get().error().code, ErrorCode::timed_out);
  EXPECT_EQ(there.get().error().code, ErrorCode::timed_out);
}

TEST_F(FakeClockTest, AWaiterGetsWhatExpires) {
  auto lease = one_.acquire("x", {.ttl = 1h, .renew = false});
  ASSERT_TRUE(lease) << lease.error();
  auto waiter = std::async(std::launch::async, [&] { return two_.acquire("x", {.ttl = 24h}); });
  EXPECT_TRUE(eventually([&] { return two_.show("x")->queue.size() == 1; }));
  clock_.advance(1h);
  EXPECT_TRUE(waiter.get());
}

TEST_F(FakeClockTest, ThereIsOneAndItMovesForward) {
  EXPECT_THROW(holdfast::testing::FakeClock{}, std::logic_error);
  EXPECT_THROW(clock_.advance(-1s), std::invalid_argument);
}

}  // namespace
}  // namespace holdfast::test
