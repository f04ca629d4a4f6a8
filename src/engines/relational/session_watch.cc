#include "engines/relational/session_watch.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <utility>

namespace holdfast::engines::relational {
namespace {

void add(int epoll, int fd) {
  epoll_event event{.events = EPOLLIN | EPOLLRDHUP, .data = {}};
  epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

}  // namespace

SessionWatch::SessionWatch()
    : epoll_{epoll_create1(EPOLL_CLOEXEC)},
      timer_{timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)} {
  add(epoll_.get(), timer_.get());
  add(epoll_.get(), bell_.fd());
}

void SessionWatch::ring_at(base::Time time) {
  if (time >= next_) {
    return;
  }
  next_ = time;
  // Zero would switch it off.
  const auto since_boot = std::max<base::Duration>(time.time_since_epoch(), base::Duration{1});
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since_boot);
  const itimerspec at{
      .it_interval = {},
      .it_value = {.tv_sec = seconds.count(), .tv_nsec = (since_boot - seconds).count()}};
  timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &at, nullptr);
}

void SessionWatch::silence() {
  const itimerspec never{};
  timerfd_settime(timer_.get(), 0, &never, nullptr);
  next_ = base::kNever;
}

SessionWatch::Post::Post(const SessionWatch& watch, int socket)
    : epoll_{watch.fd()}, socket_{fcntl(socket, F_DUPFD_CLOEXEC, 0)} {
  add(epoll_, socket_.get());
}

SessionWatch::Post::~Post() {
  if (socket_) {
    epoll_ctl(epoll_, EPOLL_CTL_DEL, socket_.get(), nullptr);
  }
}

SessionWatch::Post::Post(Post&& other) noexcept
    : epoll_{other.epoll_}, socket_{std::move(other.socket_)} {}

SessionWatch::Post& SessionWatch::Post::operator=(Post&& other) noexcept {
  std::swap(epoll_, other.epoll_);
  std::swap(socket_, other.socket_);
  return *this;
}

}  // namespace holdfast::engines::relational
