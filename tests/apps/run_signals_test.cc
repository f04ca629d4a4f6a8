// Signals reach the command, or end the wait for the lock.

#include <csignal>

#include "apps/command.h"

namespace holdfast::test {
namespace {

struct Case {
  const char* name;
  int number;
};

// For use between double quotes of a shell.
std::string escaped(const std::string& script) {
  std::string text;
  for (const char c : script) {
    text += (c == '"' || c == '$') ? std::string{"\\"} + c : std::string{c};
  }
  return text;
}

class ForwardedSignal : public CommandTest, public testing::WithParamInterface<Case> {};

TEST_P(ForwardedSignal, ReachesTheCommandAndEverythingItStarted) {
  // The inner shell is no background job: those ignore SIGINT.
  const std::string trap =
      std::string{"trap 'echo told >>\"$DIR/$WHO\"; exit 9' "} + GetParam().name;
  const std::string script = "WHO=outer; " + trap + "; WHO=inner sh -c \"" + escaped(trap) +
                             "; touch \\\"$DIR/in\\\"; while :; do sleep 0.01; done\"; exit 1";
  Process process = start(run("x", {}, script));
  ASSERT_TRUE(appears("in"));
  process.signal(GetParam().number);
  EXPECT_EQ(process.wait(), 9);
  EXPECT_TRUE(appears("outer"));
  EXPECT_TRUE(appears("inner"));
  EXPECT_TRUE(is_idle());
}

TEST_P(ForwardedSignal, EndsTheWaitWithNothingHeld) {
  Process holder = start(run("x", {}, "touch \"$DIR/in\"; exec sleep 60"));
  ASSERT_TRUE(appears("in"));
  Process waiter = start(run("x", {}, "touch \"$DIR/never\""));
  ASSERT_TRUE(eventually([&] {
    return call({"show", "x"}).out.find("1 waits") != std::string::npos;
  }));
  waiter.signal(GetParam().number);
  EXPECT_EQ(waiter.wait(), 128 + GetParam().number);
  EXPECT_EQ(call({"show", "x"}).out.find("wait"), std::string::npos);
  holder.signal(SIGTERM);
  EXPECT_EQ(holder.wait(), 128 + SIGTERM);
  EXPECT_TRUE(is_idle());
  EXPECT_FALSE(exists("never"));
}

INSTANTIATE_TEST_SUITE_P(All, ForwardedSignal,
                         testing::Values(Case{"TERM", SIGTERM}, Case{"INT", SIGINT},
                                         Case{"HUP", SIGHUP}, Case{"QUIT", SIGQUIT},
                                         Case{"USR1", SIGUSR1}, Case{"USR2", SIGUSR2}),
                         [](const auto& chosen) { return chosen.param.name; });

class RunSignals : public CommandTest {};

TEST_F(RunSignals, ACommandThatIgnoresASignalRunsOnUnderTheLock) {
  Process process = start(run("x", {},
                              "trap 'touch \"$DIR/told\"' TERM; touch \"$DIR/in\"; while [ ! -e "
                              "\"$DIR/go\" ]; do sleep 0.01; done; exit 4"));
  ASSERT_TRUE(appears("in"));
  process.signal(SIGTERM);
  ASSERT_TRUE(appears("told"));
  EXPECT_TRUE(is_held("x"));
  touch("go");
  EXPECT_EQ(process.wait(), 4);
}

TEST_F(RunSignals, ASignalThatWasIgnoredFromTheStartStaysIgnored) {
  Process process =
      Process::start({"sh", "-c",
                      "trap '' HUP; exec \"$HOLDFAST\" run x -- sh -c 'touch \"$DIR/in\"; while [ "
                      "! -e \"$DIR/go\" ]; do sleep 0.01; done; kill -HUP $$; exit 5'"},
                     environment());
  ASSERT_TRUE(appears("in"));
  process.signal(SIGHUP);
  touch("go");
  EXPECT_EQ(process.wait(), 5);
}

TEST_F(RunSignals, AStoppedCommandKeepsItsLockLongRun) {
  Process process = start(run(
      "x", {"--ttl", "2s"},
      "echo $$ >\"$DIR/pid\"; touch \"$DIR/in\"; while [ ! -e \"$DIR/go\" ]; do sleep 0.01; done"));
  ASSERT_TRUE(appears("in"));
  const pid_t group = std::stoi(contents("pid"));
  kill(-group, SIGSTOP);
  // Longer than the ttl: only renewal keeps it.
  EXPECT_TRUE(throughout(std::chrono::milliseconds{3000}, [&] { return is_held("x"); }));
  kill(-group, SIGCONT);
  touch("go");
  EXPECT_EQ(process.wait(), 0);
}

TEST_F(RunSignals, StopAndContinueArePassedOn) {
  Process process = start(run("x", {}, "echo $$ >\"$DIR/pid\"; touch \"$DIR/in\"; exec sleep 60"));
  ASSERT_TRUE(appears("in"));
  const std::string pid = lines("pid").at(0);
  const auto is_stopped = [&] {
    std::ifstream stat{"/proc/" + pid + "/stat"};
    std::string number;
    std::string name;
    std::string letter;
    stat >> number >> name >> letter;
    return letter == "T";
  };
  process.signal(SIGTSTP);
  EXPECT_TRUE(eventually([&] { return is_stopped(); }));
  process.signal(SIGCONT);
  EXPECT_TRUE(eventually([&] { return !is_stopped(); }));
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait(), 128 + SIGTERM);
}

}  // namespace
}  // namespace holdfast::test
