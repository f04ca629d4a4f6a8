#pragma once

#include <holdfast/options.h>
#include <sys/types.h>

#include "descriptor.h"

namespace holdfast::command {

// A small process beside us that ends the command's process group when we
// cannot: it is told until when the lock is ours, and acts if it hears nothing
// more (we were stopped, or starved) or if we are gone (kill -9).
class Guard {
 public:
  Guard() = default;  // nobody watches
  static Guard start();
  ~Guard();
  Guard(Guard&&) noexcept = default;
  Guard& operator=(Guard&&) = delete;
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  // The group may run for this long from now, if nothing else is said before:
  // SIGTERM after `until_term`, SIGKILL after `until_kill`.
  void allow(pid_t group, Duration until_term, Duration until_kill) noexcept;

  // The command ended by itself, or we end it: go away.
  void dismiss() noexcept;

 private:
  Descriptor pipe_;
  pid_t pid_ = -1;
};

}  // namespace holdfast::command
