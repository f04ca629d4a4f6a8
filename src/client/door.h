#pragma once

#include <atomic>

#include "base/file_descriptor.h"
#include "base/time.h"

namespace holdfast::client {

// Who answers the engine's doorbell: the keeper thread, unless a blocked caller
// stands at the door itself, so that its grant need not pass through a second
// thread. Thread-safe.
class Door {
 public:
  explicit Door(int doorbell) noexcept;  // -1: there is none

  // Readable when the bell rings and nobody stands at the door.
  int keeper_fd() const noexcept { return keepers_ ? keepers_.get() : doorbell_; }

  // False if somebody else stands there, or there is no bell.
  bool take() noexcept;
  void leave() noexcept;

  // For the one at the door: true if the bell rings; false at `until`, after
  // wake(), or for no reason.
  bool wait(base::Time until) noexcept;
  void wake() noexcept;

 private:
  bool set_keepers(unsigned events) noexcept;

  int doorbell_;
  base::FileDescriptor keepers_;  // epoll: what the keeper sees of the bell
  base::FileDescriptor wake_;     // eventfd
  std::atomic<bool> taken_{false};
};

}  // namespace holdfast::client
