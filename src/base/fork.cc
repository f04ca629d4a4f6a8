#include "base/fork.h"

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdlib>

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

Registry& registry() {
  static Registry instance;
  return instance;
}

// What ran before a fork is exactly what runs after it, even if another thread
// registers in between. The child continues the thread that forked.
thread_local std::array<bool, 8> entered{};

void before_fork() {
  auto& slots = registry().slots;
  for (std::size_t i = slots.size(); i > 0; --i) {
    const auto& slot = slots.at(i - 1);
    entered.at(i - 1) = slot.ready.load();
    if (entered.at(i - 1) && slot.hooks.before != nullptr) {
      slot.hooks.before();
    }
  }
}

void after_fork(void (*ForkHooks::*hook)()) {
  auto& slots = registry().slots;
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
  registry().generation.fetch_add(1);
  after_fork(&ForkHooks::in_child);
}

const bool kInstalled = [] {
  return pthread_atfork(&before_fork, &after_fork_in_parent, &after_fork_in_child) == 0;
}();

}  // namespace

std::uint64_t fork_generation() noexcept {
  return registry().generation.load(std::memory_order_relaxed);
}

void on_fork(const ForkHooks& hooks) {
  auto& all = registry();
  const std::size_t index = all.taken.fetch_add(1);
  if (!kInstalled || index >= all.slots.size()) {
    std::abort();  // a programming error: raise the room above
  }
  all.slots.at(index).hooks = hooks;
  all.slots.at(index).ready.store(true);
}

}  // namespace holdfast::base
