#include "torture/crew.h"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <thread>

#include "start_self.h"

namespace holdfast::command::torture {

using namespace std::chrono_literals;

Crew::~Crew() {
  for (const Member& member : members_) {
    ::kill(member.pid, SIGKILL);
    waitpid(member.pid, nullptr, 0);
  }
}

Result<std::uint32_t> Crew::start() {
  const std::uint32_t process = ++started_;
  memory_.board().held_by(process) = 0;
  const auto pid =
      start_self({"holdfast", "torture", "--worker"}, memory_.fd(),
                 {{"HOLDFAST_URL", url_}, {"HOLDFAST_TORTURE_PROCESS", std::to_string(process)}});
  if (!pid) {
    return tl::unexpected{pid.error()};
  }
  members_.push_back({.pid = *pid, .process = process});
  return process;
}

std::size_t Crew::stopped() const noexcept {
  return static_cast<std::size_t>(std::ranges::count_if(members_, &Member::stopped));
}

void Crew::kill(std::size_t member) {
  const pid_t pid = members_.at(member).pid;
  ::kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(member));
}

void Crew::stop(std::size_t member) {
  ::kill(members_.at(member).pid, SIGSTOP);
  members_.at(member).stopped = true;
}

void Crew::resume(std::uint32_t process) {
  for (Member& member : members_) {
    if (member.process == process && member.stopped) {
      ::kill(member.pid, SIGCONT);
      member.stopped = false;
    }
  }
}

void Crew::resume_all() {
  for (const Member& member : members_) {
    resume(member.process);
  }
}

Error Crew::failure(int code, int status) const {
  const Board& board = memory_.board();
  if (board.failed) {
    return {board.code, board.error.data(), std::nullopt};
  }
  const std::string how = code == CLD_EXITED ? "exit status " : "signal ";
  return {ErrorCode::unavailable,
          "a worker process ended by itself, with " + how + std::to_string(status), std::nullopt};
}

Result<void> Crew::look_after() {
  for (const Member& member : members_) {
    siginfo_t info{};
    const int found =
        waitid(P_PID, static_cast<id_t>(member.pid), &info, WEXITED | WNOHANG | WNOWAIT);
    const bool full = memory_.board().log.is_nearly_full();
    if (found == 0 && info.si_pid == member.pid && (!full || info.si_status != 0)) {
      return tl::unexpected{failure(info.si_code, info.si_status)};
    }
  }
  return {};
}

Result<bool> Crew::await_end(Duration at_most) {
  const auto deadline = std::chrono::steady_clock::now() + at_most;
  std::optional<Error> failed;
  while (true) {
    std::erase_if(members_, [&](const Member& member) {
      int status = 0;
      if (waitpid(member.pid, &status, WNOHANG) != member.pid) {
        return false;
      }
      if (status != 0 && !failed) {
        failed = WIFEXITED(status) ? failure(CLD_EXITED, WEXITSTATUS(status))
                                   : failure(CLD_KILLED, WTERMSIG(status));
      }
      return true;
    });
    if (failed) {
      return tl::unexpected{std::move(*failed)};
    }
    if (members_.empty()) {
      return true;
    }
    if (std::chrono::steady_clock::now() > deadline) {
      return false;
    }
    std::this_thread::sleep_for(2ms);
  }
}

}  // namespace holdfast::command::torture
