#pragma once

#include <condition_variable>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace holdfast::engine {

// One submitted batch on its way: collects the outcomes, and tells the caller
// on its own thread while that waits, else on the thread that brings the last.
class BatchInFlight {
 public:
  BatchInFlight(std::span<const core::Command> commands, Done done)
      : commands_{commands.begin(), commands.end()},
        outcomes_(commands.size()),
        left_{commands.size()},
        done_{std::move(done)} {}

  const std::vector<core::Command>& commands() const noexcept { return commands_; }

  void put(std::size_t index, core::Outcome outcome) {
    std::unique_lock lock{mutex_};
    outcomes_[index] = std::move(outcome);
    if (--left_ > 0) {
      return;
    }
    if (caller_waits_) {
      changed_.notify_all();
      return;
    }
    tell(lock);
  }

  // The caller lends its thread until then.
  void wait(base::Time until) {
    std::unique_lock lock{mutex_};
    caller_waits_ = true;
    while (left_ > 0) {
      const base::Time now = base::BootClock::now();
      if (now >= until) {
        break;
      }
      if (until == base::kNever) {
        changed_.wait(lock);
      } else {
        changed_.wait_for(lock, until - now);
      }
    }
    caller_waits_ = false;
    if (left_ == 0) {
      tell(lock);
    }
  }

  // The engine ends: whatever is not known by now stays unknown.
  void abandon(const core::Outcome& outcome) {
    std::unique_lock lock{mutex_};
    if (left_ > 0) {
      outcomes_.assign(outcomes_.size(), outcome);
      tell(lock);
    }
  }

 private:
  void tell(std::unique_lock<std::mutex>& lock) {
    const Done done = std::exchange(done_, nullptr);
    Outcomes outcomes = std::move(outcomes_);
    outcomes_.resize(commands_.size());
    lock.unlock();
    if (done) {
      done(std::move(outcomes));
    }
  }

  const std::vector<core::Command> commands_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Outcomes outcomes_;
  std::size_t left_;
  bool caller_waits_ = false;
  Done done_;
};

}  // namespace holdfast::engine
