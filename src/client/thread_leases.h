#pragma once

#include <holdfast/lease.h>
#include <holdfast/mutex.h>
#include <holdfast/options.h>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>

#include "client/service.h"

namespace holdfast::client {

// What Mutex and SharedMutex share: one lease a thread. Thread-safe.
class ThreadLeases {
 public:
  // Throws LockError for options the engine cannot honour.
  ThreadLeases(std::shared_ptr<Service> service, std::string name, AcquireOptions options,
               Reentrancy reentrancy);
  ThreadLeases(const ThreadLeases&) = delete;
  ThreadLeases& operator=(const ThreadLeases&) = delete;

  // False: busy or timed out. Throws LockError otherwise.
  bool lock(Mode mode, std::optional<Duration> wait);
  void unlock() noexcept;
  const Lease* current() const noexcept;
  const std::string& name() const noexcept { return name_; }

  // Throws LockError unless the engine offers the mode.
  void require(Mode mode) const;

 private:
  struct Held {
    Lease lease;
    Mode mode = Mode::exclusive;
    std::uint32_t depth = 1;
  };

  bool enter_again(Mode mode);

  std::shared_ptr<Service> service_;
  std::string name_;
  AcquireOptions options_;
  Reentrancy reentrancy_;
  mutable std::mutex mutex_;
  std::unordered_map<std::thread::id, Held> held_;
};

}  // namespace holdfast::client
