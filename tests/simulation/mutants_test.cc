#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <set>
#include <string>

#include "simulation/simulation.h"

namespace holdfast::sim {
namespace {

// Far more than any of them needs.
constexpr std::uint64_t kSeeds = 3'000;

class Mutants : public testing::TestWithParam<MutantInfo> {};

// The simulation can fail: each broken world is noticed, and by the check that
// is there for it.
TEST_P(Mutants, AreCaught) {
  std::set<std::string> noticed;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Report report = run(draw_scenario(seed), GetParam().mutant);
    noticed.insert(report.verdict.properties().begin(), report.verdict.properties().end());
    if (noticed.contains(GetParam().property)) {
      RecordProperty("seed", std::to_string(seed));
      if (std::getenv("HOLDFAST_MUTANT_TABLE") != nullptr) {
        std::cout << "mutant|" << GetParam().name << '|' << GetParam().what << "|simulation, "
                  << GetParam().property << ", seed " << seed << '\n';
      }
      return;
    }
  }
  std::string others;
  for (const std::string& property : noticed) {
    others += " " + property;
  }
  std::cout << "survivor|" << GetParam().name << '\n';
  FAIL() << "no seed shows that " << GetParam().property << " is broken; broken are:" << others;
}

INSTANTIATE_TEST_SUITE_P(, Mutants, testing::ValuesIn(all_mutants()),
                         [](const auto& which) { return std::string{which.param.name}; });

}  // namespace
}  // namespace holdfast::sim
