#pragma once

#include <set>
#include <span>
#include <vector>

#include "client/coordinator.h"
#include "engine/engine.h"
#include "simulation/mutants.h"

namespace holdfast::sim {

// What a wrong client makes of its caller's wish.
void twist(Mutant mutant, client::Wish& wish);

// What stands wrongly between a client and the store: as if the client had
// sent something else, or its engine had said something else.
class Interpreter {
 public:
  explicit Interpreter(Mutant mutant) : mutant_{mutant} {}

  void to_store(std::vector<core::Command>& commands);
  void to_client(std::span<const core::Command> commands, base::Duration elapsed,
                 engine::Outcomes& outcomes);

 private:
  Mutant mutant_;
  std::set<core::RequestId> seen_;    // acquires
  std::set<core::RequestId> failed_;  // renewals
};

}  // namespace holdfast::sim
