#pragma once

#include <holdfast/client.h>
#include <holdfast/lease.h>
#include <holdfast/options.h>
#include <chrono>
#include <memory>
#include <string>

namespace holdfast {

namespace client {
class ThreadLeases;
}

enum class Reentrancy : std::uint8_t {
  refused,    // lock() by a thread that holds the mutex throws
  by_thread,  // nested lock() by the same thread counts; the token stays
};

// A lock that feels like std::timed_mutex: works with std::lock_guard,
// std::unique_lock and std::scoped_lock. Thread-safe. Keeps one lease a
// thread: after a loss, one thread's unlock() never touches another's lease.
//
// options.wait and options.owner do not apply: the calls below say how long
// to wait, and the thread is the owner.
class Mutex {
 public:
  // Throws LockError: invalid_argument for a bad name or option, unsupported
  // for what the engine cannot do.
  Mutex(Client& client, std::string name, AcquireOptions options = {},
        Reentrancy reentrancy = Reentrancy::refused);
  ~Mutex();  // releases, in the background, what is still held
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  // Throws LockError, also when this thread holds the mutex and re-entrancy
  // was not asked for, and when options.stop ends the wait.
  void lock();

  // false: busy, or the time is up. Throws LockError for everything else.
  bool try_lock();
  bool try_lock_for(Duration wait);
  template <typename Clock, typename D>
  bool try_lock_until(const std::chrono::time_point<Clock, D>& deadline) {
    return try_lock_for(std::chrono::duration_cast<Duration>(deadline - Clock::now()));
  }

  // Does not wait for the store, never throws. Without effect if this thread
  // holds nothing.
  void unlock() noexcept;

  // The calling thread's lease (token, lost(), is_alive()): valid until its
  // unlock(). nullptr if this thread holds nothing.
  const Lease* lease() const noexcept;

  const std::string& name() const noexcept;

 private:
  std::unique_ptr<client::ThreadLeases> leases_;
};

}  // namespace holdfast
