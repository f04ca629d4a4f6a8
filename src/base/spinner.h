#pragma once

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <limits>

#include "base/time.h"

namespace holdfast::base {

// Whoever waits for an answer that is usually there in a moment looks for it again and again,
// and lets others run in between, instead of going to sleep: to wake a sleeper takes about as
// long as a store nearby takes to answer. Learns how long it usually takes. Thread-safe.
class Spinner {
 public:
  struct Limits {
    Duration most;                                // what takes longer is slept for at once
    int turns = std::numeric_limits<int>::max();  // of the others
  };

  // Until `there()`, for as long as that usually takes. False: it is not there, or by experience
  // takes too long; whoever asked had better sleep.
  template <typename There>
  bool spin(const Limits& limits, There there) {
    if (there()) {
      return true;
    }
    const Duration usual{usual_.load(std::memory_order_relaxed)};
    if (usual > limits.most || limits.most <= Duration::zero() || is_clock_fake()) {
      return false;
    }
    const Time until = BootClock::now() + std::min(limits.most, std::max(2 * usual, kShortest));
    for (int turn = 0; turn < limits.turns && BootClock::now() < until; ++turn) {
      sched_yield();
      if (there()) {
        return true;
      }
    }
    return false;
  }

  // How long it took in the end, awake or asleep.
  void learn(Duration took) {
    const Duration::rep before = usual_.load(std::memory_order_relaxed);
    const Duration::rep now = std::min<Duration::rep>(took.count(), Duration{kLongest}.count());
    usual_.store(before + (now - before) / kMemory, std::memory_order_relaxed);
  }

 private:
  static constexpr Duration kShortest = std::chrono::microseconds{20};
  // What took longer tells nothing more, and is soon forgotten.
  static constexpr Duration kLongest = std::chrono::milliseconds{20};
  static constexpr Duration::rep kMemory = 8;

  std::atomic<Duration::rep> usual_{0};
};

}  // namespace holdfast::base
