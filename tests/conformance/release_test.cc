// Release is owner-checked and idempotent, and touches nobody else's lock.
#include "conformance/conformance.h"

namespace holdfast::test {
namespace {

class Release : public Conformance {};
class ReleaseDuringOutage : public Conformance {};
class ReleaseAfterExpiry : public Conformance {};
HOLDFAST_RUN_ON(Release, harnesses());
HOLDFAST_RUN_ON(ReleaseDuringOutage, harnesses_with(&Claims::outage));
HOLDFAST_RUN_ON(ReleaseAfterExpiry, harnesses_with(&Claims::lease));

TEST_P(Release, FreesTheLockByTheTimeItReturns) {
  auto one = open();
  auto other = open();
  for (int turn = 0; turn < 10; ++turn) {
    auto lease = one->acquire(name());
    ASSERT_THAT(lease, IsOk());
    EXPECT_TRUE(*lease);
    ASSERT_THAT(lease->release(), IsOk());
    EXPECT_FALSE(*lease);
    EXPECT_FALSE(lease->is_alive());
    auto next = other->try_acquire(name());
    ASSERT_THAT(next, IsOk());
    ASSERT_THAT(next->release(), IsOk());
  }
}

TEST_P(Release, TwiceIsAsGoodAsOnceAndSparesTheNextHolder) {
  auto one = open();
  auto other = open();
  auto lease = one->acquire(name());
  ASSERT_THAT(lease, IsOk());
  ASSERT_THAT(lease->release(), IsOk());
  auto next = other->acquire(name(), {.wait = kPatience});
  ASSERT_THAT(next, IsOk());

  EXPECT_THAT(lease->release(), IsOk());
  lease->release_in_background();
  lease = Lease{};
  ASSERT_THAT(one->flush(), IsOk());
  EXPECT_TRUE(is_seen_held(*next));
  EXPECT_FALSE(next->lost().stop_requested());
}

TEST_P(Release, TheTokenStaysReadableAfterwards) {
  auto client = open();
  auto lease = client->acquire(name());
  ASSERT_THAT(lease, IsOk());
  const auto token = lease->token();
  ASSERT_THAT(lease->release(), IsOk());
  EXPECT_EQ(lease->token(), token);
  EXPECT_EQ(lease->name(), name());
  EXPECT_FALSE(lease->lost().stop_requested()) << "a release is no loss";
}

TEST_P(Release, OfAnEmptyLeaseDoesNoHarm) {
  Lease nothing;
  EXPECT_FALSE(nothing);
  EXPECT_FALSE(nothing.is_alive());
  EXPECT_FALSE(nothing.token());
  EXPECT_EQ(nothing.remaining(), Duration::zero());
  nothing.release_in_background();
  std::ignore = nothing.release();
}

TEST_P(Release, AMovedLeaseIsReleasedByItsNewPlaceOnly) {
  auto one = open();
  auto other = open();
  auto lease = one->acquire(name());
  ASSERT_THAT(lease, IsOk());
  {
    Lease moved = std::move(*lease);
    EXPECT_FALSE(*lease);  // NOLINT(bugprone-use-after-move): its emptiness is the point
    std::ignore = lease->release();
    EXPECT_TRUE(moved.is_alive());
    EXPECT_THAT(other->try_acquire(name()), FailsWith(ErrorCode::busy));
  }
  ASSERT_THAT(one->flush(), IsOk());
  EXPECT_THAT(other->try_acquire(name()), IsOk());
}

TEST_P(Release, AssigningToALeaseReleasesWhatItHeld) {
  auto client = open();
  auto lease = client->acquire(name());
  auto another = client->acquire(harness().fresh_name());
  ASSERT_THAT(lease, IsOk());
  ASSERT_THAT(another, IsOk());
  *lease = std::move(*another);
  ASSERT_THAT(client->flush(), IsOk());
  EXPECT_TRUE(seen().holders.empty());
  EXPECT_TRUE(lease->is_alive());
}

TEST_P(Release, ThisProcessesNextAcquireIsOrderedBehindABackgroundRelease) {
  auto client = open();
  for (int turn = 0; turn < 50; ++turn) {
    auto lease = client->try_acquire(name());
    ASSERT_THAT(lease, IsOk()) << "turn " << turn;
    if (turn % 2 == 0) lease->release_in_background();
  }
}

TEST_P(Release, FlushWaitsForTheStore) {
  auto one = open();
  auto other = open();
  for (int turn = 0; turn < 20; ++turn) {
    auto lease = one->acquire(name(), {.wait = kPatience});
    ASSERT_THAT(lease, IsOk());
    lease->release_in_background();
    ASSERT_THAT(one->flush(), IsOk());
    auto next = other->try_acquire(name());
    ASSERT_THAT(next, IsOk()) << "turn " << turn;
    ASSERT_THAT(next->release(), IsOk());
  }
}

TEST_P(Release, ClosingTheClientDrains) {
  auto other = open();
  for (int turn = 0; turn < 10; ++turn) {
    {
      auto client = open();
      auto lease = client->acquire(name(), {.wait = kPatience});
      ASSERT_THAT(lease, IsOk());
      lease->release_in_background();
    }
    auto next = other->try_acquire(name());
    ASSERT_THAT(next, IsOk()) << "turn " << turn;
    ASSERT_THAT(next->release(), IsOk());
  }
}

TEST_P(ReleaseAfterExpiry, SaysLeaseLostAndSparesTheNextHolder) {
  auto one = open();
  auto other = open();
  auto lease = one->acquire(name(), {.ttl = harness().shortest_ttl(), .renew = false});
  ASSERT_THAT(lease, IsOk());
  harness().let_expire(*lease);
  auto next = other->acquire(name(), {.wait = kPatience});
  ASSERT_THAT(next, IsOk());

  EXPECT_THAT(lease->release(), FailsWith(ErrorCode::lease_lost));
  EXPECT_TRUE(is_seen_held(*next));
  EXPECT_FALSE(next->lost().stop_requested());
  EXPECT_THAT(one->try_acquire(name()), FailsWith(ErrorCode::busy));
}

TEST_P(ReleaseAfterExpiry, SaysLeaseLostEvenIfNobodyTookIt) {
  auto client = open();
  auto lease = client->acquire(name(), {.ttl = harness().shortest_ttl(), .renew = false});
  ASSERT_THAT(lease, IsOk());
  harness().let_expire(*lease);
  EXPECT_THAT(lease->release(), FailsWith(ErrorCode::lease_lost));
}

// The store cannot answer now: release() is stuck, and whoever waits for an
// answer would be stuck behind it.
TEST_P(ReleaseDuringOutage, UnlockAndDestructorDoNotWaitForTheStore) {
  auto client = open();
  Mutex mutex{*client, name()};
  mutex.lock();
  auto dropped = client->acquire(harness().fresh_name());
  auto released = client->acquire(harness().fresh_name());
  ASSERT_THAT(dropped, IsOk());
  ASSERT_THAT(released, IsOk());
  ASSERT_TRUE(is_seen_held(*mutex.lease()));

  auto outage = harness().begin_outage();
  auto waiting = in_background([&] { return released->release(); });
  std::this_thread::sleep_for(50ms);  // let it be the first in line
  mutex.unlock();
  *dropped = Lease{};
  EXPECT_FALSE(is_ready(waiting));
  EXPECT_EQ(seen().holders.size(), 1U);

  outage.reset();
  std::ignore = waiting.get();
  EXPECT_THAT(client->flush(kPatience), IsOk());
  EXPECT_TRUE(await_nothing_left());
}

}  // namespace
}  // namespace holdfast::test
