#pragma once

#include <condition_variable>
#include <mutex>
#include <span>
#include <thread>
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

  // The engine ends: whatever is not known by now stays unknown. The caller is not told
  // anything after this: if another thread is just telling it, waits for the end of that.
  void abandon(const core::Outcome& outcome) {
    std::unique_lock lock{mutex_};
    if (left_ > 0) {
      outcomes_.assign(outcomes_.size(), outcome);
      tell(lock);
      return;
    }
    changed_.wait(lock, [this] {
      return teller_ == std::thread::id{} || teller_ == std::this_thread::get_id();
    });
  }

 private:
  void tell(std::unique_lock<std::mutex>& lock) {
    const Done done = std::exchange(done_, nullptr);
    if (!done) {
      return;
    }
    Outcomes outcomes = std::move(outcomes_);
    outcomes_.resize(commands_.size());
    teller_ = std::this_thread::get_id();
    lock.unlock();
    done(std::move(outcomes));
    lock.lock();
    teller_ = {};
    changed_.notify_all();
  }

  const std::vector<core::Command> commands_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Outcomes outcomes_;
  std::size_t left_;
  bool caller_waits_ = false;
  std::thread::id teller_;  // who is inside done_
  Done done_;
};

}  // namespace holdfast::engine
