// `holdfast run --follow`: one of many runs the command, for ever.

#include <csignal>

#include "apps/command.h"

namespace holdfast::test {
namespace {

class RunFollow : public CommandTest {
 protected:
  static Words follow(const std::string& script, const Words& more = {}) {
    Words options{"--follow", "--rest", "20ms"};
    options.insert(options.end(), more.begin(), more.end());
    return run("x", options, script);
  }
};

TEST_F(RunFollow, RunsTheCommandAgainAfterItsEnd) {
  Process process = start(follow("echo $HOLDFAST_TOKEN >>\"$DIR/turns\"; exit 3"));
  EXPECT_TRUE(eventually([&] { return lines("turns").size() >= 3; }));
  process.signal(SIGTERM);
  EXPECT_TRUE(process.wait().has_value());
  EXPECT_TRUE(comes_to_rest());
  const auto turns = lines("turns");
  EXPECT_LT(std::stoull(turns[0]), std::stoull(turns[1]));
}

TEST_F(RunFollow, ASignalEndsItWithTheCommandsStatus) {
  Process process =
      start(follow("trap 'exit 7' TERM; touch \"$DIR/in\"; while :; do sleep 0.01; done"));
  ASSERT_TRUE(appears("in"));
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait(), 7);
  EXPECT_TRUE(is_idle());
}

TEST_F(RunFollow, ASignalEndsTheWaitToo) {
  Process holder = start(run("x", {}, "touch \"$DIR/in\"; exec sleep 60"));
  ASSERT_TRUE(appears("in"));
  Process process = start(follow("touch \"$DIR/never\""));
  ASSERT_TRUE(eventually([&] {
    return call({"show", "x"}).out.find("1 waits") != std::string::npos;
  }));
  process.signal(SIGINT);
  EXPECT_EQ(process.wait(), 128 + SIGINT);
  EXPECT_FALSE(exists("never"));
}

TEST_F(RunFollow, StandsAgainAfterALoss) {
  Process process = start(follow("echo $$ >>\"$DIR/turns\"; exec sleep 60"));
  ASSERT_TRUE(eventually([&] { return lines("turns").size() == 1; }));
  EXPECT_EQ(call({"release", "x", "--force"}).status, 0);
  EXPECT_TRUE(eventually([&] { return lines("turns").size() == 2; }));
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait(), 128 + SIGTERM);
}

TEST_F(RunFollow, AnotherTakesOver) {
  Process first = start(follow("touch \"$DIR/first\"; exec sleep 60"));
  ASSERT_TRUE(appears("first"));
  Process second = start(follow("touch \"$DIR/second\"; exec sleep 60"));
  ASSERT_TRUE(eventually([&] {
    return call({"show", "x"}).out.find("1 waits") != std::string::npos;
  }));
  EXPECT_FALSE(exists("second"));
  first.signal(SIGTERM);
  EXPECT_TRUE(first.wait().has_value());
  EXPECT_TRUE(appears("second"));
  second.signal(SIGTERM);
  EXPECT_TRUE(second.wait().has_value());
}

}  // namespace
}  // namespace holdfast::test
