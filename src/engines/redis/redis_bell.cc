#include "engines/redis/redis_bell.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <utility>

#include "engines/redis/redis_wire.h"

namespace holdfast::engines {
namespace {

using namespace std::chrono_literals;

constexpr base::Duration kFirstPause = 20ms;
constexpr base::Duration kLongestPause = 1s;
// A connection that says nothing for that long may be gone.
constexpr base::Duration kSilence = 500ms;

std::string subscription(const std::string& channel) {
  std::string words;
  append_resp_command(words, "SUBSCRIBE", channel);
  return words;
}

short ready_now(const engine::Conversation::Wait& wait) {
  pollfd wanted{wait.fd, wait.events, 0};
  return poll(&wanted, 1, 0) > 0 ? wanted.revents : short{0};
}

void set_timer(int fd, base::Duration after) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(after);
  const itimerspec alarm{.it_interval = {},
                         .it_value = {.tv_sec = seconds.count(),
                                      .tv_nsec = std::max<long>((after - seconds).count(), 1)}};
  timerfd_settime(fd, 0, &alarm, nullptr);
}

}  // namespace

RedisBell::RedisBell(const RedisOptions& options, std::shared_ptr<RedisTls> tls,
                     std::string channel)
    : connector_{options, std::move(tls), subscription(channel), 1},
      patience_{options.access.timeout},
      events_{epoll_create1(EPOLL_CLOEXEC)},
      timer_{timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)},
      inbox_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)},
      channel_{std::move(channel)},
      pause_{kFirstPause} {
  for (const int fd : {timer_.get(), inbox_.get()}) {
    epoll_event event{.events = EPOLLIN, .data = {}};
    epoll_ctl(events_.get(), EPOLL_CTL_ADD, fd, &event);
  }
}

void RedisBell::start(base::Time deadline) {
  const std::lock_guard lock{mutex_};
  if (connector_.connect_until(deadline)) {
    gap_ = false;
    server_ = connector_.link().address();
    watch();
  } else {
    come_back_later();
  }
}

void RedisBell::come_back_later() {
  gap_ = true;
  asked_ = false;
  watched_ = -1;  // closed, and epoll forgot it
  set_timer(timer_.get(), pause_);
  pause_ = std::min(2 * pause_, kLongestPause);
}

// Connected again, perhaps to another server.
Result<void> RedisBell::welcome() {
  pause_ = kFirstPause;
  if (holders_ && server_ != connector_.link().address()) {
    const auto rings = holders_();
    rings_.insert(rings_.end(), rings.begin(), rings.end());
  }
  server_ = connector_.link().address();
  for (const std::string& channel : further_) {
    append_resp_command(connector_.link().out(), "SUBSCRIBE", channel);
  }
  return connector_.advance(0);
}

// The connection's socket comes and goes; what epoll watches must follow.
void RedisBell::watch() {
  const auto wait = connector_.wait();
  if (wait.fd < 0) {
    set_timer(timer_.get(), std::max(wait.until - base::BootClock::now(), base::Duration{1ms}));
    watched_ = -1;
    return;
  }
  epoll_event event{.events = static_cast<std::uint32_t>(wait.events), .data = {}};
  if (wait.fd != watched_ || epoll_ctl(events_.get(), EPOLL_CTL_MOD, wait.fd, &event) != 0) {
    epoll_ctl(events_.get(), EPOLL_CTL_ADD, wait.fd, &event);
    watched_ = wait.fd;
  }
  if (!connector_.is_ready()) {
    set_timer(timer_.get(), patience_);
  }
}

void RedisBell::advance() {
  eventfd_t count = 0;
  const bool alarm = read(timer_.get(), &count, sizeof count) > 0;
  const bool was_ready = connector_.is_ready();
  if (alarm && !was_ready && watched_ >= 0) {
    connector_.close();  // it took too long
    watched_ = -1;
  }
  if (!connector_.advance(watched_ >= 0 ? ready_now(connector_.wait()) : short{0})) {
    come_back_later();
    return;
  }
  if (!was_ready && connector_.is_ready() && !welcome()) {
    come_back_later();
    return;
  }
  while (connector_.is_ready()) {
    const auto message = connector_.link().take_reply();
    if (!message) {
      break;
    }
    hear(*message);
  }
  watch();
}

void RedisBell::hear(const RespValue& message) {
  const auto& items = message.items;
  if (items.size() < 2) {
    return;
  }
  if (items[0].text == "pong") {
    asked_ = false;
  } else if (items[0].text == "message" && items.size() == 3 && items[1].text == channel_) {
    if (const auto ring = unpack_ring(items[2].text)) {
      rings_.push_back(*ring);
    }
  } else if ((items[0].text == "message" || items[0].text == "subscribe") && others_) {
    const auto rings = others_(items[1].text);
    rings_.insert(rings_.end(), rings.begin(), rings.end());
  }
}

void RedisBell::say(std::string_view word, const std::string& channel) {
  if (connector_.is_ready()) {
    append_resp_command(connector_.link().out(), word, channel);
    if (!connector_.advance(0)) {
      come_back_later();
    } else {
      watch();
    }
  }
}

void RedisBell::listen(const std::string& channel) {
  const std::lock_guard lock{mutex_};
  if (further_.insert(channel).second) {
    say("SUBSCRIBE", channel);
  }
}

void RedisBell::stop_listening(const std::string& channel) {
  const std::lock_guard lock{mutex_};
  if (further_.erase(channel) > 0) {
    say("UNSUBSCRIBE", channel);
  }
}

std::vector<engine::Ring> RedisBell::answer() {
  const std::lock_guard lock{mutex_};
  advance();
  eventfd_t count = 0;
  eventfd_read(inbox_.get(), &count);
  return std::exchange(rings_, {});
}

bool RedisBell::may_have_missed() {
  const std::lock_guard lock{mutex_};
  advance();
  if (!connector_.is_ready()) {
    return true;
  }
  const base::Time now = base::BootClock::now();
  bool missed = std::exchange(gap_, false);
  if (!rings_.empty()) {
    eventfd_write(inbox_.get(), 1);
    missed = true;
  }
  if (asked_ && now - asked_at_ > patience_) {
    connector_.close();
    come_back_later();
    return true;
  }
  if (!asked_) {
    append_resp_command(connector_.link().out(), "PING");
    asked_ = true;
    asked_at_ = now;
    if (!connector_.advance(0)) {
      come_back_later();
      return true;
    }
    watch();
  }
  return missed || (asked_ && now - asked_at_ > kSilence);
}

bool RedisBell::is_listening() {
  const std::lock_guard lock{mutex_};
  return connector_.is_ready();
}

}  // namespace holdfast::engines
