// Mistakes in the words: exit status 64, a message that says what to write
// instead, and a store that was never touched.

#include "apps/command.h"

namespace holdfast::test {
namespace {

struct Mistake {
  const char* title;
  Words words;
  std::string message;  // all of standard error must begin with it
};

class Usage : public CommandTest, public testing::WithParamInterface<Mistake> {};

TEST_P(Usage, MistakesAreExplainedAndTouchNothing) {
  const auto called = call(GetParam().words);
  EXPECT_EQ(called.status, 64);
  EXPECT_EQ(called.out, "");
  EXPECT_EQ(called.err.find("holdfast: " + GetParam().message), 0U) << called.err;
  EXPECT_EQ(std::count(called.err.begin(), called.err.end(), '\n'), 1) << called.err;
  EXPECT_FALSE(exists("locks.db"));
}

INSTANTIATE_TEST_SUITE_P(
    All, Usage,
    testing::Values(
        Mistake{"UnknownCommand", {"rnu", "x"}, "unknown command 'rnu'; did you mean 'run'?"},
        Mistake{"StrangeCommand",
                {"frobnicate"},
                "unknown command 'frobnicate'; see 'holdfast --help'"},
        Mistake{"UnknownOption",
                {"run", "x", "--tll", "5s", "--", "true"},
                "unknown option '--tll'; did you mean '--ttl'?"},
        Mistake{"UnknownFlag", {"ls", "--josn"}, "unknown option '--josn'; did you mean '--json'?"},
        Mistake{"NoName", {"run"}, "NAME is missing; write: holdfast run NAME"},
        Mistake{"EmptyName", {"run", "", "--", "true"}, "the name is empty"},
        Mistake{"LongName",
                {"run", std::string(256, 'n'), "--", "true"},
                "the name has 256 bytes; at most 255 are allowed"},
        Mistake{"LongNameToShow", {"show", std::string(256, 'n')}, "the name has 256 bytes"},
        Mistake{
            "NoCommand", {"run", "x"}, "there is no command to run; write: holdfast run NAME --"},
        Mistake{"NoDashes",
                {"run", "x", "make", "all"},
                "unexpected 'make'; write -- before the command"},
        Mistake{"TtlWithoutUnit",
                {"run", "x", "--ttl", "5", "--", "true"},
                "--ttl: a duration needs a unit, e.g. 5s"},
        Mistake{"TtlZero",
                {"run", "x", "--ttl", "0", "--", "true"},
                "--ttl must lie between 20ms and 7d"},
        Mistake{"TtlNegative",
                {"run", "x", "--ttl", "-5s", "--", "true"},
                "--ttl: a duration cannot be negative"},
        Mistake{
            "TtlAbsurd", {"run", "x", "--ttl", "1000d", "--", "true"}, "--ttl must lie between"},
        Mistake{"TtlEndless",
                {"run", "x", "--ttl", "99999999999999999999d", "--", "true"},
                "--ttl: too long"},
        Mistake{"TtlMissing", {"run", "x", "--ttl"}, "--ttl needs a value"},
        Mistake{"WaitWithoutUnit",
                {"run", "x", "--wait", "5", "--", "true"},
                "--wait: a duration needs a unit, e.g. 5s; or write 0 or forever"},
        Mistake{"PermitsZero",
                {"run", "x", "--permits", "0/3", "--", "true"},
                "--permits: permits start at 1; write e.g. 1/3"},
        Mistake{"PermitsOfZero",
                {"run", "x", "--permits", "1/0", "--", "true"},
                "--permits: permits start at 1"},
        Mistake{"PermitsTooMany",
                {"run", "x", "--permits", "4/3", "--", "true"},
                "--permits: 4 of 3 permits can never be had"},
        Mistake{"PermitsWithoutTotal",
                {"run", "x", "--permits", "2", "--", "true"},
                "--permits: write K/N"},
        Mistake{"PermitsNegative",
                {"run", "x", "--permits", "-1/3", "--", "true"},
                "--permits: write K/N"},
        Mistake{"PermitsAndShared",
                {"run", "x", "--shared", "--permits", "1/3", "--", "true"},
                "--shared and --permits exclude each other"},
        Mistake{"WaitAndNoWait",
                {"run", "x", "-n", "--wait", "3s", "--", "true"},
                "--no-wait and --wait contradict each other"},
        Mistake{
            "OnLost", {"run", "x", "--on-lost", "panic", "--", "true"}, "--on-lost: write term"},
        Mistake{"Grace",
                {"run", "x", "--grace", "20s", "--", "true"},
                "--grace can be at most half the ttl: 15s"},
        Mistake{"MaxHold",
                {"run", "x", "--max-hold", "0", "--", "true"},
                "--max-hold must be longer than 0"},
        Mistake{"AlsoTheSame",
                {"run", "x", "--also", "y", "--also", "x", "--", "true"},
                "--also names a lock that is named already"},
        Mistake{"AlsoEmpty", {"run", "x", "--also", "", "--", "true"}, "the name is empty"},
        Mistake{"FollowAndWait",
                {"run", "x", "--follow", "--wait", "3s", "--", "true"},
                "--follow waits for ever"},
        Mistake{"RestWithoutFollow",
                {"run", "x", "--rest", "3s", "--", "true"},
                "--rest needs --follow"},
        Mistake{
            "Interval", {"watch", "--interval", "0"}, "--interval must lie between 10ms and 1h"},
        Mistake{"TooMany", {"show", "x", "y"}, "unexpected 'y'; see 'holdfast show --help'"},
        Mistake{"ReleaseWithoutForce", {"release", "x"}, "a lock is released by its holder"},
        Mistake{"ControlCharacters", {"ls", "a", "b\x1b[2J"}, "unexpected 'b\\x1b[2J'"}),
    [](const auto& chosen) { return chosen.param.title; });

class Help : public CommandTest {};

TEST_F(Help, TeachesWithExamples) {
  for (const char* command :
       {"run", "ls", "show", "watch", "release", "init", "doctor", "bench", "torture"}) {
    const auto called = call({command, "--help"});
    EXPECT_EQ(called.status, 0);
    EXPECT_NE(called.out.find(std::string{"Usage: holdfast "} + command), std::string::npos);
    EXPECT_NE(called.out.find("Examples:\n  holdfast "), std::string::npos) << command;
    EXPECT_NE(call({"--help"}).out.find(std::string{"\n  "} + command), std::string::npos);
  }
  EXPECT_FALSE(exists("locks.db"));
}

TEST_F(Help, ComesWithoutAnyWords) {
  const auto called = call({});
  EXPECT_EQ(called.status, 64);
  EXPECT_NE(called.err.find("Usage: holdfast COMMAND"), std::string::npos);
}

TEST_F(Help, KnowsTheVersion) {
  EXPECT_EQ(call({"--version"}).out, call({"version"}).out);
  EXPECT_EQ(call({"version", "--json"}).out.find("{\"version\":\""), 0U);
}

TEST_F(Help, OptionsOfAllCommandsMayStandInFront) {
  EXPECT_EQ(call({"--json", "--url", url(), "ls"}).out, "[]\n");
}

TEST_F(Help, ANameMayBeAWordOfOurs) {
  EXPECT_EQ(call(run("ls", {}, "echo $HOLDFAST_NAME")).out, "ls\n");
  EXPECT_EQ(call(run("[a,b]", {}, "echo $HOLDFAST_NAME")).out, "[a,b]\n");
  EXPECT_EQ(call({"show", "--", "-x"}).out, "-x: free\n");
}

}  // namespace
}  // namespace holdfast::test
