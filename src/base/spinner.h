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
//
// Who sleeps never learns that the answer would have been there in time, had he stayed awake:
// the time to be woken is in all that he measures. So where that may be what makes the
// difference a spin is tried now and then, and what it finds counts more than the sleeps.
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
    if (limits.most <= Duration::zero() || is_clock_fake()) {
      return false;
    }
    const Duration usual{usual_.load(std::memory_order_relaxed)};
    const bool on_trial = usual > limits.most;
    if (on_trial && (usual > 2 * limits.most || !is_time_for_a_trial())) {
      return false;
    }
    const Time began = BootClock::now();
    const Time until = began + std::min(limits.most, std::max(2 * usual, kShortest));
    for (int turn = 0; turn < limits.turns && BootClock::now() < until; ++turn) {
      sched_yield();
      if (there()) {
        // If others had the processor for long, the trial has shown nothing.
        if (const Duration took = BootClock::now() - began; on_trial && took <= limits.most) {
          usual_.store(took.count(), std::memory_order_relaxed);
        }
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
  bool is_time_for_a_trial() {
    return slept_.fetch_add(1, std::memory_order_relaxed) % kTrial == kTrial - 1;
  }

  static constexpr unsigned kTrial = 32;  // one wait of so many
  static constexpr Duration kShortest = std::chrono::microseconds{20};
  // What took longer tells nothing more, and is soon forgotten.
  static constexpr Duration kLongest = std::chrono::milliseconds{20};
  static constexpr Duration::rep kMemory = 8;

  std::atomic<Duration::rep> usual_{0};
  std::atomic<unsigned> slept_{0};  // where a trial would have been worth it
};

}  // namespace holdfast::base
