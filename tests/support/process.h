#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "support/eventually.h"

namespace holdfast::test {

// A program that a test starts, watches and ends. What it prints is kept in
// memory and can be read at any time, so it never blocks on us. Killed, if it
// still runs, when the object goes.
class Process {
 public:
  using Environment = std::map<std::string, std::string>;  // on top of ours

  // Standard input is empty.
  static Process start(const std::vector<std::string>& words, const Environment& more = {});

  // With a terminal of its own as standard input, output and error.
  static Process start_on_terminal(const std::vector<std::string>& words,
                                   const Environment& more = {});

  ~Process();
  Process(Process&& other) noexcept;
  Process& operator=(Process&&) = delete;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const noexcept { return pid_; }
  void signal(int number) const;

  // What a shell calls $?: 128 + N if signal N ended it. Empty if it still
  // runs at the deadline.
  std::optional<int> wait(std::chrono::nanoseconds at_most = kPatience);
  bool is_running() { return !wait(std::chrono::nanoseconds{0}); }
  bool was_killed() const noexcept { return killed_; }

  std::string out();
  std::string err() const;
  // To the terminal.
  void type(const std::string& text) const;

 private:
  Process() = default;
  pid_t pid_ = -1;
  std::optional<int> status_;
  bool killed_ = false;
  int out_ = -1;
  int err_ = -1;
  int terminal_ = -1;
  std::string screen_;
};

}  // namespace holdfast::test
