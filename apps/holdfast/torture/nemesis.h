#pragma once

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "proof/history.h"
#include "torture/crew.h"
#include "torture/dice.h"
#include "torture/line.h"

namespace holdfast::command::torture {

using FaultList = std::vector<proof::Fault>;

// "kill,stop,delay"; "process", "network", "all" and "none" stand for groups.
Result<FaultList> parse_faults(const std::string& text);
bool is_of_the_network(proof::Fault fault) noexcept;

// Breaks things at random moments and mends them again, and writes both down.
//
// Where every fault costs the others the length of a lease, faults without end
// leave no time for anything else. So if `grants_a_fault` is given they come in
// bursts, and after each it is calm until that many locks a fault were granted.
class Nemesis {
 public:
  Nemesis(Board& board, Crew& crew, const Line& line, FaultList faults,
          std::uint64_t grants_a_fault, std::uint64_t seed);

  // Does what is due; call it often. Fails if no process can be started.
  Result<void> tick();
  // Mends everything.
  void rest();

 private:
  using Clock = std::chrono::steady_clock;
  struct Stopped {
    std::uint32_t process;
    Clock::time_point until;
  };

  Duration ttl() const { return Duration{board_.ttl}; }
  void log(proof::EventKind kind, proof::Fault fault, std::uint32_t process);
  bool is_calm();
  Result<void> strike();
  std::size_t choose_victim();
  Result<void> kill();
  void stop();
  void break_line(proof::Fault fault);
  void apply(proof::Fault fault, proof::FaultProxy& proxy);
  void mend_line();
  void resume_due(Clock::time_point now);

  Board& board_;
  Crew& crew_;
  const Line& line_;
  FaultList faults_;
  const std::uint64_t grants_a_fault_;
  std::uint64_t struck_ = 0;
  std::uint64_t burst_ = 0;  // what is left of it
  Dice dice_;
  Clock::time_point next_;
  std::vector<Stopped> stopped_;
  std::optional<proof::Fault> broken_;
  Clock::time_point mend_at_;
};

}  // namespace holdfast::command::torture
