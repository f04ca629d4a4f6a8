#include "base/fork.h"

#include <pthread.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace holdfast::base {
namespace {

// Fixed room and atomics only: the hooks run in the middle of fork().
struct Registry {
  struct Slot {
    ForkHooks hooks;
    std::atomic<bool> ready{false};
  };
  std::atomic<std::uint64_t> generation{0};
  std::array<Slot, 8> slots{};
  std::atomic<std::size_t> taken{0};
};

constinit Registry registry;

// What ran before a fork is exactly what runs after it, even if another thread
// registers in between. The child continues the thread that forked.
thread_local std::array<bool, 8> entered{};

void before_fork() {
  auto& slots = registry.slots;
  for (std::size_t i = slots.size(); i > 0; --i) {
    const auto& slot = slots.at(i - 1);
    entered.at(i - 1) = slot.ready.load();
    if (entered.at(i - 1) && slot.hooks.before != nullptr) {
      slot.hooks.before();
    }
  }
}

void after_fork(void (*ForkHooks::*hook)()) {
  auto& slots = registry.slots;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (entered.at(i) && slots.at(i).hooks.*hook != nullptr) {
      (slots.at(i).hooks.*hook)();
    }
  }
}

void after_fork_in_parent() {
  after_fork(&ForkHooks::in_parent);
}

void after_fork_in_child() {
  registry.generation.fetch_add(1);
  after_fork(&ForkHooks::in_child);
}

const bool kInstalled = [] {
  return pthread_atfork(&before_fork, &after_fork_in_parent, &after_fork_in_child) == 0;
}();

// No condition variable: a child would inherit it with waiters that are not there.
struct Delay {
  std::mutex mutex;  // held across the fork, so that nothing begins meanwhile
  int reasons = 0;
  int forks = 0;  // that wait; what begins later waits for them in turn

  static void before();
  static void in_parent();
  static void in_child();
  void pause() {
    mutex.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds{200});
    mutex.lock();
  }
};

// Made and registered before main(): a child would inherit for ever a function's static
// that another thread was about to make.
constinit Delay delay;
[[maybe_unused]] const bool kDelayRegistered = [] {
  on_fork({.before = &Delay::before, .in_parent = &Delay::in_parent, .in_child = &Delay::in_child});
  return true;
}();

void Delay::before() {
  using std::chrono::steady_clock;
  const auto until = steady_clock::now() + std::chrono::seconds{1};
  delay.mutex.lock();
  ++delay.forks;
  while (delay.reasons > 0 && steady_clock::now() < until) {
    delay.pause();
  }
  --delay.forks;
}

void Delay::in_parent() {
  delay.mutex.unlock();
}

void Delay::in_child() {
  delay.reasons = 0;  // their threads stayed behind
  delay.forks = 0;
  delay.mutex.unlock();
}

}  // namespace

ForksWait::ForksWait() {
  const std::lock_guard lock{delay.mutex};
  while (delay.forks > 0) {
    delay.pause();
  }
  ++delay.reasons;
}

ForksWait::~ForksWait() {
  const std::lock_guard lock{delay.mutex};
  --delay.reasons;
}

std::uint64_t fork_generation() noexcept {
  return registry.generation.load(std::memory_order_relaxed);
}

void on_fork(const ForkHooks& hooks) {
  auto& all = registry;
  const std::size_t index = all.taken.fetch_add(1);
  if (!kInstalled || index >= all.slots.size()) {
    std::abort();  // a programming error: raise the room above
  }
  all.slots.at(index).hooks = hooks;
  all.slots.at(index).ready.store(true);
}

}  // namespace holdfast::base
