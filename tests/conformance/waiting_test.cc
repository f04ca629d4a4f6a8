// How long an acquire waits, what ends the wait, and that one outcome is all
// that remains of it.
#include <pthread.h>

#include <atomic>
#include <csignal>
#include <stop_token>

#include "conformance/conformance.h"

namespace holdfast::test {
namespace {

class Waiting : public Conformance {};
HOLDFAST_RUN_ON(Waiting, harnesses());

TEST_P(Waiting, NotAtAllMeansBusyAndNoPlaceInTheQueue) {
  auto one = open();
  auto other = open();
  auto lease = one->acquire(name());
  ASSERT_THAT(lease, IsOk());
  EXPECT_THAT(other->acquire(name(), {.wait = 0s}), FailsWith(ErrorCode::busy));
  EXPECT_TRUE(seen().queue.empty());
  ASSERT_THAT(lease->release(), IsOk());
  EXPECT_TRUE(await_nothing_left());
}

TEST_P(Waiting, NotAtAllStillTakesAFreeLock) {
  EXPECT_THAT(open()->acquire(name(), {.wait = 0s}), IsOk());
}

TEST_P(Waiting, ForAWhileEndsWithTimedOutNotEarlierAndLeavesNothing) {
  auto one = open();
  auto other = open();
  auto lease = one->acquire(name());
  ASSERT_THAT(lease, IsOk());
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THAT(other->acquire(name(), {.wait = 100ms}), FailsWith(ErrorCode::timed_out));
  EXPECT_GE(std::chrono::steady_clock::now() - start, 100ms);
  EXPECT_TRUE(await_waiters(0));
  ASSERT_THAT(lease->release(), IsOk());
  EXPECT_TRUE(await_nothing_left());
}

TEST_P(Waiting, ForAWhileInTheSameClientEndsTheSameWay) {
  auto client = open();
  auto lease = client->acquire(name());
  ASSERT_THAT(lease, IsOk());
  EXPECT_THAT(client->acquire(name(), {.wait = 50ms}), FailsWith(ErrorCode::timed_out));
  ASSERT_THAT(lease->release(), IsOk());
  EXPECT_TRUE(await_nothing_left());
}

TEST_P(Waiting, TheFirstLocalWaiterGivesUpAndTheNextIsStillServed) {
  auto one = open();
  auto other = open();
  auto lease = one->acquire(name());
  ASSERT_THAT(lease, IsOk());
  auto hasty = acquire_later(*other, name(), {.wait = 100ms});
  ASSERT_TRUE(await_waiters(1) || is_ready(hasty));
  auto patient = acquire_later(*other, name());
  EXPECT_THAT(hasty.get(), FailsWith(ErrorCode::timed_out));
  ASSERT_TRUE(await_waiters(1));
  ASSERT_THAT(lease->release(), IsOk());
  EXPECT_THAT(patient.get(), IsOk());
}

TEST_P(Waiting, ForEverEndsWhenTheLockIsFree) {
  auto one = open();
  auto other = open();
  std::stop_source give_up;  // only if the test has failed already
  auto lease = one->acquire(name());
  ASSERT_THAT(lease, IsOk());
  auto waiter = in_background(
      [&] { return other->acquire(name(), {.wait = {}, .stop = give_up.get_token()}); });
  ASSERT_TRUE(await_waiters(1));
  ASSERT_THAT(lease->release(), IsOk());
  const bool ended = eventually([&] { return is_ready(waiter); });
  EXPECT_TRUE(ended);
  give_up.request_stop();
  EXPECT_THAT(waiter.get(), IsOk());
}

TEST_P(Waiting, AStopTokenEndsItWithCancelledAndLeavesNothing) {
  auto one = open();
  auto other = open();
  std::stop_source stop;
  auto lease = one->acquire(name());
  ASSERT_THAT(lease, IsOk());
  auto waiter = acquire_later(*other, name(), {.stop = stop.get_token()});
  ASSERT_TRUE(await_waiters(1));
  stop.request_stop();
  EXPECT_THAT(waiter.get(), FailsWith(ErrorCode::cancelled));
  EXPECT_TRUE(await_waiters(0));
  ASSERT_THAT(lease->release(), IsOk());
  EXPECT_TRUE(await_nothing_left());
}

TEST_P(Waiting, AStopRequestedBeforehandCountsToo) {
  auto one = open();
  std::stop_source stop;
  stop.request_stop();
  auto lease = one->acquire(name());
  ASSERT_THAT(lease, IsOk());
  EXPECT_THAT(open()->acquire(name(), {.stop = stop.get_token()}), FailsWith(ErrorCode::cancelled));
  EXPECT_THAT(one->acquire(name(), {.stop = stop.get_token()}), FailsWith(ErrorCode::cancelled));
  EXPECT_TRUE(await_waiters(0));
}

// Cancel and grant are let loose at the same moment, in this client or from
// another one. Granted: it really holds. Cancelled: it really does not.
TEST_P(Waiting, WhenACancelMeetsAGrantThereIsOneOutcome) {
  auto one = open();
  auto other = open();
  int granted = 0;
  for (int turn = 0; turn < 60; ++turn) {
    auto lease = (turn % 2 == 0 ? one : other)->acquire(name(), {.wait = kPatience});
    ASSERT_THAT(lease, IsOk());
    std::stop_source stop;
    std::atomic<bool> go = false;
    auto waiter = acquire_later(*other, name(), {.stop = stop.get_token()});
    if (turn % 2 == 0) {
      ASSERT_TRUE(await_waiters(1));
    }
    auto canceller = in_background([&] {
      while (!go) std::this_thread::yield();
      stop.request_stop();
    });
    go = true;
    lease->release_in_background();
    auto outcome = waiter.get();
    canceller.get();
    if (outcome) {
      ++granted;
      EXPECT_TRUE(is_seen_held(*outcome));
      EXPECT_THAT(outcome->release(), IsOk());
    } else {
      EXPECT_EQ(outcome.error().code, ErrorCode::cancelled);
    }
    ASSERT_TRUE(await_nothing_left()) << "turn " << turn << (outcome ? " granted" : " cancelled");
  }
  RecordProperty("granted", granted);
}

TEST_P(Waiting, WhenATimeOutMeetsAGrantThereIsOneOutcome) {
  auto one = open();
  auto other = open();
  for (int turn = 0; turn < 40; ++turn) {
    auto lease = one->acquire(name(), {.wait = kPatience});
    ASSERT_THAT(lease, IsOk());
    auto waiter = acquire_later(*other, name(), {.wait = 20ms});
    std::this_thread::sleep_for(15ms + turn * 250us);  // around the moment of the time-out
    lease->release_in_background();
    auto outcome = waiter.get();
    if (outcome) {
      EXPECT_TRUE(is_seen_held(*outcome));
      EXPECT_THAT(outcome->release(), IsOk());
    } else {
      EXPECT_EQ(outcome.error().code, ErrorCode::timed_out);
    }
    ASSERT_TRUE(await_nothing_left()) << "turn " << turn << (outcome ? " granted" : " timed out");
  }
}

TEST_P(Waiting, ThenCallsBackExactlyOnceWhateverHappens) {
  auto one = open();
  auto other = open();
  auto lease = one->acquire(name());
  ASSERT_THAT(lease, IsOk());
  std::atomic<int> calls = 0;
  std::atomic<int> cancelled = 0;
  std::atomic<int> granted = 0;
  const auto count = [&](Result<Lease> result) {
    ++calls;
    if (result) ++granted;
    if (!result && result.error().code == ErrorCode::cancelled) ++cancelled;
  };
  std::stop_source stop;
  other->acquire_then(name(), {.wait = kPatience, .stop = stop.get_token()}, count);
  ASSERT_TRUE(await_waiters(1));
  other->acquire_then(name(), {.wait = kPatience}, count);
  stop.request_stop();
  EXPECT_TRUE(eventually([&] { return cancelled == 1; }));
  EXPECT_EQ(calls, 1);
  ASSERT_THAT(lease->release(), IsOk());
  EXPECT_TRUE(eventually([&] { return granted == 1; }));
  EXPECT_TRUE(await_nothing_left());  // the callback dropped its lease
  EXPECT_EQ(calls, 2);
}

TEST_P(Waiting, ClosingTheClientEndsItsAsynchronousWaits) {
  auto one = open();
  auto lease = one->acquire(name());
  ASSERT_THAT(lease, IsOk());
  std::atomic<int> cancelled = 0;
  auto other = open();
  for (int i = 0; i < 3; ++i) {
    other->acquire_then(name(), {.wait = kPatience}, [&](const Result<Lease>& result) {
      EXPECT_THAT(result, FailsWith(ErrorCode::cancelled));
      ++cancelled;
    });
  }
  ASSERT_TRUE(eventually([&] { return !seen().queue.empty(); }));
  other.reset();
  EXPECT_TRUE(eventually([&] { return cancelled == 3; }));
  EXPECT_TRUE(await_waiters(0));
}

TEST_P(Waiting, SignalsNeitherEndNorProlongIt) {
  struct sigaction interrupt {};
  interrupt.sa_handler = [](int) {};  // and no SA_RESTART
  struct sigaction before {};
  ::sigaction(SIGUSR1, &interrupt, &before);
  auto one = open();
  auto other = open();
  auto lease = one->acquire(name());
  ASSERT_THAT(lease, IsOk());
  std::atomic<pthread_t> waiting_thread{};
  std::atomic<bool> done = false;
  auto waiter = in_background([&] {
    waiting_thread = ::pthread_self();
    const auto start = std::chrono::steady_clock::now();
    auto outcome = other->acquire(name(), {.wait = 200ms});
    EXPECT_GE(std::chrono::steady_clock::now() - start, 200ms);
    done = true;
    // Stay until the storm is over: a signal to a thread that is gone is a bug of the test.
    eventually([&] { return waiting_thread == pthread_t{}; });
    return outcome;
  });
  EXPECT_TRUE(eventually([&] {
    if (const pthread_t thread = waiting_thread; thread != pthread_t{}) {
      ::pthread_kill(thread, SIGUSR1);
    }
    return done.load();
  }));
  waiting_thread = pthread_t{};
  EXPECT_THAT(waiter.get(), FailsWith(ErrorCode::timed_out));
  ::sigaction(SIGUSR1, &before, nullptr);
}

}  // namespace
}  // namespace holdfast::test
