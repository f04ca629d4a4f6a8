#pragma once

#include <cstdint>

namespace holdfast::base {

// Counts the forks between the program's start and this process. What was made
// under another number belongs to an ancestor and must not be touched.
std::uint64_t fork_generation() noexcept;

// Called around every fork() of this process, newest first before it. Must be
// quick and must not call back into the library. Registration lasts for ever;
// it is thread-safe.
struct ForkHooks {
  void (*before)() = nullptr;
  void (*in_parent)() = nullptr;
  void (*in_child)() = nullptr;
};
void on_fork(const ForkHooks& hooks);

}  // namespace holdfast::base
