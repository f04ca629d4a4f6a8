#pragma once

#include <holdfast/lease.h>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include "child.h"
#include "guard.h"
#include "signals.h"
#include "terminal.h"

namespace holdfast::command {

enum class OnLost : std::uint8_t {
  term,    // end the command before the lease ends
  ignore,  // let it run on without the lock
};

// Stands between the command, the terminal and the lock while the command
// runs: passes signals on, follows stops and continuations, and ends the whole
// process group in time if the lock is lost.
class Supervisor {
 public:
  struct Parts {
    Child child;
    Lease& lease;
    SignalInbox& signals;
    Terminal& terminal;
    Guard guard;
    Duration ttl;
    Duration grace;
    OnLost on_lost = OnLost::term;
    std::function<void()> when_lost;  // called once
  };
  explicit Supervisor(Parts parts);

  // Until the command has ended: what a shell calls $?.
  int run();

  // Somebody wanted the command to end: by a signal to us, or at the terminal.
  bool was_interrupted() const noexcept;

 private:
  void handle_signal(int number);
  void handle_stop(int number);
  void resume();
  void handle_loss();
  void end_group_in_time();
  void tell_guard();
  bool is_over() const;
  Duration next_look() const;

  Parts parts_;
  Duration margin_;  // how long before the deadline SIGKILL is sent
  Descriptor lost_;  // readable once the lock is lost
  bool ending_ = false;
  bool interrupted_ = false;
  std::optional<std::chrono::steady_clock::time_point> killed_at_;
  std::optional<int> status_;
};

}  // namespace holdfast::command
