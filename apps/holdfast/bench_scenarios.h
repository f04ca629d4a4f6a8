#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bench.h"

namespace holdfast::command::bench {

struct Scenario {
  std::string_view name;
  std::string_view what;
  bool processes;  // needs more than this one
  Result<Figures> (*measure)(const Plan&);
};

inline constexpr const char* kUsualScenarios = "U1,U32,C16,H4,P2,W100";

// "U1,P2"
Result<std::vector<const Scenario*>> parse_scenarios(const std::string& text);

struct Row {
  const Scenario* scenario;
  Figures figures;
  std::string skipped;  // why
};

void print_table(const std::vector<Row>& rows);
void print_json(const std::vector<Row>& rows, const std::string& store, Duration duration);

}  // namespace holdfast::command::bench
