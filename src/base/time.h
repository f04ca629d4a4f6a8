#pragma once

#include <chrono>

namespace holdfast::base {

using Duration = std::chrono::nanoseconds;

// A point on CLOCK_BOOTTIME (or, in tests, on a clock of the test's making):
// monotonic, and running on while the machine sleeps, unlike steady_clock.
struct BootClock {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootClock>;
  static constexpr bool is_steady = true;
  static time_point now() noexcept;
};
using Time = BootClock::time_point;

inline constexpr Time kNever = Time::max();

}  // namespace holdfast::base
