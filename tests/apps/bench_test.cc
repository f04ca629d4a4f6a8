// holdfast bench: that it measures and leaves nothing held. How fast is for
// docs/benchmarks.md.

#include <boost/json.hpp>

#include "apps/command.h"

namespace holdfast::test {
namespace {

namespace bj = boost::json;

class Bench : public CommandTest {
 protected:
  bj::array measured(const std::string& scenarios) {
    const auto called = call({"bench", "--scenario", scenarios, "--seconds", "0.1", "--json"});
    EXPECT_EQ(called.status, 0) << called.err;
    return bj::parse(called.out).at("scenarios").as_array();
  }
};

TEST_F(Bench, CountsCyclesAndHandOversOfThreads) {
  const bj::array rows = measured("U1,U32,C16");
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].at("scenario"), "U1");
  EXPECT_GT(rows[0].at("cycles_per_s").as_double(), 0);
  EXPECT_GT(rows[1].at("cycles_per_s").as_double(), 0);
  EXPECT_GT(rows[2].at("hand_overs_per_s").as_double(), 0);
  EXPECT_GE(rows[2].at("largest_share").as_double(), 1);
  EXPECT_TRUE(is_idle());
}

TEST_F(Bench, TakesOtherNumbersThanTheScenarioIsNamedAfter) {
  const auto called = call({"bench", "--scenario", "U32,A32,C16,Q100", "--threads", "2", "--names",
                            "7", "--waiters", "5", "--seconds", "0.1", "--json"});
  ASSERT_EQ(called.status, 0) << called.err;
  const bj::value report = bj::parse(called.out);
  const bj::array& rows = report.at("scenarios").as_array();
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_GE(rows[0].at("p99_us").as_double(), rows[0].at("p50_us").as_double());
  EXPECT_GT(rows[1].at("cycles_per_s").as_double(), 0);
  EXPECT_LE(rows[2].at("largest_share").as_double(), 2);  // of two threads
  EXPECT_GT(rows[3].at("hand_overs_per_s").as_double(), 0);
  EXPECT_TRUE(is_idle());
}

TEST_F(Bench, PassesTheLockBetweenProcessesInOrder) {
  const bj::array rows = measured("H4");
  EXPECT_GT(rows[0].at("hand_overs").as_double(), 0);
  EXPECT_EQ(rows[0].at("overtakes").as_double(), 0);
  EXPECT_EQ(rows[0].at("overlaps").as_double(), 0);
  EXPECT_TRUE(is_idle());
}

TEST_F(Bench, WakesASleepingProcess) {
  const bj::array rows = measured("P2");
  EXPECT_GT(rows[0].at("p50_us").as_double(), 0);
  EXPECT_GE(rows[0].at("p99_us").as_double(), rows[0].at("p50_us").as_double());
  EXPECT_TRUE(is_idle());
}

TEST_F(Bench, WatchesThoseWhoWait) {
  for (const bj::value& row : measured("W100,W1000n")) {
    EXPECT_GE(row.at("cpu_percent").as_double(), 0);
    EXPECT_GT(row.at("descriptors").as_double(), 0);
  }
  EXPECT_TRUE(is_idle());
}

TEST_F(Bench, SkipsWhatAMemoryStoreCannotShow) {
  const auto called =
      call({"bench", "--url", "memory:", "--scenario", "U1,P2", "--seconds", "0.1"});
  EXPECT_EQ(called.status, 0) << called.err;
  EXPECT_NE(called.out.find("lives in one process"), std::string::npos) << called.out;
}

TEST_F(Bench, RefusesWhatItDoesNotKnow) {
  const auto unknown = call({"bench", "--scenario", "U1,U2"});
  EXPECT_EQ(unknown.status, 64);
  EXPECT_NE(unknown.err.find("'U2'"), std::string::npos) << unknown.err;
  EXPECT_NE(unknown.err.find("L100k"), std::string::npos) << unknown.err;
  EXPECT_EQ(call({"bench", "--scenario", ""}).status, 64);
  EXPECT_EQ(call({"bench", "--seconds", "0"}).status, 64);
  EXPECT_EQ(call({"bench", "--seconds", "soon"}).status, 64);
  EXPECT_EQ(call({"bench", "--names", "0"}).status, 64);
  EXPECT_EQ(call({"bench", "--threads", "many"}).status, 64);
  EXPECT_EQ(call({"bench", "--worker"}).status, 64);
}

}  // namespace
}  // namespace holdfast::test
