#pragma once

#include <holdfast/client.h>
#include <holdfast/lease.h>
#include <holdfast/mutex.h>
#include <holdfast/options.h>
#include <chrono>
#include <memory>
#include <string>

namespace holdfast {

// Many readers or one writer: works with std::shared_lock and
// std::unique_lock. Otherwise as Mutex; options.mode does not apply.
// A thread that holds it in one mode is refused the other.
class SharedMutex {
 public:
  // Throws LockError: invalid_argument, unsupported.
  SharedMutex(Client& client, std::string name, AcquireOptions options = {},
              Reentrancy reentrancy = Reentrancy::refused);
  ~SharedMutex();
  SharedMutex(const SharedMutex&) = delete;
  SharedMutex& operator=(const SharedMutex&) = delete;

  void lock();
  bool try_lock();
  bool try_lock_for(Duration wait);
  template <typename Clock, typename D>
  bool try_lock_until(const std::chrono::time_point<Clock, D>& deadline) {
    return try_lock_for(std::chrono::duration_cast<Duration>(deadline - Clock::now()));
  }
  void unlock() noexcept;

  void lock_shared();
  bool try_lock_shared();
  bool try_lock_shared_for(Duration wait);
  template <typename Clock, typename D>
  bool try_lock_shared_until(const std::chrono::time_point<Clock, D>& deadline) {
    return try_lock_shared_for(std::chrono::duration_cast<Duration>(deadline - Clock::now()));
  }
  void unlock_shared() noexcept;

  const Lease* lease() const noexcept;
  const std::string& name() const noexcept;

 private:
  std::unique_ptr<client::ThreadLeases> leases_;
};

}  // namespace holdfast
