#include "bench_scenarios.h"

#include <algorithm>
#include <array>
#include <sstream>

#include "text.h"

namespace holdfast::command::bench {
namespace {

using Names = Waiting::Names;
using By = Waiting::By;

constexpr std::array kScenarios{
    Scenario{"U1", "1 thread, 100 names, nobody contends", false,
             [](const Plan& plan) { return measure_cycles(plan, 1); }},
    Scenario{"U8", "8 threads, 100 names each, nobody contends", false,
             [](const Plan& plan) { return measure_cycles(plan, 8); }},
    Scenario{"U32", "32 threads, 100 names each, nobody contends", false,
             [](const Plan& plan) { return measure_cycles(plan, 32); }},
    Scenario{"U128", "128 threads, 100 names each, nobody contends", false,
             [](const Plan& plan) { return measure_cycles(plan, 128); }},
    Scenario{"A32", "32 callbacks, 100 names each, nobody contends", false,
             [](const Plan& plan) { return measure_callbacks(plan, 32); }},
    Scenario{"C16", "16 threads, one name", false,
             [](const Plan& plan) { return measure_contention(plan, 16); }},
    Scenario{"Q100", "100 callbacks line up for one name, again and again", false,
             [](const Plan& plan) { return measure_queue(plan, 100); }},
    Scenario{"H4", "4 processes, one name, 1 ms of work", true,
             [](const Plan& plan) { return measure_rotation(plan, 4); }},
    Scenario{"P2", "a sleeping process is woken every 700 ms", true,
             [](const Plan& plan) { return measure_wake_up(plan); }},
    Scenario{"W100", "100 threads wait for one held lock", true,
             [](const Plan& plan) {
               return measure_waiting(plan, {1, 100, Names::one, By::threads});
             }},
    Scenario{"W1000", "1,000 waits for one held lock", true,
             [](const Plan& plan) {
               return measure_waiting(plan, {1, 1000, Names::one, By::callbacks});
             }},
    Scenario{"W1000n", "1,000 waits for as many held locks", true,
             [](const Plan& plan) {
               return measure_waiting(plan, {1, 1000, Names::many, By::callbacks});
             }},
    Scenario{"W50p", "50 processes wait for one held lock", true,
             [](const Plan& plan) {
               return measure_waiting(plan, {50, 1, Names::one, By::threads});
             }},
    Scenario{"L100k", "100,000 leases held by one process", false,
             [](const Plan& plan) { return measure_leases(plan, 100'000); }},
};

}  // namespace

Result<std::vector<const Scenario*>> parse_scenarios(const std::string& text) {
  std::vector<const Scenario*> chosen;
  std::istringstream words{text};
  for (std::string word; std::getline(words, word, ',');) {
    const auto* const found =
        std::find_if(kScenarios.begin(), kScenarios.end(),
                     [&](const Scenario& scenario) { return scenario.name == word; });
    if (found == kScenarios.end()) {
      std::string known;
      for (const Scenario& scenario : kScenarios) {
        known += (known.empty() ? "" : ", ") + std::string{scenario.name};
      }
      return fail(ErrorCode::invalid_argument,
                  "there is no scenario " + in_quotes(word) + "; choose from " + known);
    }
    chosen.push_back(found);
  }
  if (chosen.empty()) {
    return fail(ErrorCode::invalid_argument,
                std::string{"--scenario is empty; write for example "} + kUsualScenarios);
  }
  return chosen;
}

}  // namespace holdfast::command::bench
