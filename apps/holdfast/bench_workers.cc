#include "bench_workers.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "start_self.h"

namespace holdfast::command::bench {
namespace {

using namespace std::chrono_literals;

constexpr Duration kGlance = 5ms;

tl::unexpected<Error> system_failure(const std::string& what, int number) {
  return fail(ErrorCode::unavailable, what + ": " + std::generic_category().message(number),
              number);
}

Board* map_board(int fd) {
  void* memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<Board*>(memory);
}

void note(Slot& slot, const Error& error) {
  slot.code = error.code;
  const std::size_t length = std::min(error.text.size(), slot.error.size() - 1);
  std::memcpy(slot.error.data(), error.text.data(), length);
}

}  // namespace

// --- the bench's side

Result<Workers> Workers::start(const Plan& plan, Job job, std::uint32_t count,
                               const std::function<void(Board&)>& prepare) {
  Descriptor memory{memfd_create("holdfast-bench", MFD_CLOEXEC)};
  if (!memory || ftruncate(memory.get(), sizeof(Board)) != 0) {
    return system_failure("cannot make shared memory", errno);
  }
  Board* board = map_board(memory.get());
  if (board == nullptr) {
    return system_failure("cannot map shared memory", errno);
  }
  new (board) Board{};
  board->job = job;
  board->workers = count;
  board->duration = plan.duration.count();
  std::memcpy(board->prefix.data(), plan.prefix.data(),
              std::min(plan.prefix.size(), board->prefix.size() - 1));
  prepare(*board);
  Workers workers{board, std::move(memory)};
  for (std::uint32_t i = 0; i < count; ++i) {
    if (auto started = workers.spawn(plan.url); !started) {
      return tl::unexpected{std::move(started.error())};
    }
  }
  return workers;
}

Workers::Workers(Workers&& other) noexcept
    : board_{std::exchange(other.board_, nullptr)},
      memory_{std::move(other.memory_)},
      running_{std::exchange(other.running_, {})} {}

Workers::~Workers() {
  if (board_ == nullptr) {
    return;
  }
  for (const pid_t pid : running_) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  munmap(board_, sizeof(Board));
}

// The board is the worker's standard input: no argument or variable tells more
// than that it is one. The URL goes by the environment, where a password in it
// is not on show.
Result<void> Workers::spawn(const std::string& url) {
  const auto pid =
      start_self({"holdfast", "bench", "--worker"}, memory_.get(), {{"HOLDFAST_URL", url}});
  if (!pid) {
    return tl::unexpected{pid.error()};
  }
  running_.push_back(*pid);
  return {};
}

// The first failure among those who ended.
std::optional<Error> Workers::reap(bool at_the_end) {
  bool failed = false;
  std::erase_if(running_, [&](pid_t pid) {
    int status = 0;
    if (waitpid(pid, &status, WNOHANG) != pid) {
      return false;
    }
    failed = failed || !at_the_end || status != 0;
    return true;
  });
  if (!failed) {
    return std::nullopt;
  }
  for (const Slot& slot : board_->slots) {
    if (slot.error[0] != '\0') {
      return Error{slot.code, slot.error.data(), std::nullopt};
    }
  }
  return Error{ErrorCode::unavailable, "a process of the benchmark ended early", std::nullopt};
}

Result<void> Workers::await_ready(std::uint32_t count) {
  std::optional<Error> trouble;
  sleep_until([&] {
    trouble = reap(false);
    return trouble || board_->ready.load() >= count;
  });
  if (trouble) {
    return tl::unexpected{std::move(*trouble)};
  }
  return {};
}

void Workers::next_step() noexcept {
  board_->ready = 0;
  board_->step.fetch_add(1);
}

Result<void> Workers::finish() {
  std::optional<Error> trouble;
  sleep_until([&] {
    trouble = reap(true);
    return trouble || running_.empty();
  });
  if (trouble) {
    return tl::unexpected{std::move(*trouble)};
  }
  return {};
}

// --- the worker's side

void sleep_until(const std::function<bool()>& condition) {
  while (!condition()) {
    std::this_thread::sleep_for(kGlance);
  }
}

std::int64_t now_ns() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
      .count();
}

Result<bool> work() {
  const pid_t parent = getppid();
  struct stat info {};
  if (fstat(STDIN_FILENO, &info) != 0 || info.st_size != sizeof(Board)) {
    return fail(ErrorCode::invalid_argument,
                "--worker is for 'holdfast bench' itself; leave it out");
  }
  Board* board = map_board(STDIN_FILENO);
  if (board == nullptr || board->magic != Board::kMagic) {
    return fail(ErrorCode::invalid_argument,
                "--worker is for 'holdfast bench' itself; leave it out");
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) {
    return fail(ErrorCode::cancelled, "the benchmark ended");
  }
  const std::uint32_t worker = board->arrived.fetch_add(1);
  const auto done = [&]() -> Result<void> {
    const char* url = getenv("HOLDFAST_URL");
    auto client = Client::open(url == nullptr ? "" : url);
    if (!client) {
      return tl::unexpected{std::move(client.error())};
    }
    switch (board->job) {
      case Job::rotate:
        return rotate(*board, *client);
      case Job::wake_up:
        return hand_over(*board, *client, worker);
      case Job::wait:
        return wait_long(*board, *client, worker);
    }
    return {};
  }();
  if (!done) {
    note(board->slots.at(worker), done.error());
  }
  return done.has_value();
}

}  // namespace holdfast::command::bench
