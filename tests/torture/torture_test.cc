// `holdfast torture` for a few seconds on every engine that processes can
// share. An engine is tortured as soon as it has a harness. `./dev torture`
// runs the same for longer, and keeps what was found.

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/harness.h"
#include "support/needs.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace holdfast::test {
namespace {

namespace bj = boost::json;
using namespace std::chrono_literals;

const char* setting(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

class Torture : public testing::TestWithParam<HarnessEntry> {
 protected:
  void SetUp() override {
    if (const auto& missing = GetParam().missing) {
      HOLDFAST_SKIP_IF_MISSING(missing());
    }
    harness_ = GetParam().make();
  }

  std::unique_ptr<Harness> harness_;
  TempDir dir_;
};

TEST_P(Torture, FindsNoViolation) {
  const bool quick = std::getenv("HOLDFAST_QUICK") != nullptr;
  const char* kept = std::getenv("HOLDFAST_TORTURE_REPORTS");
  const std::filesystem::path folder = kept == nullptr ? dir_.path() : kept;
  Process torture =
      Process::start({HOLDFAST_COMMAND, "torture", "--json", "--seconds",
                      setting("HOLDFAST_TORTURE_SECONDS", quick ? "1" : "3"), "--min-grants",
                      setting("HOLDFAST_TORTURE_GRANTS", "20"), "--min-faults",
                      setting("HOLDFAST_TORTURE_FAULTS", quick ? "1" : "4"), "--at-most",
                      setting("HOLDFAST_TORTURE_AT_MOST", "200s"), "--timeline",
                      (folder / (GetParam().label() + ".html")).string()},
                     {{"HOLDFAST_URL", harness_->torture_url()}});
  const std::chrono::seconds limit{std::stoi(setting("HOLDFAST_TORTURE_LIMIT", "240"))};
  const auto status = torture.wait(limit);
  if (kept != nullptr && (status == 0 || status == 1)) {
    std::ofstream{folder / (GetParam().label() + ".json")} << torture.out();
  }
  ASSERT_EQ(status, 0) << torture.out() << torture.err();
  const bj::value report = bj::parse(torture.out());
  EXPECT_EQ(report.at("verdict"), "passed");
  EXPECT_GT(report.at("granted").to_number<int>(), 0);
  EXPECT_GT(report.at("faults_total").to_number<int>(), 0);
  // Nothing of it is left in the store.
  const auto left = harness_->open()->list("torture-");
  ASSERT_TRUE(left) << left.error();
  for (const LockInfo& lock : *left) {
    EXPECT_TRUE(lock.holders.empty() && lock.queue.empty()) << lock.name;
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Torture);
INSTANTIATE_TEST_SUITE_P(, Torture, testing::ValuesIn(harnesses_with(&Claims::processes)),
                         [](const auto& entry) { return entry.param.label(); });

}  // namespace
}  // namespace holdfast::test
