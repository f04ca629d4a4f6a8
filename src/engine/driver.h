#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/time.h"
#include "engine/engine.h"

namespace holdfast::engine {

// One exchange with a server that never blocks: whoever has a thread to spare
// moves it on.
class Conversation {
 public:
  virtual ~Conversation() = default;
  Conversation() = default;
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  // What must happen before advance() can do more: events on the descriptor
  // (as poll(2) names them; -1: none), or the time.
  struct Wait {
    int fd = -1;
    short events = 0;
    base::Time until = base::kNever;
  };

  // Goes as far as it can. `ready` is what poll() found, 0 at first and when
  // the time came. nullopt: it is over.
  virtual std::optional<Wait> advance(short ready) = 0;

  // The driver ends first: the next advance() must end the exchange, whatever
  // is known by then.
  virtual void give_up() = 0;

  // Called once, when it is over, and the last thing the driver does with it:
  // the place to tell the caller, and to begin another exchange.
  virtual void finish() = 0;
};

// Lends conversations the thread of whoever began them for as long as that has
// patience, and one of its own after that. The thread starts when it is first
// needed. Thread-safe; after a fork() the child's copy does nothing.
class Driver {
 public:
  Driver();
  // Those that still run are given up and finished. May run in a finish().
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  // The conversation must live until its finish() is called.
  void run(Conversation& conversation, Patience patience);

 private:
  struct State;
  const std::uint64_t generation_;
  std::shared_ptr<State> state_;
};

}  // namespace holdfast::engine
