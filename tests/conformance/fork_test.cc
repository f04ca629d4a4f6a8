// After fork() the child holds nothing, harms nothing, and may start anew.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <vector>

#include "conformance/conformance.h"

namespace holdfast::test {
namespace {

// A failed check in the child ends it with this line's number.
#define CHECK_IN_CHILD(condition) \
  if (!(condition)) return __LINE__

class Fork : public Conformance {
 protected:
#ifdef __SANITIZE_THREAD__
  static constexpr bool kChildMayHaveThreads = false;
#else
  static constexpr bool kChildMayHaveThreads = true;
#endif

  // The child's answer, 0 if all went well; -1 if it crashed or hung.
  static int in_child(const std::function<int()>& work) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::_exit(work());
    }
    int status = 0;
    if (!eventually([&] { return ::waitpid(child, &status, WNOHANG) == child; })) {
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
};
class ForkShared : public Fork {};
HOLDFAST_RUN_ON(Fork, harnesses());
HOLDFAST_RUN_ON(ForkShared, harnesses_with(&Claims::processes));

TEST_P(Fork, TheChildsHandlesAreInertAndTheParentsLeaseLivesLongRun) {
  given_time([&](int scale) {
    const Duration ttl = scale * harness().renewable_ttl();
    auto client = open();
    Mutex mutex{*client, harness().fresh_name(), {.ttl = ttl}};
    mutex.lock();
    auto lease = client->acquire(name(), {.ttl = ttl});
    ASSERT_THAT(lease, IsOk());

    EXPECT_EQ(in_child([&] {
                CHECK_IN_CHILD(!lease->is_alive());
                CHECK_IN_CHILD(!lease->release());
                CHECK_IN_CHILD(!client->try_acquire(name()));
                CHECK_IN_CHILD(!client->acquire("another", {.wait = 1s}));
                CHECK_IN_CHILD(!client->list());
                CHECK_IN_CHILD(!client->flush(1s));
                mutex.unlock();
                *lease = Lease{};
                client.reset();
                return 0;
              }),
              0);

    EXPECT_TRUE(throughout(3 * ttl / 2, [&] {
      return lease->is_alive() && mutex.lease()->is_alive() && is_seen_held(*lease);
    }));
    EXPECT_THAT(lease->release(), IsOk());
    mutex.unlock();
    EXPECT_THAT(client->flush(), IsOk());
  });
}

TEST_P(Fork, ANewClientWorksInTheChild) {
  if (!kChildMayHaveThreads) GTEST_SKIP() << "thread sanitizer cannot do that";
  auto client = open();
  auto lease = client->acquire(name());
  ASSERT_THAT(lease, IsOk());
  const std::string other = harness().fresh_name();
  EXPECT_EQ(in_child([&] {
              auto mine = harness().open();
              auto held = mine->acquire(other, {.wait = kPatience});
              CHECK_IN_CHILD(held);
              CHECK_IN_CHILD(held->is_alive());
              CHECK_IN_CHILD(held->release());
              return 0;
            }),
            0);
  EXPECT_THAT(client->try_acquire(other), IsOk());
  EXPECT_TRUE(is_seen_held(*lease));
}

TEST_P(ForkShared, TheChildsNewClientIsAStrangerToTheParents) {
  if (!kChildMayHaveThreads) GTEST_SKIP() << "thread sanitizer cannot do that";
  auto client = open();
  auto lease = client->acquire(name());
  ASSERT_THAT(lease, IsOk());
  EXPECT_EQ(in_child([&] {
              auto mine = harness().open();
              auto refused = mine->try_acquire(name());
              CHECK_IN_CHILD(!refused && refused.error().code == ErrorCode::busy);
              return 0;
            }),
            0);
}

TEST_P(ForkShared, AChildThatWaitsIsHandedTheLockByItsParent) {
  if (!kChildMayHaveThreads) GTEST_SKIP() << "thread sanitizer cannot do that";
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer's allocator may be locked by another thread when it is forked";
#endif
  auto client = open();
  auto lease = client->acquire(name());
  ASSERT_THAT(lease, IsOk());
  std::atomic<bool> queued = false;
  auto releaser = in_background([&] {
    queued = await_waiters(1);
    return lease->release();
  });
  EXPECT_EQ(in_child([&] {
              auto mine = harness().open();
              CHECK_IN_CHILD(mine->acquire(name(), {.wait = kPatience}));
              return 0;
            }),
            0);
  EXPECT_THAT(releaser.get(), IsOk());
  EXPECT_TRUE(queued);
}

// Whatever the parent's threads are in the middle of.
TEST_P(Fork, WhileTheParentsThreadsAreBusy) {
  if (!kChildMayHaveThreads) GTEST_SKIP() << "thread sanitizer cannot do that";
  auto client = open();
  std::atomic<bool> done = false;
  std::atomic<int> turns = 0;
  std::vector<std::future<void>> threads;
  for (int i = 0; i < 2; ++i) {
    threads.push_back(in_background([&] {
      while (!done) {
        auto lease = client->acquire(name(), {.wait = kPatience});
        ASSERT_THAT(lease, IsOk());
        ++turns;
      }
    }));
  }
  const std::string other = harness().fresh_name();
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(in_child([&] {
                auto mine = harness().open();
                CHECK_IN_CHILD(mine->acquire(other, {.wait = kPatience}));
                return 0;
              }),
              0);
  }
  const int before = turns;
  EXPECT_TRUE(eventually([&] { return turns > before + 10; })) << "the parent got stuck";
  done = true;
  for (auto& each : threads) each.get();
}

}  // namespace
}  // namespace holdfast::test
