#pragma once

#include <chrono>
#include <cstdint>

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

// A clock that stands still unless it is moved, in place of the real one, for
// the whole process. For users' tests alone: see <holdfast/testing.h>.
void use_fake_clock(bool fake) noexcept;
bool is_clock_fake() noexcept;
void move_fake_clock(Duration forward) noexcept;

// How long to sleep for what is due in `left`: no longer than a moment while
// the clock is fake, because nobody tells when it moves.
Duration nap(Duration left) noexcept;

// The calendar's time since 1970 in microseconds. May jump: where tokens of
// new names start, never a deadline.
std::uint64_t wall_microseconds() noexcept;

// At least this long; signals do not cut it short.
void sleep_for(Duration time);

}  // namespace holdfast::base
