#include "support/worker_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <stdexcept>
#include <system_error>

namespace holdfast::test {

namespace {

[[noreturn]] void throw_errno(const char* what) {
  throw std::system_error{errno, std::generic_category(), what};
}

std::array<int, 2> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw_errno("pipe2");
  return ends;
}

pid_t spawn(const std::string& url, int in, int out) {
  std::string program = HOLDFAST_TEST_WORKER;
  std::string argument = url;
  std::array<char*, 3> arguments{program.data(), argument.data(), nullptr};
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  pid_t pid = -1;
  const int error =
      ::posix_spawn(&pid, program.c_str(), &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::system_error{error, std::generic_category(), program};
  return pid;
}

}  // namespace

WorkerProcess::WorkerProcess(const std::string& url) {
  const auto question = make_pipe();
  const auto reply = make_pipe();
  pid_ = spawn(url, question[0], reply[1]);
  ::close(question[0]);
  ::close(reply[1]);
  to_ = question[1];
  from_ = reply[0];
  std::signal(SIGPIPE, SIG_IGN);  // a dead worker is an error of send(), not our end
}

WorkerProcess::~WorkerProcess() {
  kill();
  ::close(to_);
  ::close(from_);
}

void WorkerProcess::send(const std::string& line) {
  const std::string text = line + "\n";
  if (::write(to_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    throw_errno("write to worker");
  }
}

std::string WorkerProcess::answer(std::chrono::nanoseconds at_most) {
  const auto deadline = std::chrono::steady_clock::now() + at_most;
  while (unread_.find('\n') == std::string::npos) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) throw std::runtime_error{"no answer from the worker in time"};
    pollfd readable{.fd = from_, .events = POLLIN, .revents = 0};
    if (::poll(&readable, 1, static_cast<int>(left.count())) <= 0) continue;
    std::array<char, 4096> buffer{};
    const ssize_t count = ::read(from_, buffer.data(), buffer.size());
    if (count <= 0) throw std::runtime_error{"the worker is gone; so far it said: " + unread_};
    unread_.append(buffer.data(), static_cast<std::size_t>(count));
  }
  const auto end = unread_.find('\n');
  std::string line = unread_.substr(0, end);
  unread_.erase(0, end + 1);
  return line;
}

std::string WorkerProcess::expect_ok_answer() {
  const std::string line = answer();
  if (line.rfind("ok", 0) != 0) throw std::runtime_error{"the worker said: " + line};
  return line.size() > 3 ? line.substr(3) : "";
}

void WorkerProcess::expect_silence() {
  pollfd readable{.fd = from_, .events = POLLIN, .revents = 0};
  if (::poll(&readable, 1, 0) == 1) throw std::runtime_error{"the worker said: " + answer()};
}

void WorkerProcess::stop() {
  if (::kill(pid_, SIGSTOP) != 0) throw_errno("SIGSTOP");
  int status = 0;
  if (::waitpid(pid_, &status, WUNTRACED) != pid_) throw_errno("waitpid");
  if (!WIFSTOPPED(status)) throw std::runtime_error{"the worker ended instead of stopping"};
}

void WorkerProcess::resume() {
  if (::kill(pid_, SIGCONT) != 0) throw_errno("SIGCONT");
}

void WorkerProcess::kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

}  // namespace holdfast::test
