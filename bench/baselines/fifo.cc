#include <condition_variable>
#include <deque>
#include <mutex>

#include "baselines.h"

namespace baselines {
namespace {

constexpr unsigned kThreads = 16;
// As a lock of ours: let in once, then handed over 32 times.
constexpr std::size_t kTenancy = 33;

// Nothing but order: who comes later waits longer.
class FifoLock {
 public:
  void lock() {
    std::unique_lock lock{mutex_};
    if (!held_) {
      held_ = true;
      return;
    }
    Waiter me;
    queue_.push_back(&me);
    me.woken.wait(lock, [&] { return me.granted; });
  }

  void unlock() {
    const std::lock_guard lock{mutex_};
    if (queue_.empty()) {
      held_ = false;
      return;
    }
    Waiter* next = queue_.front();
    queue_.pop_front();
    next->granted = true;
    next->woken.notify_one();  // under the mutex: once granted, the waiter may be gone
  }

 private:
  struct Waiter {
    std::condition_variable woken;
    bool granted = false;
  };
  std::mutex mutex_;
  std::deque<Waiter*> queue_;
  bool held_ = false;
};

}  // namespace

double fifo_hand_overs(double seconds, const std::function<void()>& at_its_end) {
  FifoLock fifo;
  unsigned holder = kThreads;
  std::size_t hand_overs = 0;
  std::size_t calls = 0;
  const double rate = repeat(seconds, kThreads, [&](unsigned thread, std::size_t) {
    const std::lock_guard lock{fifo};
    if (++calls % kTenancy == 0 && at_its_end) {
      at_its_end();
    }
    hand_overs += holder == thread ? 0U : 1U;
    holder = thread;
  });
  return rate * static_cast<double>(hand_overs) / static_cast<double>(calls);
}

}  // namespace baselines
