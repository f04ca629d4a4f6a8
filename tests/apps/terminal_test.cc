// `run` in front of a person: the command gets the terminal, and gives it back.

#include <csignal>

#include "apps/command.h"

namespace holdfast::test {
namespace {

class Terminal : public CommandTest {
 protected:
  Process start_there(Words words) {
    words.insert(words.begin(), kProgram);
    return Process::start_on_terminal(words, environment());
  }
};

TEST_F(Terminal, TheCommandMayReadIt) {
  Process process = start_there(run("x", {}, "read -r line; echo \"got $line\""));
  process.type("hello\n");
  EXPECT_EQ(process.wait(), 0);
  EXPECT_NE(process.out().find("got hello"), std::string::npos) << process.out();
}

TEST_F(Terminal, TheCommandMayReadItThoughItsOutputGoesElsewhere) {
  Process process = Process::start_on_terminal(
      {"sh", "-c", "\"$HOLDFAST\" run x -- sh -c 'read -r line; echo \"got $line\"' | cat"},
      environment());
  process.type("hello\n");
  EXPECT_EQ(process.wait(), 0);
  EXPECT_NE(process.out().find("got hello"), std::string::npos) << process.out();
}

TEST_F(Terminal, CtrlCEndsTheCommandAndFreesTheLock) {
  Process process = start_there(run("x", {}, "touch \"$DIR/in\"; while :; do sleep 0.01; done"));
  ASSERT_TRUE(appears("in"));
  process.type("\x03");
  EXPECT_EQ(process.wait(), 128 + SIGINT);
  EXPECT_TRUE(is_idle());
}

TEST_F(Terminal, CtrlCEndsTheWait) {
  Process holder = start(run("x", {"--label", "alice"}, "touch \"$DIR/in\"; exec sleep 60"));
  ASSERT_TRUE(appears("in"));
  Process waiter = start_there(run("x", {}, "true"));
  EXPECT_TRUE(eventually([&] {
    return waiter.out().find("waiting for 'x', held by alice@") != std::string::npos;
  })) << waiter.out();
  waiter.type("\x03");
  EXPECT_EQ(waiter.wait(), 128 + SIGINT);
}

// Under a shell with job control, as people use it.
TEST_F(Terminal, CtrlZStopsTheJobAndFgContinuesIt) {
  Process shell = Process::start_on_terminal({"bash", "--norc", "--noprofile", "--noediting", "-i"},
                                             environment());
  shell.type("\"$HOLDFAST\" run x -- sh -c 'touch \"$DIR/in\"; read -r a; echo \"got <$a>\"'\n");
  ASSERT_TRUE(appears("in"));
  shell.type("\x1a");
  EXPECT_TRUE(eventually([&] { return shell.out().find("Stopped") != std::string::npos; }))
      << shell.out();
  shell.type("fg\n");
  // The shell repeats the command when it is in front again.
  EXPECT_TRUE(eventually([&] {
    const std::string screen = shell.out();
    return screen.find("run x", screen.find("Stopped") + 60) != std::string::npos;
  })) << shell.out();
  shell.type("hello\n");
  EXPECT_TRUE(eventually([&] { return shell.out().find("got <hello>") != std::string::npos; }))
      << shell.out();
  shell.type("exit 5\n");
  EXPECT_EQ(shell.wait(), 5);
}

}  // namespace
}  // namespace holdfast::test
