#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

#include "simulation/mutants.h"
#include "simulation/stage.h"

namespace holdfast::sim {

struct Report {
  Verdict verdict;
  std::uint64_t steps = 0;
  std::uint64_t grants = 0;
};

// One run: everything in it follows from the scenario. A trace goes to `trace`
// if there is one.
Report run(const Scenario& scenario, Mutant mutant = Mutant::none, std::ostream* trace = nullptr);

}  // namespace holdfast::sim
