// Threads that go from lock to lock travel together.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "unit/service_desk.h"

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

class Gathering : public ServiceTest {
 protected:
  static constexpr std::size_t kThreads = 8;

  static void cycle(client::Service& service, std::size_t thread) {
    auto lease = service.acquire("lock of " + std::to_string(thread), {});
    ASSERT_TRUE(lease) << lease.error();  // its end is a release that nobody awaits
  }

  // All of them in each batch: those who were served by it came back before the next was sent.
  void expect_one_batch(client::Service& service) {
    std::atomic<bool> enough = false;
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        while (!enough) {
          cycle(service, i);
        }
      });
    }
    // Without company the first to come back goes ahead of the others, always.
    const std::vector<std::size_t> full(3, kThreads);
    EXPECT_TRUE(eventually([&] {
      const auto batches = control->acquires();
      return !std::ranges::search(batches, full).empty();
    }));
    enough = true;
    for (std::thread& thread : threads) {
      thread.join();
    }
  }
};

TEST_F(Gathering, ThoseWhoAreServedTogetherAskTogether) {
  expect_one_batch(*open_async({.gather = 5ms}));
}

TEST_F(Gathering, WhoDoesNotComeBackIsNotWaitedForLong) {
  const auto service = open_async({.gather = 5ms});
  expect_one_batch(*service);  // and nobody of them comes back
  for (int i = 0; i < 20; ++i) {
    cycle(*service, 0);
  }
  EXPECT_TRUE(all_free(*service));
}

// Who waits for its own release has come back.
TEST_F(Gathering, AReleaseThatIsAwaitedDoesNotWaitForItsOwnCaller) {
  const auto service = open_async({.inline_percent = 100, .gather = 10min});
  for (int i = 0; i < 20; ++i) {
    auto lease = service->acquire("lock", {});
    ASSERT_TRUE(lease) << lease.error();
    ASSERT_TRUE(lease->release());
  }
}

}  // namespace
}  // namespace holdfast::test
