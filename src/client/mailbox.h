#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "base/time.h"

namespace holdfast::client {

// Where a blocked caller waits for one value. Thread-safe.
template <typename T>
class Mailbox {
 public:
  void put(T value) {
    {
      const std::lock_guard lock{mutex_};
      value_.emplace(std::move(value));
    }
    filled_.notify_one();
  }

  // Ends the wait early, without a value.
  void interrupt() {
    {
      const std::lock_guard lock{mutex_};
      interrupted_ = true;
    }
    filled_.notify_one();
  }

  // The value; or empty at the deadline, or after interrupt().
  std::optional<T> take_until(base::Time deadline) {
    std::unique_lock lock{mutex_};
    while (!value_ && !interrupted_) {
      if (deadline == base::kNever) {
        filled_.wait(lock);
        continue;
      }
      const base::Time now = base::BootClock::now();
      if (now >= deadline) {
        break;
      }
      filled_.wait_for(lock, base::nap(deadline - now));
    }
    return std::exchange(value_, std::nullopt);
  }

  // take_until() would not wait.
  bool settled() const {
    const std::lock_guard lock{mutex_};
    return value_ || interrupted_;
  }

  // Waits for the value alone.
  T take() {
    std::unique_lock lock{mutex_};
    filled_.wait(lock, [this] { return value_.has_value(); });
    return std::move(*value_);
  }

  bool interrupted() const {
    const std::lock_guard lock{mutex_};
    return interrupted_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable filled_;
  std::optional<T> value_;
  bool interrupted_ = false;
};

}  // namespace holdfast::client
