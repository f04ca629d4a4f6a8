// The suite covers every engine, and code, harnesses and documentation agree
// about what each can do.
#include <algorithm>
#include <cctype>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "conformance/conformance.h"
#include "engine/registry.h"

namespace holdfast::test {
namespace {

std::vector<Capabilities> declared() {
  std::vector<Capabilities> all;
  for (const engine::Registration& registration : engine::registrations()) {
    for (const Capabilities& row : registration.capabilities()) all.push_back(row);
  }
  return all;
}

std::string label(const Capabilities& row) {
  return row.strategy.empty() ? row.engine : row.engine + "_" + row.strategy;
}

TEST(Coverage, EveryEngineHasAHarnessAndEveryHarnessAnEngine) {
  std::vector<std::string> engines;
  std::vector<std::string> covered;
  for (const Capabilities& row : declared()) engines.push_back(label(row));
  for (const HarnessEntry& entry : harnesses()) covered.push_back(entry.label());
  EXPECT_THAT(covered, ::testing::UnorderedElementsAreArray(engines));
}

// A harness that claimed less would quietly leave out tests; one that claims
// more is an engine that broke its word.
TEST(Coverage, HarnessesClaimWhatTheirEnginesDeclare) {
  std::map<std::string, Capabilities> engines;
  for (const Capabilities& row : declared()) engines[label(row)] = row;
  for (const HarnessEntry& entry : harnesses()) {
    SCOPED_TRACE(entry.label());
    const Capabilities& row = engines[entry.label()];
    EXPECT_EQ(entry.claims.token, row.token != TokenKind::none);
    EXPECT_EQ(entry.claims.fair, row.fifo);
    EXPECT_EQ(entry.claims.shared, row.shared);
    EXPECT_EQ(entry.claims.permits, row.permits);
    EXPECT_EQ(entry.claims.lease, row.lease);
    EXPECT_EQ(entry.claims.survives, row.exclusion != ExclusionBy::session);
    EXPECT_EQ(entry.claims.values, row.values);
    EXPECT_EQ(entry.claims.event,
              row.wake_up == WakeUp::event || row.wake_up == WakeUp::event_herd);
    if (!entry.missing || !entry.missing()) {
      EXPECT_GE(entry.make()->shortest_ttl(), row.min_ttl);
      EXPECT_LE(entry.make()->renewable_ttl(), row.max_ttl);
    }
  }
}

using Row = std::vector<std::string>;

// "| a | b |" -> {"a", "b"}
Row cells(const std::string& line) {
  Row row;
  std::istringstream in{line.substr(1)};
  for (std::string cell; std::getline(in, cell, '|');) {
    const auto first = cell.find_first_not_of(' ');
    const auto last = cell.find_last_not_of(' ');
    row.push_back(first == std::string::npos ? "" : cell.substr(first, last - first + 1));
  }
  return row;
}

// The rows of the first table below a heading.
std::vector<Row> table_below(const std::string& heading) {
  std::ifstream in{std::string{HOLDFAST_SOURCE_DIR} + "/docs/engines/README.md"};
  EXPECT_TRUE(in) << "docs/engines/README.md is missing";
  std::vector<Row> rows;
  bool below = false;
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("#", 0) == 0) below = line == heading;
    if (below && line.rfind("|", 0) == 0) rows.push_back(cells(line));
    if (below && line.empty() && !rows.empty()) break;
  }
  if (rows.size() < 2) return {};
  return {rows.begin() + 2, rows.end()};  // without the head and the line below it
}

Row documented_as(const Capabilities& row) {
  const auto yes_no = [](bool value) { return std::string{value ? "yes" : "no"}; };
  const auto words = [](std::string_view code) {
    std::string text{code};
    std::replace(text.begin(), text.end(), '_', ' ');
    return text;
  };
  std::string name = row.engine;
  if (!row.strategy.empty()) name += " `" + row.strategy + "`";
  return {name,
          words(to_string(row.exclusion)),
          yes_no(row.lease),
          words(to_string(row.token)),
          yes_no(row.fifo),
          words(to_string(row.wake_up)),
          yes_no(row.shared),
          yes_no(row.permits),
          words(to_string(row.loss_signal)),
          yes_no(row.values),
          row.clock};
}

TEST(Coverage, TheDocumentedTableIsWhatTheEnginesDeclare) {
#ifdef HOLDFAST_WITHOUT_SOME
  GTEST_SKIP() << "the table is about all engines, and this build leaves some out";
#endif
  std::vector<Row> expected;
  for (const Capabilities& row : declared()) expected.push_back(documented_as(row));
  EXPECT_THAT(table_below("## What each engine promises"),
              ::testing::UnorderedElementsAreArray(expected));
}

TEST(Coverage, NoEngineIsBothBuiltAndPlanned) {
  for (const Row& row : table_below("## Planned")) {
    ASSERT_FALSE(row.empty());
    for (const Capabilities& built : declared()) {
      if (built.strategy.empty()) {
        EXPECT_THAT(row[0], ::testing::Not(::testing::HasSubstr(built.engine)));
      }
    }
  }
  EXPECT_FALSE(table_below("## What each engine promises").empty());
}

TEST(Coverage, EveryEngineHasAPage) {
  for (const Capabilities& row : declared()) {
    std::ifstream page{std::string{HOLDFAST_SOURCE_DIR} + "/docs/engines/" + row.engine + ".md"};
    EXPECT_TRUE(page) << "docs/engines/" << row.engine << ".md is missing";
  }
}

}  // namespace
}  // namespace holdfast::test
