// Who may enter again what is held already: the same Owner, and for a Mutex
// that was asked to, the same thread.
#include "conformance/conformance.h"

namespace holdfast::test {
namespace {

class Owners : public Conformance {};
class OwnersShared : public Conformance {};
HOLDFAST_RUN_ON(Owners, harnesses());
HOLDFAST_RUN_ON(OwnersShared, harnesses_with(&Claims::shared));

TEST_P(Owners, TheSameOwnerNestsAndTheLastReleaseCounts) {
  auto client = open();
  auto other = open();
  const Owner me = Owner::make();
  const Owner copy = me;
  auto outer = client->acquire(name(), {.owner = me});
  ASSERT_THAT(outer, IsOk());
  auto inner = client->try_acquire(name(), {.owner = copy});
  ASSERT_THAT(inner, IsOk());
  EXPECT_EQ(inner->token(), outer->token());
  EXPECT_EQ(seen().holders.size(), 1U);

  ASSERT_THAT(outer->release(), IsOk());  // in any order
  EXPECT_TRUE(inner->is_alive());
  EXPECT_THAT(other->try_acquire(name()), FailsWith(ErrorCode::busy));
  ASSERT_THAT(inner->release(), IsOk());
  EXPECT_THAT(other->try_acquire(name()), IsOk());
}

TEST_P(Owners, NestedReleasesTwiceOverCountOnce) {
  auto client = open();
  const Owner me = Owner::make();
  auto outer = client->acquire(name(), {.owner = me});
  auto inner = client->try_acquire(name(), {.owner = me});
  ASSERT_THAT(inner, IsOk());
  EXPECT_THAT(inner->release(), IsOk());
  EXPECT_THAT(inner->release(), IsOk());
  *inner = Lease{};
  EXPECT_TRUE(outer->is_alive());
  EXPECT_THAT(open()->try_acquire(name()), FailsWith(ErrorCode::busy));
}

TEST_P(Owners, AnotherOwnerOrNoneIsRefused) {
  auto client = open();
  auto lease = client->acquire(name(), {.owner = Owner::make()});
  ASSERT_THAT(lease, IsOk());
  EXPECT_THAT(client->try_acquire(name(), {.owner = Owner::make()}), FailsWith(ErrorCode::busy));
  EXPECT_THAT(client->try_acquire(name()), FailsWith(ErrorCode::busy));
}

TEST_P(Owners, ReentryOvertakesTheQueueOrItWouldNeverEnd) {
  auto client = open();
  auto other = open();
  const Owner me = Owner::make();
  auto outer = client->acquire(name(), {.owner = me});
  ASSERT_THAT(outer, IsOk());
  auto stranger = acquire_later(*other, name());
  auto neighbour = acquire_later(*client, name());
  ASSERT_TRUE(eventually([&] { return !seen().queue.empty(); }));
  auto inner = client->acquire(name(), {.wait = kPatience, .owner = me});
  EXPECT_THAT(inner, IsOk());
  EXPECT_FALSE(is_ready(stranger));
  EXPECT_FALSE(is_ready(neighbour));
  *inner = Lease{};
  *outer = Lease{};
  // One of them holds until its Lease goes with the future: take them in turn.
  EXPECT_TRUE(eventually([&] { return is_ready(stranger) || is_ready(neighbour); }));
  auto& first = is_ready(stranger) ? stranger : neighbour;
  auto& second = is_ready(stranger) ? neighbour : stranger;
  EXPECT_THAT(first.get(), IsOk());
  EXPECT_THAT(second.get(), IsOk());
}

TEST_P(Owners, AfterALossTheOwnerStartsAnew) {
  if (!claims().lease) return;
  auto client = open();
  const Owner me = Owner::make();
  auto lost =
      client->acquire(name(), {.ttl = harness().shortest_ttl(), .renew = false, .owner = me});
  ASSERT_THAT(lost, IsOk());
  harness().let_expire(*lost);
  auto next = client->acquire(name(), {.wait = kPatience, .owner = me});
  ASSERT_THAT(next, IsOk());
  EXPECT_TRUE(next->is_alive());
  EXPECT_TRUE(is_seen_held(*next));
  if (claims().token) {
    EXPECT_GT(next->token(), lost->token());
  }
  EXPECT_THAT(lost->release(), FailsWith(ErrorCode::lease_lost));
  EXPECT_TRUE(is_seen_held(*next));
}

TEST_P(Owners, AMutexRefusesItsOwnThreadUnlessAskedTo) {
  auto client = open();
  Mutex mutex{*client, name()};
  mutex.lock();
  EXPECT_THROW(mutex.lock(), LockError);
  EXPECT_NE(mutex.lease(), nullptr);
  mutex.unlock();
  EXPECT_EQ(mutex.lease(), nullptr);
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

TEST_P(Owners, AMutexNestsByThreadWhenAskedTo) {
  auto client = open();
  auto other = open();
  Mutex mutex{*client, name(), {}, Reentrancy::by_thread};
  mutex.lock();
  const auto token = mutex.lease()->token();
  mutex.lock();
  EXPECT_TRUE(mutex.try_lock());
  EXPECT_EQ(mutex.lease()->token(), token);
  in_background([&] { EXPECT_FALSE(mutex.try_lock()); }).get();

  mutex.unlock();
  mutex.unlock();
  ASSERT_NE(mutex.lease(), nullptr);
  EXPECT_THAT(other->try_acquire(name()), FailsWith(ErrorCode::busy));
  mutex.unlock();
  EXPECT_EQ(mutex.lease(), nullptr);
  ASSERT_THAT(client->flush(), IsOk());
  EXPECT_THAT(other->try_acquire(name()), IsOk());
}

TEST_P(Owners, UnlockByAThreadThatHoldsNothingDoesNothing) {
  auto client = open();
  Mutex mutex{*client, name()};
  mutex.unlock();
  mutex.lock();
  in_background([&] {
    EXPECT_EQ(mutex.lease(), nullptr);
    mutex.unlock();
  }).get();
  ASSERT_THAT(client->flush(), IsOk());
  EXPECT_TRUE(mutex.lease()->is_alive());
  EXPECT_THAT(open()->try_acquire(name()), FailsWith(ErrorCode::busy));
  mutex.unlock();
}

TEST_P(OwnersShared, AThreadThatReadsIsRefusedToWriteAndTheOtherWayRound) {
  auto client = open();
  SharedMutex mutex{*client, name(), {}, Reentrancy::by_thread};
  mutex.lock_shared();
  EXPECT_THROW(mutex.lock(), LockError);
  mutex.unlock_shared();
  mutex.lock();
  EXPECT_THROW(mutex.lock_shared(), LockError);
  mutex.unlock();
  ASSERT_THAT(client->flush(), IsOk());
  EXPECT_TRUE(await_nothing_left());
}

}  // namespace
}  // namespace holdfast::test
