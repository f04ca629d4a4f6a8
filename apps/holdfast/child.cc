#include "child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>

#include "exit_status.h"

namespace holdfast::command {
namespace {

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  result.reserve(words.size() + 1);
  for (std::string& word : words) {
    result.push_back(word.data());
  }
  result.push_back(nullptr);
  return result;
}

// All that the forked child needs, made before the fork: this program has
// other threads, so between fork and exec it may only make system calls.
struct Launch {
  const char* program;
  char* const* words;
  char* const* script_words;  // sh PROGRAM ARGS..., for files without #!
  char* const* environment;
  Orphan orphan;
  pid_t parent;
  int errors;
  bool foreground;
  int tty;
};

[[noreturn]] void become(const Launch& launch, const SignalInbox& signals) {
  setpgid(0, 0);
  if (launch.foreground) {
    tcsetpgrp(launch.tty, getpid());
  }
  if (launch.orphan == Orphan::ends) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != launch.parent) {
      _exit(kInternal);  // it died before we asked to be told
    }
  }
  signals.restore();
  execve(launch.program, launch.words, launch.environment);
  if (errno == ENOEXEC) {
    execve("/bin/sh", launch.script_words, launch.environment);
  }
  const int failure = errno;
  // Without an answer the parent would take the silence for success.
  while (write(launch.errors, &failure, sizeof failure) < 0 && errno == EINTR) {
  }
  _exit(kNotFound);
}

// 0 if exec succeeded: then the pipe was closed without a word.
int exec_failure(int fd) {
  int failure = 0;
  ssize_t got = 0;
  do {
    got = read(fd, &failure, sizeof failure);
  } while (got < 0 && errno == EINTR);
  return got == sizeof failure ? failure : 0;
}

Refusal no_process(int error_number) {
  return {kOperatingSystem,
          "cannot start a process: " + std::generic_category().message(error_number) +
              "; see ulimit -u and ulimit -n"};
}

// HOLDFAST_NAME, HOLDFAST_TOKEN_2 and so on: if we run under a lock ourselves,
// what is said of that one is not true of ours.
bool tells_of_a_lock(std::string_view name) {
  return std::ranges::any_of(
      std::array<std::string_view, 2>{"HOLDFAST_NAME", "HOLDFAST_TOKEN"},
      [&](std::string_view start) {
        const std::string_view rest = name.substr(std::min(start.size(), name.size()));
        return name.starts_with(start) &&
               (rest.empty() || (rest.front() == '_' && rest.find_first_not_of("0123456789", 1) ==
                                                            std::string_view::npos));
      });
}

}  // namespace

std::vector<std::string> environment_with(const std::vector<Variable>& variables) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text{*entry};
    const std::string name = text.substr(0, text.find('='));
    if (!tells_of_a_lock(name) &&
        std::none_of(variables.begin(), variables.end(),
                     [&](const Variable& variable) { return variable.name == name; })) {
      result.push_back(text);
    }
  }
  for (const Variable& variable : variables) {
    if (variable.value) {
      result.push_back(variable.name + "=" + *variable.value);
    }
  }
  return result;
}

tl::expected<Child, Refusal> Child::start(ChildSpec spec, const SignalInbox& signals,
                                          Terminal& terminal) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return tl::unexpected{no_process(errno)};
  }
  const Descriptor read_end{ends[0]};
  Descriptor write_end{ends[1]};

  std::vector<std::string> script{"sh", spec.program};
  script.insert(script.end(), spec.words.begin() + 1, spec.words.end());
  const auto words = pointers(spec.words);
  const auto script_words = pointers(script);
  const auto environment = pointers(spec.environment);
  const Launch launch{
      spec.program.c_str(), words.data(), script_words.data(), environment.data(),
      spec.orphan,          getpid(),     write_end.get(),     terminal.is_for_the_command(),
      terminal.fd()};
  const pid_t pid = fork();
  if (pid < 0) {
    return tl::unexpected{no_process(errno)};
  }
  if (pid == 0) {
    become(launch, signals);
  }
  // Both sides do it, so that it is done whoever runs first.
  setpgid(pid, pid);
  if (launch.foreground) {
    terminal.give_to(pid);
  }
  write_end.close();
  if (const int failure = exec_failure(read_end.get()); failure != 0) {
    waitpid(pid, nullptr, 0);
    terminal.take_back();
    return tl::unexpected{refusal_of(spec.words.front(), failure)};
  }
  return Child{pid};
}

void Child::signal(int number) const noexcept {
  kill(-pid_, number);
}

bool Child::group_exists() const noexcept {
  return kill(-pid_, 0) == 0 || errno != ESRCH;
}

void Child::adopt_orphans() noexcept {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

void Child::reap_orphans() const noexcept {
  siginfo_t next{};
  // The command itself is left for look().
  while (waitid(P_PGID, static_cast<id_t>(pid_), &next, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         next.si_pid > 0 && next.si_pid != pid_) {
    waitpid(next.si_pid, nullptr, WNOHANG);
    next = {};
  }
}

std::optional<Child::Event> Child::look() const {
  int status = 0;
  pid_t found = 0;
  do {
    found = waitpid(pid_, &status, WNOHANG | WUNTRACED);
  } while (found < 0 && errno == EINTR);
  if (found != pid_) {
    return std::nullopt;
  }
  if (WIFSTOPPED(status)) {
    return Event{.stopped = true, .number = WSTOPSIG(status)};
  }
  return Event{.status =
                   WIFSIGNALED(status) ? kSignalBase + WTERMSIG(status) : WEXITSTATUS(status)};
}

}  // namespace holdfast::command
