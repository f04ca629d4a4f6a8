#include "guard.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <limits>

namespace holdfast::command {
namespace {

// How often an orphaned guard looks whether the group is gone.
constexpr std::int64_t kLookEvery = 10'000'000;  // ns

// On CLOCK_BOOTTIME, in ns; short enough to pass through the pipe in one piece.
struct Orders {
  std::int64_t term_at = std::numeric_limits<std::int64_t>::max();
  std::int64_t kill_at = std::numeric_limits<std::int64_t>::max();
  pid_t group = 0;
};

std::int64_t boot_time() noexcept {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

// The rest runs in a fork of a program with threads: system calls only.
class Watch {
 public:
  explicit Watch(int fd) noexcept : fd_{fd} {}

  [[noreturn]] void run() noexcept {
    while (true) {
      act(boot_time());
      wait(boot_time());
    }
  }

 private:
  void act(std::int64_t now) noexcept {
    if (orphaned_ && (orders_.group == 0 || (kill(-orders_.group, 0) != 0 && errno == ESRCH))) {
      _exit(0);
    }
    if (orders_.group == 0) {
      return;
    }
    if (!termed_ && (orphaned_ || now >= orders_.term_at)) {
      kill(-orders_.group, SIGTERM);
      kill(-orders_.group, SIGCONT);
      termed_ = true;
    }
    if (!killed_ && now >= orders_.kill_at) {
      kill(-orders_.group, SIGKILL);
      killed_ = true;
    }
    if (orphaned_ && killed_) {
      _exit(0);
    }
  }

  void wait(std::int64_t now) noexcept {
    std::int64_t until = !termed_ ? orders_.term_at : orders_.kill_at;
    if (orphaned_) {
      until = std::min(until, now + kLookEvery);
    } else if (killed_) {
      until = std::numeric_limits<std::int64_t>::max();
    }
    // poll() counts on a clock that stands still while the machine sleeps:
    // look at the true one at least every minute.
    const std::int64_t time = std::clamp<std::int64_t>((until - now) / 1'000'000 + 1, 0, 60'000);
    pollfd entry{orphaned_ ? -1 : fd_, POLLIN, 0};
    if (poll(&entry, 1, static_cast<int>(time)) > 0) {
      hear();
    }
  }

  void hear() noexcept {
    Orders orders;
    const ssize_t got = read(fd_, &orders, sizeof orders);
    if (got == 0) {
      orphaned_ = true;
    } else if (got == sizeof orders) {
      orders_ = orders;
    }
  }

  int fd_;
  Orders orders_;
  bool orphaned_ = false;
  bool termed_ = false;
  bool killed_ = false;
};

[[noreturn]] void be_guard(int pipe) noexcept {
  // A session of its own: what is sent to our group or terminal must not end
  // the guard along with us.
  setsid();
  prctl(PR_SET_NAME, "holdfast-guard");
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, nullptr);
  // Whoever waits for the end of our output, or for our sockets to go, must
  // not wait for the guard.
  constexpr int kPipe = 3;
  dup3(pipe, kPipe, O_CLOEXEC);
  close_range(0, kPipe - 1, 0);
  close_range(kPipe + 1, std::numeric_limits<unsigned>::max(), 0);
  Watch{kPipe}.run();
}

}  // namespace

Guard Guard::start() {
  Guard guard;
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    return guard;
  }
  const Descriptor read_end{ends[0]};
  Descriptor write_end{ends[1]};
  const pid_t pid = fork();
  if (pid == 0) {
    be_guard(read_end.get());
  }
  if (pid > 0) {
    guard.pid_ = pid;
    guard.pipe_ = std::move(write_end);
  }
  return guard;
}

Guard::~Guard() {
  dismiss();
}

void Guard::allow(pid_t group, Duration until_term, Duration until_kill) noexcept {
  if (pipe_) {
    const std::int64_t now = boot_time();
    const Orders orders{now + until_term.count(), now + until_kill.count(), group};
    // A full pipe is a guard that does not read; it then acts too early
    // rather than too late.
    [[maybe_unused]] const auto written = write(pipe_.get(), &orders, sizeof orders);
  }
}

void Guard::dismiss() noexcept {
  if (pipe_) {
    // Before the pipe is closed, or it would take us for dead.
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pipe_.close();
  }
}

}  // namespace holdfast::command
