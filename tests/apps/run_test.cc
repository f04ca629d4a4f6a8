// `holdfast run`: what the command sees, and what its caller is told.

#include "apps/command.h"

namespace holdfast::test {
namespace {

class Run : public CommandTest {};

TEST_F(Run, ExitsAsTheCommandDoes) {
  EXPECT_EQ(call(run("x", {}, "exit 0")).status, 0);
  EXPECT_EQ(call(run("x", {}, "exit 3")).status, 3);
  EXPECT_EQ(call(run("x", {}, "kill -KILL $$")).status, 128 + SIGKILL);
  EXPECT_TRUE(is_idle());
}

TEST_F(Run, TellsTheCommandItsLockAndToken) {
  const auto first = call(run("seat:42", {}, "echo \"$HOLDFAST_NAME\"; echo $HOLDFAST_TOKEN"));
  std::istringstream said{first.out};
  std::string name;
  std::uint64_t token = 0;
  said >> name >> token;
  EXPECT_EQ(name, "seat:42");
  const auto second = call(run("seat:42", {}, "echo $HOLDFAST_TOKEN"));
  EXPECT_GT(std::stoull(second.out), token);
}

TEST_F(Run, PassesOutputAndArgumentsThroughUntouched) {
  const auto called = call({"run", "x", "--", "printf", "%s|", "--ttl", "a b", "", "--", "[c,d]"});
  EXPECT_EQ(called.status, 0);
  EXPECT_EQ(called.out, "--ttl|a b||--|[c,d]|");
  EXPECT_EQ(called.err, "");
}

TEST_F(Run, HoldsTheLockWhileTheCommandRunsAndNotAfterwards) {
  const auto called = call(run("x", {}, "\"$HOLDFAST\" run x --wait 0 -- true; echo $?"));
  EXPECT_EQ(called.out, "75\n");
  EXPECT_EQ(call(run("x", {"--wait", "0"}, "true")).status, 0);
}

TEST_F(Run, SaysWhoIsInTheWay) {
  Process holder = start(run("x", {"--label", "night shift"}, "touch \"$DIR/in\"; exec sleep 60"));
  ASSERT_TRUE(appears("in"));
  const auto called = call(run("x", {"-n"}, "true"));
  EXPECT_EQ(called.status, 75);
  EXPECT_NE(called.err.find("holdfast: 'x' is busy, held by night shift@"), std::string::npos)
      << called.err;
}

TEST_F(Run, GivesUpWhenTheTimeIsOver) {
  Process holder = start(run("x", {}, "touch \"$DIR/in\"; exec sleep 60"));
  ASSERT_TRUE(appears("in"));
  const auto called = call(run("x", {"--wait", "100ms"}, "touch \"$DIR/never\""));
  EXPECT_EQ(called.status, 75);
  EXPECT_NE(called.err.find("did not come free in time"), std::string::npos) << called.err;
  EXPECT_FALSE(exists("never"));
}

TEST_F(Run, WaitsForEverByDefault) {
  Process holder =
      start(run("x", {}, "touch \"$DIR/in\"; while [ ! -e \"$DIR/go\" ]; do sleep 0.01; done"));
  ASSERT_TRUE(appears("in"));
  Process waiter = start(run("x", {}, "true"));
  ASSERT_TRUE(eventually([&] {
    return call({"show", "x"}).out.find("1 waits") != std::string::npos;
  }));
  EXPECT_TRUE(waiter.is_running());
  touch("go");
  EXPECT_EQ(waiter.wait(), 0);
  EXPECT_EQ(holder.wait(), 0);
}

TEST_F(Run, FindsNoCommandBeforeItLocksAnything) {
  const auto missing = call({"run", "x", "--", "no-such-command"});
  EXPECT_EQ(missing.status, 127);
  EXPECT_EQ(missing.err,
            "holdfast: 'no-such-command' was not found; check its spelling and the PATH\n");
  EXPECT_EQ(call({"run", "x", "--", "/no/such/file"}).status, 127);
  EXPECT_EQ(call({"run", "x", "--", "/"}).status, 126);
  touch("plain");
  const auto plain = call({"run", "x", "--", file("plain")});
  EXPECT_EQ(plain.status, 126);
  EXPECT_NE(plain.err.find("is not executable"), std::string::npos) << plain.err;
  EXPECT_FALSE(exists("locks.db"));
}

TEST_F(Run, ReleasesWhenTheCommandTurnsOutNotToRun) {
  // Executable to look at, but its interpreter is not there.
  std::ofstream{file("script")} << "#!/no/such/interpreter\n";
  std::filesystem::permissions(file("script"), std::filesystem::perms::owner_all);
  EXPECT_EQ(call({"run", "x", "--", file("script")}).status, 127);
  EXPECT_TRUE(is_idle());
}

TEST_F(Run, RunsScriptsWithoutAFirstLineAsShellsDo) {
  std::ofstream{file("script")} << "echo \"$1 $HOLDFAST_NAME\"\n";
  std::filesystem::permissions(file("script"), std::filesystem::perms::owner_all);
  EXPECT_EQ(call({"run", "x", "--", file("script"), "hello"}).out, "hello x\n");
}

TEST_F(Run, GivesTheCommandAProcessGroupAndNoDescriptorsOfOurs) {
  const std::string script = "ls /proc/$$/fd";
  const auto called = call(run("x", {}, "ps -o pgid= -p $$ | tr -d ' '; echo $$; " + script));
  std::istringstream said{called.out};
  std::string group;
  std::string pid;
  said >> group >> pid >> std::ws;
  EXPECT_EQ(group, pid);
  const std::string descriptors{std::istreambuf_iterator<char>{said}, {}};
  Process without = Process::start({"sh", "-c", script});
  EXPECT_EQ(without.wait(), 0);
  EXPECT_EQ(descriptors, without.out());
}

TEST_F(Run, LeavesNoTraceInHowTheCommandTakesSignals) {
  const std::string script = "grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status";
  Process without = Process::start({"sh", "-c", script});
  EXPECT_EQ(without.wait(), 0);
  EXPECT_EQ(call(run("x", {}, script)).out, without.out());
}

TEST_F(Run, WithJsonTellsErrorsInJson) {
  Process holder = start(run("x", {}, "touch \"$DIR/in\"; exec sleep 60"));
  ASSERT_TRUE(appears("in"));
  const auto called = call(run("x", {"--wait", "0", "--json"}, "true"));
  EXPECT_EQ(called.status, 75);
  EXPECT_EQ(called.out, "");
  EXPECT_EQ(called.err.find("{\"error\":\"busy\",\"text\":\"'x' is busy"), 0U) << called.err;
}

TEST_F(Run, NeedsNoStandardInputOrOutput) {
  Process process = Process::start(
      {"sh", "-c",
       "exec \"$HOLDFAST\" run x -- sh -c 'echo \"$HOLDFAST_NAME\" >\"$DIR/out\"' <&- >&- 2>&-"},
      environment());
  EXPECT_EQ(process.wait(), 0);
  EXPECT_EQ(contents("out"), "x\n");
}

TEST_F(Run, UsesAPrivateDirectoryWhenNoStoreIsNamed) {
  Process::Environment own = environment();
  own["HOLDFAST_URL"] = "";
  own["XDG_STATE_HOME"] = file("state 100%");
  Process process = Process::start({kProgram, "run", "x", "--", "true"}, own);
  EXPECT_EQ(process.wait(), 0) << process.err();
  const auto directory = std::filesystem::path{file("state 100%")} / "holdfast";
  EXPECT_TRUE(std::filesystem::exists(directory / "locks.db"));
  EXPECT_EQ(std::filesystem::status(directory).permissions(), std::filesystem::perms::owner_all);
}

}  // namespace
}  // namespace holdfast::test
