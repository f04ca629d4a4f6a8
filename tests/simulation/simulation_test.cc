#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>

#include "simulation/simulation.h"

namespace holdfast::sim {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kSeeds = 600;
#else
constexpr std::uint64_t kSeeds = 10'000;
#endif
constexpr std::uint64_t kQuickSeeds = 1'500;
constexpr std::uint64_t kShards = 4;  // so that they run side by side

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr || *text == '\0' ? otherwise : std::strtoull(text, nullptr, 10);
}

std::uint64_t seeds() {
  const bool quick = std::getenv("HOLDFAST_QUICK") != nullptr;
  return number_from("HOLDFAST_SIM_SEEDS", quick ? std::min(kQuickSeeds, kSeeds) : kSeeds);
}

// To see how a mutant shows: HOLDFAST_SIM_MUTANT=queue_jumped.
Mutant mutant_from_environment() {
  const char* name = std::getenv("HOLDFAST_SIM_MUTANT");
  for (const MutantInfo& info : all_mutants()) {
    if (name != nullptr && std::string{name} == info.name) return info.mutant;
  }
  return Mutant::none;
}

std::string complaint(std::uint64_t seed, const Verdict& verdict) {
  std::string text = "seed " + std::to_string(seed) + " breaks the contract:\n";
  for (const Verdict::Violation& it : verdict.violations()) {
    text += "  " + it.property + " " + it.text + "\n";
  }
  return text + "replay: HOLDFAST_SIM_SEED=" + std::to_string(seed) +
         " HOLDFAST_SIM_SEEDS=1 HOLDFAST_SIM_TRACE=1 " + testing::internal::GetArgvs().front() +
         " --gtest_filter='*Seeds*'\n";
}

class Simulation : public testing::TestWithParam<std::uint64_t> {};

// The contract holds in every world that a seed describes.
TEST_P(Simulation, SeedsKeepTheContract) {
  const std::uint64_t first = number_from("HOLDFAST_SIM_SEED", 1);
  std::ostream* trace = number_from("HOLDFAST_SIM_TRACE", 0) != 0 ? &std::cout : nullptr;
  int failures = 0;
  for (std::uint64_t i = GetParam(); i < seeds() && failures < 5; i += kShards) {
    const Report report = run(draw_scenario(first + i), mutant_from_environment(), trace);
    if (!report.verdict.clean()) {
      ++failures;
      ADD_FAILURE() << complaint(first + i, report.verdict);
    }
  }
}

// What a failing seed shows once, it shows again.
TEST(SimulationReplay, IsTheSameRun) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    std::ostringstream first;
    std::ostringstream second;
    run(draw_scenario(seed), Mutant::none, &first);
    run(draw_scenario(seed), Mutant::none, &second);
    ASSERT_FALSE(first.str().empty());
    ASSERT_EQ(first.str(), second.str()) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Shard, Simulation, testing::Range(std::uint64_t{0}, kShards));

}  // namespace
}  // namespace holdfast::sim
