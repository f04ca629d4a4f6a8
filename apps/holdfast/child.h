#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "program.h"
#include "signals.h"
#include "terminal.h"

namespace holdfast::command {

// What becomes of the command if we are killed.
enum class Orphan : std::uint8_t { ends, lives };

struct ChildSpec {
  std::string program;             // a path
  std::vector<std::string> words;  // argv
  std::vector<std::string> environment;
  Orphan orphan = Orphan::ends;
};

// Our environment with these variables set, or unset where the value is empty.
struct Variable {
  std::string name;
  std::optional<std::string> value;
};
std::vector<std::string> environment_with(const std::vector<Variable>& variables);

// A command that runs in a process group of its own.
class Child {
 public:
  // Returns when the command runs, or with why it does not. Call it from the
  // main thread: the kernel ties Orphan::ends to the thread that forks.
  static tl::expected<Child, Refusal> start(ChildSpec spec, const SignalInbox& signals,
                                            Terminal& terminal);

  pid_t group() const noexcept { return pid_; }
  // To every process of the group.
  void signal(int number) const noexcept;
  // Some process of the group is left; the command itself counts until reaped.
  bool group_exists() const noexcept;

  // What the command started becomes ours when the command ends before it, so
  // that we see it end: not every system has somebody else who does.
  static void adopt_orphans() noexcept;
  void reap_orphans() const noexcept;  // call it after look()

  struct Event {
    bool stopped = false;
    int number = 0;  // the signal if stopped, ...
    int status = 0;  // ... else what a shell calls $?
  };
  // What happened to the command since the last look; never blocks. After it
  // ended there are no more events.
  std::optional<Event> look() const;

 private:
  explicit Child(pid_t pid) : pid_{pid} {}
  pid_t pid_;
};

}  // namespace holdfast::command
