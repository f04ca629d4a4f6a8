#include "support/process.h"

#include <fcntl.h>
#include <pty.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace holdfast::test {
namespace {

[[noreturn]] void throw_errno(const char* what) {
  throw std::system_error{errno, std::generic_category(), what};
}

std::vector<std::string> merged(const Process::Environment& more) {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text{*entry};
    if (more.count(text.substr(0, text.find('='))) == 0) {
      entries.push_back(text);
    }
  }
  for (const auto& [name, value] : more) {
    entries.push_back(std::string{name}.append("=").append(value));
  }
  return entries;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  for (std::string& word : words) {
    result.push_back(word.data());
  }
  result.push_back(nullptr);
  return result;
}

// The words and the environment, made before the fork.
struct Image {
  Image(std::vector<std::string> given, const Process::Environment& more)
      : words{std::move(given)}, entries{merged(more)} {}

  [[noreturn]] void become() const {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    execvpe(argv[0], argv.data(), envp.data());
    _exit(127);
  }

  std::vector<std::string> words;
  std::vector<std::string> entries;
  std::vector<char*> argv = pointers(words);
  std::vector<char*> envp = pointers(entries);
};

std::string contents(int fd) {
  std::string text;
  std::array<char, 4096> buffer{};
  ssize_t got = 0;
  while ((got = pread(fd, buffer.data(), buffer.size(), static_cast<off_t>(text.size()))) > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return text;
}

}  // namespace

Process Process::start(const std::vector<std::string>& words, const Environment& more) {
  Process process;
  process.out_ = memfd_create("out", MFD_CLOEXEC);
  process.err_ = memfd_create("err", MFD_CLOEXEC);
  if (process.out_ < 0 || process.err_ < 0) {
    throw_errno("memfd_create");
  }
  const Image image{words, more};
  process.pid_ = fork();
  if (process.pid_ < 0) {
    throw_errno("fork");
  }
  if (process.pid_ == 0) {
    setsid();  // the terminal of whoever runs the tests plays no part in them
    dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
    dup2(process.out_, STDOUT_FILENO);
    dup2(process.err_, STDERR_FILENO);
    image.become();
  }
  return process;
}

Process Process::start_on_terminal(const std::vector<std::string>& words, const Environment& more) {
  Process process;
  const Image image{words, more};
  process.pid_ = forkpty(&process.terminal_, nullptr, nullptr, nullptr);
  if (process.pid_ < 0) {
    throw_errno("forkpty");
  }
  if (process.pid_ == 0) {
    image.become();
  }
  fcntl(process.terminal_, F_SETFD, FD_CLOEXEC);
  fcntl(process.terminal_, F_SETFL, O_NONBLOCK);
  return process;
}

Process::Process(Process&& other) noexcept
    : pid_{std::exchange(other.pid_, -1)},
      status_{other.status_},
      killed_{other.killed_},
      out_{std::exchange(other.out_, -1)},
      err_{std::exchange(other.err_, -1)},
      terminal_{std::exchange(other.terminal_, -1)},
      screen_{std::move(other.screen_)} {}

Process::~Process() {
  if (pid_ > 0 && !status_) {
    kill(pid_, SIGKILL);
    kill(pid_, SIGCONT);
    waitpid(pid_, nullptr, 0);
  }
  for (const int fd : {out_, err_, terminal_}) {
    if (fd >= 0) {
      close(fd);
    }
  }
}

void Process::signal(int number) const {
  kill(pid_, number);
}

std::optional<int> Process::wait(std::chrono::nanoseconds at_most) {
  eventually(
      [&] {
        int status = 0;
        if (!status_ && waitpid(pid_, &status, WNOHANG) == pid_) {
          killed_ = WIFSIGNALED(status);
          status_ = killed_ ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        }
        return status_.has_value();
      },
      at_most);
  return status_;
}

std::string Process::out() {
  if (terminal_ < 0) {
    return contents(out_);
  }
  std::array<char, 4096> buffer{};
  ssize_t got = 0;
  while ((got = read(terminal_, buffer.data(), buffer.size())) > 0) {
    screen_.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return screen_;
}

std::string Process::err() const {
  return contents(err_);
}

void Process::type(const std::string& text) const {
  [[maybe_unused]] const auto written = write(terminal_, text.data(), text.size());
}

}  // namespace holdfast::test
