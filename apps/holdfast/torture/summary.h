#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "proof/checker.h"
#include "proof/history.h"

namespace holdfast::command::torture {

// What happened, in numbers, over all rounds.
struct Summary {
  std::uint64_t operations = 0;  // calls of acquire
  std::uint64_t granted = 0;
  std::map<std::string, std::uint64_t> refused;  // by error code
  std::uint64_t nested = 0;
  std::uint64_t writes = 0;
  std::uint64_t stale_writes = 0;  // turned away by the fence
  std::uint64_t lost = 0;          // leases that ended before their release
  std::uint64_t hand_overs = 0;    // from one process to another
  std::uint64_t local_hand_overs = 0;
  std::array<std::uint64_t, proof::kFaults> faults{};
  std::uint64_t events = 0;
  std::uint32_t rounds = 0;
  std::vector<double> wait_ms;  // of granted calls
  std::vector<double> gap_ms;   // from the release to the entry of one who waited

  std::uint64_t all_faults() const;
  void add(const proof::History& history);
};

// One violation with the events that show it.
struct Finding {
  std::string property;
  std::string text;
  std::string events;
};

struct Outcome {
  std::string store;  // without its password
  std::string engine;
  std::string strategy;
  std::uint64_t seed = 0;
  double seconds = 0;
  std::uint32_t processes = 0;
  std::uint32_t threads = 0;
  Duration ttl{};
  Summary summary;
  std::vector<Finding> findings;
  std::string timeline;  // a file, if something was found
};

void print_json(Outcome& outcome);
void print_text(Outcome& outcome);

}  // namespace holdfast::command::torture
