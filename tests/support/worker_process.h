#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "support/eventually.h"

namespace holdfast::test {

// Another process with a Client of its own, driven line by line; the commands
// stand in support/worker/main.cc. A question is one line, and so is its
// answer: "ok ..." or "error CODE". Throws what should not happen: no answer
// in time, a dead worker.
class WorkerProcess {
 public:
  explicit WorkerProcess(const std::string& url);
  ~WorkerProcess();  // kills it
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  void send(const std::string& line);
  std::string answer(std::chrono::nanoseconds at_most = kPatience);
  std::string ask(const std::string& line) {
    send(line);
    return answer();
  }
  // What follows "ok ".
  std::string expect_ok(const std::string& line) {
    send(line);
    return expect_ok_answer();
  }
  std::string expect_ok_answer();
  // It is still at it: alive, and nothing to report.
  void expect_silence();
  std::uint64_t expect_token(const std::string& line) { return std::stoull(expect_ok(line)); }

  void stop();    // SIGSTOP, and waits until it stands
  void resume();  // SIGCONT
  void kill();    // SIGKILL, and waits until it is gone
  pid_t pid() const noexcept { return pid_; }

 private:
  pid_t pid_ = -1;
  int to_ = -1;
  int from_ = -1;
  std::string unread_;
};

}  // namespace holdfast::test
