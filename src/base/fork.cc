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
  std::atomic<std::uint64_t> generation{0};
  std::array<ForkHooks, 8> hooks{};
  std::atomic<std::size_t> count{0};
};

Registry& registry() {
  static Registry instance;
  return instance;
}

void before_fork() {
  const auto& all = registry();
  for (std::size_t i = all.count.load(); i > 0; --i) {
    if (all.hooks.at(i - 1).before != nullptr) {
      all.hooks.at(i - 1).before();
    }
  }
}

void after_fork_in_parent() {
  const auto& all = registry();
  for (std::size_t i = 0; i < all.count.load(); ++i) {
    if (all.hooks.at(i).in_parent != nullptr) {
      all.hooks.at(i).in_parent();
    }
  }
}

void after_fork_in_child() {
  auto& all = registry();
  all.generation.fetch_add(1);
  for (std::size_t i = 0; i < all.count.load(); ++i) {
    if (all.hooks.at(i).in_child != nullptr) {
      all.hooks.at(i).in_child();
    }
  }
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
  const std::size_t index = all.count.load();
  if (!kInstalled || index >= all.hooks.size()) {
    std::abort();  // a programming error: raise the room above
  }
  all.hooks.at(index) = hooks;
  all.count.store(index + 1);
}

}  // namespace holdfast::base
