// First come, first served between clients; inside one client a bounded number
// of hand-overs.
#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "conformance/conformance.h"

namespace holdfast::test {
namespace {

class Order : public Conformance {
 protected:
  // A thread of `crowd` holds the lock and a thread of another client stands
  // in the store's queue; then many more threads of `crowd` want it again and
  // again. How many of them enter before the other client?
  int entries_before_the_other_client(const AcquireOptions& how, Duration hold = {}) {
    auto crowd = open();
    auto other = open();
    auto first = crowd->acquire(name(), how);
    EXPECT_THAT(first, IsOk());
    std::atomic<bool> other_entered = false;
    auto stranger = in_background([&] {
      auto lease = other->acquire(name(), how);
      other_entered = true;
      return lease.has_value();
    });
    EXPECT_TRUE(await_waiters(1));

    std::atomic<int> entries = 0;
    std::vector<std::future<void>> threads;
    for (int i = 0; i < 4; ++i) {
      threads.push_back(in_background([&] {
        for (int turn = 0; turn < 200 && !other_entered; ++turn) {
          auto lease = crowd->acquire(name(), how);
          ASSERT_THAT(lease, IsOk());
          if (!other_entered) ++entries;
          std::this_thread::sleep_for(hold);
        }
      }));
    }
    std::this_thread::sleep_for(20ms);  // the more of them line up, the harder the test
    EXPECT_THAT(first->release(), IsOk());
    EXPECT_TRUE(stranger.get());
    for (auto& each : threads) each.get();
    return entries;
  }
};
class Unfair : public Conformance {};
HOLDFAST_RUN_ON(Order, harnesses_with(&Claims::fair));
HOLDFAST_RUN_ON(Unfair, harnesses());

TEST_P(Order, ClientsEnterInTheOrderOfTheirArrival) {
  constexpr std::size_t kClients = 5;
  auto holder = open();
  auto lease = holder->acquire(name());
  ASSERT_THAT(lease, IsOk());

  std::mutex mutex;
  std::vector<std::size_t> order;
  std::vector<std::unique_ptr<Client>> clients;
  std::vector<std::future<void>> waiters;
  for (std::size_t i = 0; i < kClients; ++i) {
    clients.push_back(open());
    waiters.push_back(in_background([&, i, client = clients.back().get()] {
      auto mine = client->acquire(name(), {.wait = kPatience});
      ASSERT_THAT(mine, IsOk());
      const std::scoped_lock lock{mutex};
      order.push_back(i);
    }));
    ASSERT_TRUE(await_waiters(i + 1));
  }
  ASSERT_THAT(lease->release(), IsOk());
  for (auto& each : waiters) each.get();
  EXPECT_THAT(order, ::testing::ElementsAre(0, 1, 2, 3, 4));
}

TEST_P(Order, ALateTryDoesNotOvertakeTheQueue) {
  auto one = open();
  auto other = open();
  auto lease = one->acquire(name(), {.ttl = harness().shortest_ttl(), .renew = false});
  ASSERT_THAT(lease, IsOk());
  auto waiter = acquire_later(*other, name());
  ASSERT_TRUE(await_waiters(1) || is_ready(waiter));
  // Expired or released, the lock now belongs to the waiter and to nobody else.
  harness().let_expire(*lease);
  EXPECT_THAT(open()->try_acquire(name()), FailsWith(ErrorCode::busy));
  EXPECT_THAT(waiter.get(), IsOk());
}

TEST_P(Order, WithoutHandOverTheOtherClientIsNext) {
  EXPECT_EQ(entries_before_the_other_client({.wait = kPatience, .hand_over = 0}), 0);
}

TEST_P(Order, HandOversInsideAClientAreCounted) {
  EXPECT_LE(entries_before_the_other_client({.wait = kPatience, .hand_over = 3}), 3);
}

TEST_P(Order, HandOversInsideAClientEndInTimeToo) {
  // Two turns of 30 ms are more than the 50 ms that a stay may be prolonged.
  EXPECT_LE(entries_before_the_other_client({.wait = kPatience, .hand_over = 60}, 30ms), 2);
}

TEST_P(Order, WaitersOfOneClientEnterInTheOrderOfTheirArrival) {
  constexpr int kWaiters = 500;
  auto client = open();
  auto lease = client->acquire(name());
  ASSERT_THAT(lease, IsOk());
  std::mutex mutex;
  std::vector<int> order;
  for (int i = 0; i < kWaiters; ++i) {
    client->acquire_then(name(), {.wait = kPatience}, [&, i](Result<Lease> mine) {
      EXPECT_THAT(mine, IsOk());
      const std::scoped_lock lock{mutex};
      order.push_back(i);
    });
  }
  lease->release_in_background();
  EXPECT_TRUE(eventually([&] {
    const std::scoped_lock lock{mutex};
    return order.size() == kWaiters;
  }));
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

// Two of the crowd asked before the other client, two after it.
TEST_P(Order, WithoutHandOverTheOrderIsThatOfArrivalWhateverTheClient) {
  auto crowd = open();
  auto other = open();
  auto lease = crowd->acquire(name(), {.hand_over = 0});
  ASSERT_THAT(lease, IsOk());
  std::mutex mutex;
  std::string order;
  const auto ask = [&](Client& client, char who) {
    client.acquire_then(name(), {.wait = kPatience, .hand_over = 0}, [&, who](Result<Lease> mine) {
      EXPECT_THAT(mine, IsOk());
      const std::scoped_lock lock{mutex};
      order.push_back(who);
    });
  };
  ask(*crowd, 'a');
  ASSERT_TRUE(await_waiters(1));
  ask(*other, 'b');
  ASSERT_TRUE(await_waiters(2));
  ask(*crowd, 'c');
  lease->release_in_background();
  EXPECT_TRUE(eventually([&] {
    const std::scoped_lock lock{mutex};
    return order.size() == 3;
  }));
  EXPECT_EQ(order, "abc");
}

TEST_P(Order, TheCrowdThatStoodBackIsServedAfterwards) {
  auto crowd = open();
  auto other = open();
  std::atomic<int> served = 0;
  std::vector<std::future<void>> threads;
  for (int i = 0; i < 8; ++i) {
    threads.push_back(in_background([&, i] {
      for (int turn = 0; turn < 10; ++turn) {
        auto lease =
            (i % 4 == 0 ? other : crowd)->acquire(name(), {.wait = kPatience, .hand_over = 2});
        ASSERT_THAT(lease, IsOk());
        ++served;
      }
    }));
  }
  for (auto& each : threads) each.get();
  EXPECT_EQ(served, 80);
}

// A waiter lives by its heartbeat: one that waits for many ttls keeps its place.
TEST_P(Order, APatientWaiterKeepsItsPlaceLongRun) {
  given_time([&](int scale) {
    auto holder = open();
    auto patient = open();
    auto late = open();
    auto lease = holder->acquire(name());
    ASSERT_THAT(lease, IsOk());
    const Duration ttl = scale * harness().renewable_ttl();
    std::atomic<int> entered = 0;
    auto first = in_background([&] {
      auto mine = patient->acquire(name(), {.ttl = ttl, .wait = kPatience + 2 * ttl});
      return mine ? ++entered : 0;
    });
    ASSERT_TRUE(await_waiters(1));
    EXPECT_TRUE(throughout(2 * ttl, [&] { return seen().queue.size() == 1; }));
    auto second = in_background([&] {
      auto mine = late->acquire(name(), {.wait = kPatience});
      return mine ? ++entered : 0;
    });
    ASSERT_TRUE(await_waiters(2));
    ASSERT_THAT(lease->release(), IsOk());
    EXPECT_EQ(first.get(), 1);
    EXPECT_EQ(second.get(), 2);
  });
}

TEST_P(Unfair, BargersStillExcludeEachOtherAndAllGetTheirTurns) {
  auto one = open();
  auto other = open();
  int turns = 0;  // unprotected but by the lock
  std::atomic<int> inside = 0;
  std::vector<std::future<void>> threads;
  for (int i = 0; i < 4; ++i) {
    threads.push_back(in_background([&, i] {
      for (int turn = 0; turn < 20; ++turn) {
        auto lease =
            (i % 2 == 0 ? one : other)->acquire(name(), {.wait = kPatience, .fair = i >= 2});
        ASSERT_THAT(lease, IsOk());
        EXPECT_EQ(++inside, 1);
        ++turns;
        --inside;
      }
    }));
  }
  for (auto& each : threads) each.get();
  EXPECT_EQ(turns, 80);
}

}  // namespace
}  // namespace holdfast::test
