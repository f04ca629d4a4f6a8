// A semaphore of N never has more than N permits out, and everybody agrees on N.
#include <atomic>
#include <vector>

#include "conformance/conformance.h"

namespace holdfast::test {
namespace {

class Permits : public Conformance {
 protected:
  static AcquireOptions permits(std::uint32_t count, std::uint32_t total) {
    return {.mode = Mode::permits, .permits = count, .of = total};
  }
};
class PermitsInOrder : public Permits {};
HOLDFAST_RUN_ON(Permits, harnesses_with(&Claims::permits));
HOLDFAST_RUN_ON(PermitsInOrder, harnesses_with(&Claims::permits, &Claims::fair));

TEST_P(Permits, AsManyAsThereAreAndNoMore) {
  auto one = open();
  auto other = open();
  auto first = one->try_acquire(name(), permits(1, 3));
  auto second = other->try_acquire(name(), permits(1, 3));
  auto third = one->try_acquire(name(), permits(1, 3));
  ASSERT_THAT(first, IsOk());
  ASSERT_THAT(second, IsOk());
  ASSERT_THAT(third, IsOk());
  EXPECT_THAT(one->try_acquire(name(), permits(1, 3)), FailsWith(ErrorCode::busy));
  EXPECT_THAT(other->try_acquire(name(), permits(1, 3)), FailsWith(ErrorCode::busy));

  ASSERT_THAT(second->release(), IsOk());
  EXPECT_THAT(one->try_acquire(name(), permits(1, 3)), IsOk());
}

TEST_P(Permits, SeveralAtOnceAreTakenAndGivenBackTogether) {
  auto one = open();
  auto other = open();
  auto two = one->try_acquire(name(), permits(2, 3));
  ASSERT_THAT(two, IsOk());
  EXPECT_THAT(other->try_acquire(name(), permits(2, 3)), FailsWith(ErrorCode::busy));
  auto last = other->try_acquire(name(), permits(1, 3));
  ASSERT_THAT(last, IsOk());

  ASSERT_THAT(two->release(), IsOk());
  EXPECT_THAT(other->try_acquire(name(), permits(3, 3)), FailsWith(ErrorCode::busy));
  EXPECT_THAT(other->try_acquire(name(), permits(2, 3)), IsOk());
}

TEST_P(Permits, AnExpiredHolderGivesThemBack) {
  auto one = open();
  auto lost = one->acquire(name(), {.ttl = harness().shortest_ttl(),
                                    .mode = Mode::permits,
                                    .permits = 2,
                                    .of = 2,
                                    .renew = false});
  ASSERT_THAT(lost, IsOk());
  harness().let_expire(*lost);
  EXPECT_THAT(open()->try_acquire(name(), permits(2, 2)), IsOk());
}

TEST_P(Permits, AnotherTotalIsRefusedUntilIdle) {
  auto one = open();
  auto other = open();
  auto lease = one->acquire(name(), permits(1, 3));
  ASSERT_THAT(lease, IsOk());
  auto refused = other->acquire(name(), permits(1, 5));
  EXPECT_THAT(refused, FailsWith(ErrorCode::invalid_argument));
  EXPECT_THAT(refused.error().text, ::testing::HasSubstr("3")) << "say which total is in use";
  EXPECT_THAT(one->try_acquire(name(), permits(1, 5)), FailsWith(ErrorCode::invalid_argument));

  ASSERT_THAT(lease->release(), IsOk());
  EXPECT_THAT(other->try_acquire(name(), permits(5, 5)), IsOk());
}

TEST_P(Permits, AndNoOtherKindOfLockEither) {
  auto one = open();
  auto other = open();
  auto lease = one->acquire(name(), permits(1, 3));
  ASSERT_THAT(lease, IsOk());
  EXPECT_FALSE(other->try_acquire(name()));
  EXPECT_FALSE(one->try_acquire(name()));

  const std::string plain = harness().fresh_name();
  auto exclusive = one->acquire(plain);
  ASSERT_THAT(exclusive, IsOk());
  EXPECT_FALSE(other->try_acquire(plain, permits(1, 3)));
}

TEST_P(Permits, ALargerTotalAdmitsWhoWaits) {
  auto one = open();
  auto other = open();
  auto first = one->acquire(name(), permits(1, 1));
  ASSERT_THAT(first, IsOk());
  auto waiter = acquire_later(*other, name(), permits(1, 1));
  ASSERT_TRUE(await_waiters(1));

  ASSERT_THAT(bystander().resize(name(), 2), IsOk());
  auto second = waiter.get();
  ASSERT_THAT(second, IsOk());
  EXPECT_TRUE(is_seen_held(*first));
  EXPECT_EQ(seen().limit, 2U);
  EXPECT_THAT(one->try_acquire(name(), permits(1, 2)), FailsWith(ErrorCode::busy));
}

TEST_P(Permits, ASmallerTotalLeavesGrantsAndWaitsForRoom) {
  auto one = open();
  auto first = one->acquire(name(), permits(1, 2));
  auto second = one->acquire(name(), permits(1, 2));
  ASSERT_THAT(second, IsOk());
  ASSERT_THAT(bystander().resize(name(), 1), IsOk());

  EXPECT_TRUE(first->is_alive());
  EXPECT_TRUE(is_seen_held(*first));
  EXPECT_TRUE(is_seen_held(*second));
  ASSERT_THAT(first->release(), IsOk());
  EXPECT_THAT(one->try_acquire(name(), permits(1, 1)), FailsWith(ErrorCode::busy));
  ASSERT_THAT(second->release(), IsOk());
  EXPECT_THAT(one->try_acquire(name(), permits(1, 1)), IsOk());
}

TEST_P(Permits, ThreadsOfSeveralClientsNeverTakeMoreThanThereAre) {
  constexpr std::uint32_t kTotal = 3;
  constexpr int kThreads = 6;
  auto one = open();
  auto other = open();
  std::atomic<std::uint32_t> out = 0;
  std::atomic<bool> too_many = false;
  std::vector<std::future<void>> work;
  for (int i = 0; i < kThreads; ++i) {
    work.push_back(in_background([&, i] {
      for (int turn = 0; turn < 20; ++turn) {
        const auto count = static_cast<std::uint32_t>(1 + (i + turn) % 2);
        auto options = permits(count, kTotal);
        options.wait = kPatience;
        auto lease = (i % 2 == 0 ? one : other)->acquire(name(), options);
        ASSERT_THAT(lease, IsOk());
        if (out.fetch_add(count) + count > kTotal) too_many = true;
        std::this_thread::yield();
        out -= count;
      }
    }));
  }
  for (auto& each : work) each.get();
  EXPECT_FALSE(too_many);
}

TEST_P(PermitsInOrder, SmallRequestsDoNotOvertakeALargeOne) {
  auto one = open();
  auto other = open();
  auto first = one->acquire(name(), permits(1, 3));
  ASSERT_THAT(first, IsOk());
  auto large = acquire_later(*other, name(), permits(3, 3));
  ASSERT_TRUE(await_waiters(1));
  EXPECT_THAT(one->try_acquire(name(), permits(1, 3)), FailsWith(ErrorCode::busy));
  EXPECT_THAT(open()->try_acquire(name(), permits(1, 3)), FailsWith(ErrorCode::busy));

  ASSERT_THAT(first->release(), IsOk());
  EXPECT_THAT(large.get(), IsOk());
}

}  // namespace
}  // namespace holdfast::test
