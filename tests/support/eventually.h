#pragma once

#include <chrono>
#include <thread>

namespace holdfast::test {

// Long enough that only a broken promise reaches it, even on a busy machine.
inline constexpr std::chrono::seconds kPatience{30};

// Looks until the condition holds; false if it still does not at the deadline.
template <typename Condition>
bool eventually(Condition&& condition, std::chrono::nanoseconds at_most = kPatience) {
  const auto deadline = std::chrono::steady_clock::now() + at_most;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
  }
  return true;
}

// False as soon as the condition fails within the given time.
template <typename Condition>
bool throughout(std::chrono::nanoseconds time, Condition&& condition) {
  return !eventually([&] { return !condition(); }, time);
}

}  // namespace holdfast::test
