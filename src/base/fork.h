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

// While one of these lives, a fork() on another thread waits, for a second at most. For calls
// into libraries whose locks a child would inherit locked for ever: the C library's own
// getaddrinfo() has one, GSSAPI another.
class ForksWait {
 public:
  ForksWait();
  ~ForksWait();
  ForksWait(const ForksWait&) = delete;
  ForksWait& operator=(const ForksWait&) = delete;
};

}  // namespace holdfast::base
