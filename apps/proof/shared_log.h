#pragma once

#include <array>
#include <atomic>
#include <cstddef>

#include "proof/history.h"

namespace holdfast::proof {

// The memory in which processes write one history together. An event's place
// is its sequence number; a process that dies while it writes leaves a hole.
class SharedLog {
 public:
  static constexpr std::size_t kCapacity = std::size_t{1} << 19U;

  // The next number. Whatever the caller does afterwards happened after
  // everything that was numbered before.
  Sequence take() noexcept { return next_.fetch_add(1); }
  // The number that will be given out next.
  Sequence next() const noexcept { return next_.load(); }
  // Events beyond the capacity are dropped; end the run before.
  void put(Sequence sequence, Event event) noexcept;
  bool is_nearly_full() const noexcept { return next() > kCapacity / 10 * 9; }

  // Once nobody writes any more. Times count from `start`.
  History history(Moment start) const;

 private:
  std::atomic<Sequence> next_ = 0;
  std::array<Event, kCapacity> events_;
};

// CLOCK_BOOTTIME.
Moment boot_time() noexcept;

}  // namespace holdfast::proof
