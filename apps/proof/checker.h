#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "proof/calls.h"
#include "proof/history.h"

namespace holdfast::proof {

// What the engine promises, and how slow the world may be. The bounds matter
// to L1-L3 and to the punctuality of waits alone.
struct Rules {
  bool token = true;
  bool lease = true;  // false: a lock ends with its holder's session
  bool fifo = true;
  Duration ttl{};
  std::uint32_t hand_over = kDefaultHandOver;
  Duration backstop = kBackstopPoll;
  // How long anything may take that should happen at once.
  Duration slack = std::chrono::seconds{5};
  // How long after a fault has ended somebody may still suffer from it.
  Duration recovery = std::chrono::seconds{5};
  // A stopped process may hold up everybody (SQLite: it may stop while it writes).
  bool stop_hits_all = false;
  // The highest token of each name in earlier histories.
  std::unordered_map<std::uint32_t, std::uint64_t> token_floor = {};
};

// Of each property so many violations are told.
inline constexpr int kToldOfEach = 3;

struct Violation {
  std::string property;  // "S2"
  std::string text;
  // The events that show it, and no others: indexes into the history.
  std::vector<std::size_t> window;
};

// Checks a whole history against the properties of docs/proof.md: S1-S6 and
// L1-L4. Sorts and sweeps, so a million events take seconds.
std::vector<Violation> check(const History& history, const Rules& rules);

std::string to_text(const Violation& violation, const History& history);

// --- the parts of check(), one property or a few each

class Findings {
 public:
  explicit Findings(const History& history) : history_{history} {}
  void add_events(const std::string& property, std::string text, std::vector<std::size_t> window);
  // The events of these calls, with the faults that fell between them.
  void add(const std::string& property, std::string text, const std::vector<const Call*>& calls);
  std::vector<Violation> take() { return std::move(violations_); }

 private:
  const History& history_;
  std::vector<Violation> violations_;
  std::unordered_map<std::string, int> told_;
};

struct Case {
  const History& history;
  const Rules& rules;
  const Calls& calls;
  Findings& findings;

  const Event& at(std::size_t place) const { return history[place]; }
};

void check_writes(const Case& run);     // S1
void check_exclusion(const Case& run);  // S2
void check_tokens(const Case& run);     // S3
void check_releases(const Case& run);   // S4
void check_answers(const Case& run);    // S5
void check_beliefs(const Case& run);    // S6
void check_progress(const Case& run);   // L1, L3
void check_order(const Case& run);      // L2
void check_leftovers(const Case& run);  // L4

}  // namespace holdfast::proof
