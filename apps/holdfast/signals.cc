#include "signals.h"

#include <poll.h>
#include <sys/signalfd.h>

#include <cerrno>
#include <chrono>
#include <system_error>

namespace holdfast::command {
namespace {

bool is_ignored(int signal) {
  struct sigaction action {};
  sigaction(signal, nullptr, &action);
  return (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

SignalInbox::SignalInbox(std::initializer_list<int> signals) {
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int signal : signals) {
    if (signal == SIGCHLD && is_ignored(signal)) {
      change(signal, SIG_DFL);  // or there would be no status to wait for
    }
    if (!is_ignored(signal)) {
      sigaddset(&wanted, signal);
    }
  }
  pthread_sigmask(SIG_BLOCK, &wanted, &old_mask_);
  fd_ = Descriptor{signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK)};
  if (!fd_) {
    throw std::system_error{errno, std::generic_category(), "signalfd"};
  }
}

SignalInbox::~SignalInbox() {
  restore();
}

void SignalInbox::ignore(int signal) {
  if (!is_ignored(signal)) {
    change(signal, SIG_IGN);
  }
}

void SignalInbox::change(int signal, void (*handler)(int)) {
  Saved& saved = saved_.at(saved_count_++);
  saved.signal = signal;
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, &saved.action);
}

std::optional<int> SignalInbox::take() {
  signalfd_siginfo info{};
  if (read(fd_.get(), &info, sizeof info) != sizeof info) {
    return std::nullopt;
  }
  return static_cast<int>(info.ssi_signo);
}

std::optional<int> SignalInbox::wait_for(Duration at_most) {
  pollfd entry{fd_.get(), POLLIN, 0};
  const auto time = std::chrono::ceil<std::chrono::milliseconds>(at_most).count();
  poll(&entry, 1, static_cast<int>(time));
  return take();
}

void SignalInbox::restore() const noexcept {
  for (std::size_t i = 0; i < saved_count_; ++i) {
    sigaction(saved_[i].signal, &saved_[i].action, nullptr);
  }
  pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr);
}

}  // namespace holdfast::command
