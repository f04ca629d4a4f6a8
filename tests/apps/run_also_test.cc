// `holdfast run NAME --also NAME`: several locks, all or none.

#include <csignal>

#include "apps/command.h"

namespace holdfast::test {
namespace {

class RunAlso : public CommandTest {};

TEST_F(RunAlso, HoldsAllAndTellsTheirTokens) {
  const auto called = call(run("b", {"--also", "a", "--also", "[c,d]"},
                               "echo $HOLDFAST_NAME $HOLDFAST_NAME_2 $HOLDFAST_NAME_3; "
                               "[ $HOLDFAST_TOKEN -gt 0 ] && [ $HOLDFAST_TOKEN_2 -gt 0 ] && "
                               "[ $HOLDFAST_TOKEN_3 -gt 0 ]; \"$HOLDFAST\" ls --names"));
  EXPECT_EQ(called.status, 0) << called.err;
  EXPECT_EQ(called.out, "b a [c,d]\n[c,d]\na\nb\n");
  EXPECT_TRUE(is_idle());
}

TEST_F(RunAlso, ACommandInsideIsToldOfItsOwnLocksAlone) {
  const auto called = call(run("a", {"--also", "b"},
                               "export HOLDFAST_NAMES=kept; \"$HOLDFAST\" run c -- sh -c "
                               "'env | grep -c ^HOLDFAST_NAME_; "
                               "env | grep -c ^HOLDFAST_TOKEN_; echo $HOLDFAST_NAME "
                               "$HOLDFAST_NAMES'"));
  EXPECT_EQ(called.out, "0\n0\nc kept\n") << called.err;
}

TEST_F(RunAlso, OneThatIsTakenMeansNoneIsHeld) {
  Process holder = start(run("a", {}, "touch \"$DIR/in\"; exec sleep 60"));
  ASSERT_TRUE(appears("in"));
  const auto called = call(run("b", {"--also", "a", "-n"}, "touch \"$DIR/never\""));
  EXPECT_EQ(called.status, 75);
  EXPECT_NE(called.err.find("'a' is busy, held by"), std::string::npos) << called.err;
  EXPECT_FALSE(exists("never"));
  EXPECT_FALSE(is_held("b"));
}

TEST_F(RunAlso, ASignalEndsTheWait) {
  Process holder = start(run("b", {}, "touch \"$DIR/in\"; exec sleep 60"));
  ASSERT_TRUE(appears("in"));
  Process waiter = start(run("a", {"--also", "b"}, "touch \"$DIR/never\""));
  ASSERT_TRUE(eventually([&] {
    return call({"show", "b"}).out.find("1 waits") != std::string::npos;
  }));
  waiter.signal(SIGTERM);
  EXPECT_EQ(waiter.wait(), 128 + SIGTERM);
  EXPECT_TRUE(eventually([&] { return !is_held("a"); }));
}

TEST_F(RunAlso, TheLossOfOneEndsTheCommand) {
  Process holder = start(run("a", {"--also", "b"}, "touch \"$DIR/in\"; exec sleep 60"));
  ASSERT_TRUE(appears("in"));
  EXPECT_EQ(call({"release", "b", "--force"}).status, 0);
  EXPECT_EQ(holder.wait(), 76);
  EXPECT_NE(holder.err().find("lost the lock 'b'"), std::string::npos) << holder.err();
  EXPECT_TRUE(comes_to_rest());
}

}  // namespace
}  // namespace holdfast::test
