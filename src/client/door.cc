#include "client/door.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>

namespace holdfast::client {
namespace {

// Longer waits come back for another look at the clock.
constexpr base::Duration kLongestSleep = std::chrono::hours{1};

}  // namespace

Door::Door(int doorbell) noexcept : doorbell_{doorbell} {
  if (doorbell_ < 0) {
    return;
  }
  keepers_ = base::FileDescriptor{epoll_create1(EPOLL_CLOEXEC)};
  wake_ = base::FileDescriptor{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  epoll_event event{.events = EPOLLIN, .data = {}};
  if (!keepers_ || epoll_ctl(keepers_.get(), EPOLL_CTL_ADD, doorbell_, &event) != 0) {
    keepers_ = {};
  }
}

bool Door::take() noexcept {
  if (!keepers_ || !wake_ || taken_.exchange(true)) {
    return false;
  }
  if (!set_keepers(0)) {
    taken_ = false;
    return false;
  }
  return true;
}

void Door::leave() noexcept {
  set_keepers(EPOLLIN);  // wakes the keeper if the bell rang meanwhile
  taken_ = false;
}

bool Door::set_keepers(unsigned events) noexcept {
  epoll_event event{.events = events, .data = {}};
  return epoll_ctl(keepers_.get(), EPOLL_CTL_MOD, doorbell_, &event) == 0;
}

bool Door::wait(base::Time until) noexcept {
  const base::Duration left = base::nap(std::clamp<base::Duration>(
      until - base::BootClock::now(), base::Duration::zero(), kLongestSleep));
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
  const timespec timeout{.tv_sec = seconds.count(), .tv_nsec = (left - seconds).count()};
  std::array<pollfd, 2> wanted{{{doorbell_, POLLIN, 0}, {wake_.get(), POLLIN, 0}}};
  if (ppoll(wanted.data(), wanted.size(), &timeout, nullptr) <= 0) {
    return false;
  }
  std::uint64_t count = 0;
  if (wanted[1].revents != 0) {
    eventfd_read(wake_.get(), &count);
  }
  return wanted[0].revents != 0;
}

void Door::wake() noexcept {
  eventfd_write(wake_.get(), 1);
}

}  // namespace holdfast::client
