#pragma once

#include <holdfast/options.h>
#include <csignal>

#include <array>
#include <cstddef>
#include <initializer_list>
#include <optional>

#include "descriptor.h"

namespace holdfast::command {

// Turns signals into something to poll() for. Make it before any thread
// starts, so that all threads block them. A signal that the program was
// started with ignored (nohup, a script's background job) stays ignored.
// Everything is as it was again when the inbox is gone.
class SignalInbox {
 public:
  SignalInbox(std::initializer_list<int> signals);
  ~SignalInbox();
  SignalInbox(const SignalInbox&) = delete;
  SignalInbox& operator=(const SignalInbox&) = delete;

  // Ignores a signal in this process, not in its children.
  void ignore(int signal);

  int fd() const noexcept { return fd_.get(); }
  // The next signal that came, if any. Never blocks.
  std::optional<int> take();
  std::optional<int> wait_for(Duration at_most);

  // In a forked child: the mask and the dispositions that we were started
  // with. Async-signal-safe.
  void restore() const noexcept;

 private:
  struct Saved {
    int signal = 0;
    struct sigaction action {};
  };
  void change(int signal, void (*handler)(int));

  sigset_t old_mask_{};
  std::array<Saved, 8> saved_{};
  std::size_t saved_count_ = 0;
  Descriptor fd_;
};

}  // namespace holdfast::command
