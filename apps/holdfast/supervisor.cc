#include "supervisor.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <csignal>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <stop_token>
#include <system_error>

#include "exit_status.h"

namespace holdfast::command {
namespace {

using namespace std::chrono_literals;

// How often to look whether the last process of the group is gone: nothing
// tells us of other people's children.
constexpr Duration kLookEvery = 5ms;
constexpr Duration kPatienceAfterKill = 2s;

bool is_terminal_stop(int number) {
  return number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;
}

bool is_request_to_end(int number) {
  return number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGQUIT;
}

void ring(int fd) noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(fd, &one, sizeof one);
}

}  // namespace

Supervisor::Supervisor(Parts parts)
    : parts_{std::move(parts)},
      margin_{std::min(std::clamp<Duration>(parts_.ttl / 50, 5ms, 200ms), parts_.grace / 2)},
      lost_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)} {
  if (!lost_) {
    throw std::system_error{errno, std::generic_category(), "eventfd"};
  }
}

int Supervisor::run() {
  const std::stop_callback on_loss{parts_.lease.lost(), [fd = lost_.get()] { ring(fd); }};
  while (!is_over()) {
    tell_guard();
    std::array<pollfd, 2> entries{
        {{parts_.signals.fd(), POLLIN, 0}, {ending_ ? -1 : lost_.get(), POLLIN, 0}}};
    const auto time = std::chrono::ceil<std::chrono::milliseconds>(next_look()).count();
    poll(entries.data(), entries.size(), static_cast<int>(time));
    while (const auto number = parts_.signals.take()) {
      handle_signal(*number);
    }
    if ((entries[1].revents & POLLIN) != 0) {
      handle_loss();
    }
    if (ending_) {
      parts_.child.reap_orphans();
      end_group_in_time();
    }
  }
  parts_.guard.dismiss();
  parts_.terminal.take_back();
  return *status_;
}

bool Supervisor::is_over() const {
  // A dead process that nobody reaps stays in its group for ever.
  const bool waited_enough =
      killed_at_ && std::chrono::steady_clock::now() - *killed_at_ > kPatienceAfterKill;
  return status_ && (!ending_ || waited_enough || !parts_.child.group_exists());
}

Duration Supervisor::next_look() const {
  if (ending_) {
    return kLookEvery;
  }
  // Often enough that the guard never acts on an old deadline after a renewal
  // that came at the last moment.
  return parts_.on_lost == OnLost::term ? std::clamp<Duration>(parts_.grace / 4, 2ms, 1s) : 1h;
}

void Supervisor::tell_guard() {
  if (!ending_ && parts_.on_lost == OnLost::term) {
    // Later than we act ourselves.
    const Duration left = parts_.lease.remaining();
    parts_.guard.allow(parts_.child.group(), left - parts_.grace / 2, left - margin_ / 2);
  }
}

void Supervisor::handle_signal(int number) {
  if (number == SIGCHLD) {
    while (const auto event = parts_.child.look()) {
      if (!event->stopped) {
        status_ = event->status;
        break;
      }
      handle_stop(event->number);
    }
  } else if (number == SIGCONT) {
    resume();
  } else if (!status_) {
    interrupted_ = interrupted_ || is_request_to_end(number);
    parts_.child.signal(number);
  }
}

bool Supervisor::was_interrupted() const noexcept {
  return interrupted_ || status_ == kSignalBase + SIGINT || status_ == kSignalBase + SIGQUIT;
}

void Supervisor::handle_stop(int number) {
  if (!is_terminal_stop(number) || !parts_.terminal || ending_) {
    return;  // somebody stopped the command, not the job: the lock stays ours
  }
  if (number != SIGTSTP && parts_.terminal.is_ours()) {
    parts_.terminal.give_to(parts_.child.group());  // it wanted the terminal, and may have it
    parts_.child.signal(SIGCONT);
    return;
  }
  // A job stops as a whole, or its shell would wait for us in vain. While we
  // stand still nobody renews the lease: the guard sees to the rest.
  parts_.terminal.take_back();
  kill(0, SIGTSTP);
  raise(SIGSTOP);
  resume();
}

void Supervisor::resume() {
  if (status_ || ending_) {
    return;
  }
  if (!parts_.lease.is_alive() && parts_.on_lost == OnLost::term) {
    handle_loss();  // before the command runs another instruction
    return;
  }
  if (parts_.terminal.is_for_the_command()) {
    parts_.terminal.give_to(parts_.child.group());
  }
  parts_.child.signal(SIGCONT);
}

void Supervisor::handle_loss() {
  if (ending_ || status_) {
    return;
  }
  if (parts_.when_lost) {
    std::exchange(parts_.when_lost, nullptr)();
  }
  if (parts_.on_lost == OnLost::ignore) {
    std::uint64_t drained = 0;
    [[maybe_unused]] const auto got = read(lost_.get(), &drained, sizeof drained);
    return;
  }
  ending_ = true;
  Child::adopt_orphans();
  if (parts_.lease.remaining() > margin_) {
    parts_.child.signal(SIGTERM);
    parts_.child.signal(SIGCONT);  // a stopped process does not hear
  }
  end_group_in_time();
}

void Supervisor::end_group_in_time() {
  if (!killed_at_ && parts_.lease.remaining() <= margin_) {
    parts_.child.signal(SIGKILL);
    killed_at_ = std::chrono::steady_clock::now();
  }
}

}  // namespace holdfast::command
