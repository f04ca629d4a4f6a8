#pragma once

#include <holdfast/inspect.h>
#include <string>
#include <unordered_map>
#include <vector>

#include "proof/checker.h"
#include "torture/board.h"
#include "torture/line.h"
#include "torture/nemesis.h"

namespace holdfast::command::torture {

// What all rounds of a run have in common.
struct Plan {
  std::string url;     // directly, for looking after the workers
  std::string prefix;  // random: nobody else's locks are touched
  Capabilities store;
  std::uint32_t processes = 4;
  std::uint32_t threads = 3;
  Duration ttl{};
  FaultList faults;
  std::uint64_t grants_a_fault = 0;  // at least, over a while; see Nemesis
};

struct RoundResult {
  proof::History history;
  std::vector<proof::Violation> violations;
};

// Starts the workers, torments them for `length`, lets them come to an end,
// and judges what they wrote down. `tokens` carries the highest exclusive
// token of each lock from one round to the next.
Result<RoundResult> run_round(const Plan& plan, const Line& line, Duration length,
                              std::uint64_t seed,
                              std::unordered_map<std::uint32_t, std::uint64_t>& tokens);

}  // namespace holdfast::command::torture
