#pragma once

#include <sys/types.h>

#include "descriptor.h"

namespace holdfast::command {

// The terminal that this process was started from, if any. Only the process
// group in its foreground may read it and gets its Ctrl-C. Needs SIGTTOU
// ignored.
class Terminal {
 public:
  Terminal();

  explicit operator bool() const noexcept { return static_cast<bool>(tty_); }
  int fd() const noexcept { return tty_.get(); }

  // Our own process group is in the foreground.
  bool is_ours() const noexcept;

  // Standard input and output both go to the terminal: nobody else in our
  // pipeline needs it, so the command gets it from the start. Otherwise it
  // gets it when it asks.
  bool is_for_the_command() const noexcept;

  void give_to(pid_t group) noexcept;
  // Without effect if it was not given away.
  void take_back() noexcept;

 private:
  Descriptor tty_;
  bool given_ = false;
};

}  // namespace holdfast::command
