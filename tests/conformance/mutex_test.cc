// The std-shaped faces: Mutex, SharedMutex and Semaphore with the standard's guards.
#include <atomic>
#include <latch>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "conformance/conformance.h"

namespace holdfast::test {
namespace {

class MutexLike : public Conformance {};
class SharedMutexLike : public Conformance {};
class SemaphoreLike : public Conformance {};
HOLDFAST_RUN_ON(MutexLike, harnesses());
HOLDFAST_RUN_ON(SharedMutexLike, harnesses_with(&Claims::shared));
HOLDFAST_RUN_ON(SemaphoreLike, harnesses_with(&Claims::permits));

TEST_P(MutexLike, LockGuardProtectsACounter) {
  auto client = open();
  Mutex mutex{*client, name()};
  int counter = 0;
  std::vector<std::future<void>> threads;
  for (int i = 0; i < 4; ++i) {
    threads.push_back(in_background([&] {
      for (int turn = 0; turn < 50; ++turn) {
        const std::lock_guard lock{mutex};
        ++counter;
      }
    }));
  }
  for (auto& each : threads) each.get();
  EXPECT_EQ(counter, 200);
}

TEST_P(MutexLike, TheLeaseIsThereExactlyWhileLocked) {
  auto client = open();
  Mutex mutex{*client, name()};
  EXPECT_EQ(mutex.name(), name());
  EXPECT_EQ(mutex.lease(), nullptr);
  {
    const std::lock_guard lock{mutex};
    ASSERT_NE(mutex.lease(), nullptr);
    EXPECT_TRUE(mutex.lease()->is_alive());
    EXPECT_EQ(mutex.lease()->token().has_value(), claims().token);
    EXPECT_TRUE(is_seen_held(*mutex.lease()));
  }
  EXPECT_EQ(mutex.lease(), nullptr);
}

TEST_P(MutexLike, UniqueLockTriesAndGivesUp) {
  auto one = open();
  auto other = open();
  Mutex mine{*one, name()};
  Mutex theirs{*other, name()};
  std::unique_lock held{mine};
  std::unique_lock tried{theirs, std::try_to_lock};
  EXPECT_FALSE(tried);
  std::unique_lock waited{theirs, 30ms};
  EXPECT_FALSE(waited);
  std::unique_lock later{theirs, std::chrono::system_clock::now() + 30ms};
  EXPECT_FALSE(later);
  std::unique_lock past{theirs, std::chrono::steady_clock::now() - 1h};
  EXPECT_FALSE(past);

  held.unlock();
  EXPECT_TRUE(waited.try_lock_for(kPatience));
}

TEST_P(MutexLike, TryLockForTheMaximumDurationJustWaits) {
  auto client = open();
  Mutex mutex{*client, name()};
  EXPECT_TRUE(mutex.try_lock_for(Duration::max()));
  mutex.unlock();
}

TEST_P(MutexLike, ScopedLockOverTwoNeverDeadlocks) {
  auto one = open();
  auto other = open();
  const std::string second = harness().fresh_name();
  int counter = 0;
  const auto work = [&](Client& client, bool reversed) {
    Mutex a{client, name()};
    Mutex b{client, second};
    for (int turn = 0; turn < 10; ++turn) {
      const std::scoped_lock lock{reversed ? b : a, reversed ? a : b};
      ++counter;
    }
  };
  auto forwards = in_background([&] { work(*one, false); });
  auto backwards = in_background([&] { work(*other, true); });
  forwards.get();
  backwards.get();
  EXPECT_EQ(counter, 20);
}

TEST_P(MutexLike, DestroyedWhileLockedItReleases) {
  auto client = open();
  {
    Mutex mutex{*client, name()};
    mutex.lock();
  }
  ASSERT_THAT(client->flush(), IsOk());
  EXPECT_THAT(open()->try_acquire(name()), IsOk());
}

TEST_P(MutexLike, AStopTokenEndsLockWithAnException) {
  auto one = open();
  auto lease = one->acquire(name());
  ASSERT_THAT(lease, IsOk());
  std::stop_source stop;
  auto other = open();
  Mutex mutex{*other, name(), {.stop = stop.get_token()}};
  auto locking = in_background([&] {
    try {
      mutex.lock();
    } catch (const LockError& error) {
      return error.error().code;
    }
    return ErrorCode{};
  });
  ASSERT_TRUE(await_waiters(1));
  stop.request_stop();
  EXPECT_EQ(locking.get(), ErrorCode::cancelled);
}

TEST_P(MutexLike, AMutexOutlivesItsClient) {
  auto client = open();
  Mutex mutex{*client, name()};
  client.reset();
  mutex.lock();
  EXPECT_TRUE(is_seen_held(*mutex.lease()));
  mutex.unlock();
  EXPECT_TRUE(await_nothing_left());
}

TEST_P(SharedMutexLike, SharedLocksMeetAndUniqueLocksDoNot) {
  auto one = open();
  auto other = open();
  SharedMutex mine{*one, name()};
  SharedMutex theirs{*other, name()};
  std::latch both{2};
  auto reader = in_background([&] {
    const std::shared_lock lock{theirs};
    both.count_down();
    return eventually([&] { return both.try_wait(); });
  });
  {
    const std::shared_lock lock{mine};
    both.count_down();
    EXPECT_TRUE(reader.get());
    const std::unique_lock writer{theirs, 20ms};
    EXPECT_FALSE(writer);
  }
  std::unique_lock writer{mine};
  EXPECT_FALSE(theirs.try_lock_shared());
  EXPECT_FALSE(theirs.try_lock_shared_for(20ms));
  EXPECT_FALSE(theirs.try_lock_shared_until(std::chrono::steady_clock::now() + 20ms));
  EXPECT_FALSE(theirs.try_lock());
  writer.unlock();
  EXPECT_TRUE(theirs.try_lock_shared_for(kPatience));
  theirs.unlock_shared();
}

TEST_P(SharedMutexLike, ThreadsOfOneMutexReadTogether) {
  auto client = open();
  SharedMutex mutex{*client, name()};
  constexpr int kReaders = 4;
  std::latch all{kReaders};
  std::vector<std::future<bool>> readers;
  for (int i = 0; i < kReaders; ++i) {
    readers.push_back(in_background([&] {
      const std::shared_lock lock{mutex};
      EXPECT_NE(mutex.lease(), nullptr);
      all.count_down();
      return eventually([&] { return all.try_wait(); });
    }));
  }
  for (auto& reader : readers) EXPECT_TRUE(reader.get());
  EXPECT_TRUE(mutex.try_lock_for(kPatience));
  mutex.unlock();
}

TEST_P(SemaphoreLike, LeasesGiveTheirPermitsBack) {
  auto one = open();
  auto other = open();
  Semaphore mine{*one, name(), 3};
  Semaphore theirs{*other, name(), 3};
  EXPECT_EQ(mine.total(), 3U);
  EXPECT_EQ(mine.name(), name());
  auto two = mine.acquire(2);
  ASSERT_THAT(two, IsOk());
  auto last = theirs.try_acquire();
  ASSERT_THAT(last, IsOk());
  EXPECT_THAT(theirs.try_acquire(), FailsWith(ErrorCode::busy));
  EXPECT_THAT(mine.acquire_for(30ms), FailsWith(ErrorCode::timed_out));
  *two = Lease{};
  EXPECT_THAT(theirs.acquire_for(kPatience, 2), IsOk());
}

TEST_P(SemaphoreLike, AnotherTotalIsRefusedWhileInUse) {
  auto client = open();
  Semaphore three{*client, name(), 3};
  Semaphore four{*client, name(), 4};
  auto lease = three.acquire();
  ASSERT_THAT(lease, IsOk());
  EXPECT_THAT(four.try_acquire(), FailsWith(ErrorCode::invalid_argument));
  ASSERT_THAT(lease->release(), IsOk());
  EXPECT_THAT(four.try_acquire(), IsOk());
}

}  // namespace
}  // namespace holdfast::test
