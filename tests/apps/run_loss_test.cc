// A lost lock ends the work before anybody else can have the lock, whatever
// happened to the holder.

#include <csignal>

#include "apps/command.h"
#include "support/given_time.h"

namespace holdfast::test {
namespace {

// Two processes that do not listen to SIGTERM, the first one the other's
// parent. Their ids stand in $DIR/pids once both run.
constexpr const char* kStubborn =
    "trap '' TERM; sh -c 'trap \"\" TERM; echo $$ >>\"$DIR/pids\"; while :; do sleep 0.01; done' & "
    "echo $$ >>\"$DIR/pids\"; while :; do sleep 0.01; done";

// For the next holder: notes which of them still runs. A dead process that
// nobody has reaped yet does not.
constexpr const char* kCount =
    "for p in $(cat \"$DIR/pids\"); do "
    "  case $(ps -o stat= -p $p) in ''|Z*) ;; *) echo $p >>\"$DIR/alive\";; esac; "
    "done; touch \"$DIR/next\"";

class RunLoss : public CommandTest {
 protected:
  Process start_stubborn(const Words& options) {
    Process process = start(run("x", options, kStubborn));
    EXPECT_TRUE(eventually([&] { return lines("pids").size() == 2; }));
    return process;
  }

  // Waits in the queue already when the lock is lost.
  Process start_next() {
    Process process = start(run("x", {}, kCount));
    EXPECT_TRUE(eventually([&] {
      return call({"show", "x"}).out.find("1 waits") != std::string::npos;
    }));
    return process;
  }

  void expect_clean_hand_over(Process& next) {
    EXPECT_EQ(next.wait(), 0);
    EXPECT_TRUE(exists("next"));
    EXPECT_EQ(contents("alive"), "") << "still at work under somebody else's lock";
  }
};

// Waits for more than one ttl.
class RunLossLongRun : public RunLoss {};

TEST_F(RunLoss, ByForceEndsTheWholeGroupFirst) {
  Process holder = start_stubborn({"--ttl", "3s"});
  Process next = start_next();
  EXPECT_EQ(call({"release", "x", "--force"}).status, 0);
  expect_clean_hand_over(next);
  EXPECT_EQ(holder.wait(), 76);
  EXPECT_NE(holder.err().find("holdfast: lost the lock 'x'"), std::string::npos) << holder.err();
}

TEST_F(RunLoss, ByForceLetsAnObedientCommandCleanUpAndFreesTheLockAtOnce) {
  Process holder = start(run("x", {"--ttl", "1h"},
                             "trap 'touch \"$DIR/cleaned\"; exit 0' TERM; touch \"$DIR/in\"; "
                             "while :; do sleep 0.01; done"));
  ASSERT_TRUE(appears("in"));
  Process next = start(run("x", {}, "true"));
  EXPECT_EQ(call({"release", "x", "--force"}).status, 0);
  EXPECT_EQ(holder.wait(), 76);
  EXPECT_TRUE(exists("cleaned"));
  EXPECT_EQ(next.wait(), 0);
}

TEST_F(RunLoss, ByKillOfTheHolderEndsTheWholeGroupFirst) {
  Process holder = start_stubborn({"--ttl", "3s"});
  Process next = start_next();
  holder.signal(SIGKILL);
  expect_clean_hand_over(next);
}

TEST_F(RunLoss, ByPauseOfTheHolderEndsTheWholeGroupFirst) {
  Process holder = start_stubborn({"--ttl", "3s"});
  Process next = start_next();
  holder.signal(SIGSTOP);
  expect_clean_hand_over(next);
  holder.signal(SIGCONT);
  EXPECT_EQ(holder.wait(), 76);
}

TEST_F(RunLossLongRun, AtTheEndOfMaxHoldEndsTheWholeGroupFirst) {
  Process holder = start_stubborn({"--ttl", "2s", "--max-hold", "500ms"});
  Process next = start(run("x", {}, kCount));
  expect_clean_hand_over(next);
  EXPECT_EQ(holder.wait(), 76);
}

TEST_F(RunLossLongRun, WithoutRenewalComesAfterOneTtl) {
  Process holder = start_stubborn({"--ttl", "2s", "--no-renew"});
  Process next = start(run("x", {}, kCount));
  expect_clean_hand_over(next);
  EXPECT_EQ(holder.wait(), 76);
}

TEST_F(RunLossLongRun, WithRenewalDoesNotComeByItself) {
  given_time([&](int scale) {
    Process holder = start(run("x", {"--ttl", std::to_string(2 * scale) + "s"},
                               "sleep " + std::to_string(4 * scale) + "; exit 7"));
    EXPECT_EQ(holder.wait(2 * kPatience + std::chrono::seconds{4 * scale}), 7) << holder.err();
  });
}

TEST_F(RunLoss, MayBeIgnored) {
  Process holder =
      start(run("x", {"--ttl", "1h", "--on-lost", "ignore"},
                "touch \"$DIR/in\"; while [ ! -e \"$DIR/go\" ]; do sleep 0.01; done; exit 6"));
  ASSERT_TRUE(appears("in"));
  EXPECT_EQ(call({"release", "x", "--force", "--now"}).status, 0);
  EXPECT_TRUE(eventually([&] { return holder.err().find("runs on") != std::string::npos; }));
  EXPECT_EQ(call(run("x", {"--wait", "0"}, "true")).status, 0);
  touch("go");
  EXPECT_EQ(holder.wait(), 6);
}

TEST_F(RunLossLongRun, IsNotForgottenWhenTheCommandEndsWellMeanwhile) {
  Process holder = start(run(
      "x", {"--ttl", "3s"},
      "touch \"$DIR/in\"; while [ ! -e \"$DIR/go\" ]; do sleep 0.01; done; touch \"$DIR/out\""));
  ASSERT_TRUE(appears("in"));
  holder.signal(SIGSTOP);
  touch("go");
  EXPECT_TRUE(appears("out"));
  EXPECT_EQ(call(run("x", {}, "true")).status, 0);
  holder.signal(SIGCONT);
  EXPECT_EQ(holder.wait(), 76);
}

TEST_F(RunLoss, OfAnotherHolderIsNotOurs) {
  Process first =
      start(run("x", {"--ttl", "1h"}, "touch \"$DIR/first\"; while :; do sleep 0.01; done"));
  ASSERT_TRUE(appears("first"));
  EXPECT_EQ(call({"release", "x", "--force", "--now"}).status, 0);
  Process second =
      start(run("x", {"--ttl", "1h"},
                "touch \"$DIR/second\"; while [ ! -e \"$DIR/go\" ]; do sleep 0.01; done"));
  ASSERT_TRUE(appears("second"));
  EXPECT_EQ(first.wait(), 76);  // and its release must not touch the second's
  EXPECT_TRUE(is_held("x"));
  touch("go");
  EXPECT_EQ(second.wait(), 0);
}

}  // namespace
}  // namespace holdfast::test
