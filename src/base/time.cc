#include "base/time.h"

#include <algorithm>
#include <atomic>
#include <ctime>
#include <thread>

namespace holdfast::base {

namespace {

// 0: the clock is real.
std::atomic<Duration::rep> fake_now{0};

}  // namespace

void use_fake_clock(bool fake) noexcept {
  fake_now = 0;
  if (fake) {
    fake_now = BootClock::now().time_since_epoch().count();
  }
}

bool is_clock_fake() noexcept {
  return fake_now.load(std::memory_order_relaxed) != 0;
}

void move_fake_clock(Duration forward) noexcept {
  fake_now += forward.count();
}

Duration nap(Duration left) noexcept {
  return is_clock_fake() ? std::min<Duration>(left, std::chrono::milliseconds{1}) : left;
}

BootClock::time_point BootClock::now() noexcept {
  if (const auto fake = fake_now.load(std::memory_order_relaxed); fake != 0) {
    return time_point{Duration{fake}};
  }
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return time_point{std::chrono::seconds{now.tv_sec} + std::chrono::nanoseconds{now.tv_nsec}};
}

std::uint64_t wall_microseconds() noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec) / 1'000;
}

void sleep_for(Duration time) {
  std::this_thread::sleep_for(time);
}

}  // namespace holdfast::base
