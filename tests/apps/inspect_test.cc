// ls, show, watch, release, init and doctor: for people and for programs.

#include <boost/json.hpp>

#include "apps/command.h"

namespace holdfast::test {
namespace {

namespace bj = boost::json;

class Inspect : public CommandTest {
 protected:
  Process hold(const std::string& name, const Words& options = {}) {
    const std::string mark = "held" + std::to_string(++held_);
    Process process = start(run(name, options, "touch \"$DIR/" + mark + "\"; exec sleep 60"));
    EXPECT_TRUE(appears(mark));
    return process;
  }

  bj::value parsed(const Words& words) {
    const auto called = call(words);
    EXPECT_EQ(called.status, 0) << called.err;
    return bj::parse(called.out);
  }

  int held_ = 0;
};

TEST_F(Inspect, AnIdleStoreIsEmpty) {
  EXPECT_EQ(call({"ls"}).out, "");
  EXPECT_EQ(call({"ls", "--json"}).out, "[]\n");
  EXPECT_EQ(call({"show", "x"}).out, "x: free\n");
}

TEST_F(Inspect, LsShowsHolderTokenAndQueue) {
  Process holder = hold("seat:42", {"--label", "alice"});
  Process waiter = start(run("seat:42", {"--label", "bob"}, "true"));
  ASSERT_TRUE(eventually([&] {
    return parsed({"show", "seat:42", "--json"}).at("queue").as_array().size() == 1;
  }));
  const auto lock = parsed({"ls", "--json"}).at(0).as_object();
  EXPECT_EQ(lock.at("name"), "seat:42");
  EXPECT_TRUE(lock.at("permits_total").is_null());
  const auto& who = lock.at("holders").at(0).as_object();
  EXPECT_EQ(who.at("label"), "alice");
  EXPECT_EQ(who.at("pid").to_number<pid_t>(), holder.pid());
  EXPECT_EQ(who.at("mode"), "exclusive");
  EXPECT_EQ(who.at("permits").to_number<int>(), 1);
  EXPECT_GT(who.at("token").to_number<std::uint64_t>(), 0U);
  EXPECT_GE(who.at("held_ms").to_number<std::int64_t>(), 0);
  EXPECT_GT(who.at("expires_in_ms").to_number<std::int64_t>(), 0);
  EXPECT_FALSE(who.at("revoked").as_bool());
  EXPECT_FALSE(who.at("host").as_string().empty());
  const auto& next = lock.at("queue").at(0).as_object();
  EXPECT_EQ(next.at("label"), "bob");
  EXPECT_EQ(next.at("pid").to_number<pid_t>(), waiter.pid());
  EXPECT_GE(next.at("waiting_ms").to_number<std::int64_t>(), 0);
}

TEST_F(Inspect, TextIsAlignedAndPlainWhenItIsNoTerminal) {
  Process first = hold("a", {"--label", "alice"});
  Process second = hold("a-long-name", {"--label", "bob"});
  const auto called = call({"ls"});
  std::istringstream text{called.out};
  std::string header;
  std::string one;
  std::string two;
  std::getline(text, header);
  std::getline(text, one);
  std::getline(text, two);
  EXPECT_EQ(header.find("HOLDER"), one.find("alice@"));
  EXPECT_EQ(header.find("HOLDER"), two.find("bob@"));
  EXPECT_EQ(header.find("NAME"), 0U);
  EXPECT_EQ(called.out.find('\x1b'), std::string::npos);
  EXPECT_EQ(called.out.find('\t'), std::string::npos);
}

TEST_F(Inspect, ColourIsForTerminalsThatWantIt) {
  Process holder = hold("x");
  auto environment_there = environment();
  environment_there["TERM"] = "xterm";
  environment_there["NO_COLOR"] = "";
  Process coloured = Process::start_on_terminal({kProgram, "ls"}, environment_there);
  EXPECT_EQ(coloured.wait(), 0);
  EXPECT_NE(coloured.out().find("\x1b["), std::string::npos) << coloured.out();
  environment_there["NO_COLOR"] = "1";
  Process plain = Process::start_on_terminal({kProgram, "ls"}, environment_there);
  EXPECT_EQ(plain.wait(), 0);
  EXPECT_EQ(plain.out().find("\x1b["), std::string::npos) << plain.out();
}

TEST_F(Inspect, LsTakesAPrefix) {
  Process first = hold("seat:1");
  Process second = hold("room:1");
  EXPECT_EQ(call({"ls", "--names"}).out, "room:1\nseat:1\n");
  EXPECT_EQ(call({"ls", "seat:", "--names"}).out, "seat:1\n");
  EXPECT_EQ(parsed({"ls", "seat:", "--json"}).as_array().size(), 1U);
}

TEST_F(Inspect, ShowTellsPermitsAndAllHolders) {
  Process first = hold("api", {"--permits", "1/3"});
  Process second = hold("api", {"--permits", "2/3"});
  const auto lock = parsed({"show", "api", "--json"}).as_object();
  EXPECT_EQ(lock.at("permits_total").to_number<int>(), 3);
  EXPECT_EQ(lock.at("holders").as_array().size(), 2U);
  EXPECT_NE(call({"show", "api"}).out.find("2/3 permits"), std::string::npos);
  EXPECT_NE(call({"ls"}).out.find("3/3 permits"), std::string::npos);
}

TEST_F(Inspect, NamesAndLabelsCannotSpeakToTheTerminal) {
  const std::string name = "a\x1b[2Jb\n\xff";
  Process holder = hold(name, {"--label", "\x1b]0;title\x07"});
  for (const Words& words : {Words{"ls"}, Words{"show", name}, Words{"ls", "--names"},
                             Words{"release", name, "--force", "--now"}}) {
    const auto called = call(words);
    EXPECT_EQ(called.status, 0) << called.err;
    EXPECT_NE(called.out.find("a\\x1b[2Jb\\n\\xff"), std::string::npos) << called.out;
    EXPECT_EQ(called.out.find('\x1b'), std::string::npos);
    EXPECT_EQ(called.out.find('\x07'), std::string::npos);
  }
}

TEST_F(Inspect, JsonKeepsNamesThatAreNoTextExact) {
  Process holder = hold("a\xff");
  const auto lock = parsed({"ls", "--json"}).at(0).as_object();
  EXPECT_EQ(lock.at("name"), "a\\xff");
  EXPECT_EQ(lock.at("name_hex"), "61ff");
}

TEST_F(Inspect, WatchTellsWhatHappens) {
  Process watch = start({"watch", "seat:", "--json", "--interval", "10ms"});
  Process other = hold("room:1");
  Process holder = hold("seat:1", {"--label", "alice"});
  const auto told = [&](const std::string& event, const std::string& label) {
    return eventually([&] {
      return watch.out().find("\"event\":\"" + event + "\",\"name\":\"seat:1\",\"label\":\"" +
                              label + "\"") != std::string::npos;
    });
  };
  EXPECT_TRUE(told("acquired", "alice"));
  Process waiter = start(run("seat:1", {"--label", "bob"}, "exec sleep 60"));
  EXPECT_TRUE(told("queued", "bob"));
  holder.signal(SIGTERM);
  EXPECT_TRUE(told("released", "alice"));
  EXPECT_TRUE(told("acquired", "bob"));
  watch.signal(SIGINT);
  EXPECT_EQ(watch.wait(), 0);
  std::istringstream output{watch.out()};
  for (std::string line; std::getline(output, line);) {
    const auto event = bj::parse(line).as_object();
    EXPECT_EQ(event.at("name"), "seat:1");
    EXPECT_GT(event.at("at_unix_ms").to_number<std::int64_t>(), 0);
    EXPECT_TRUE(event.contains("token") && event.contains("queue_length"));
  }
}

TEST_F(Inspect, WatchEndsWithItsReader) {
  Process holder = hold("x");
  Process pipe = Process::start(
      {"bash", "-c",
       "\"$HOLDFAST\" watch --interval 10ms | head -1; echo ${PIPESTATUS[0]} >\"$DIR/status\""},
      environment());
  ASSERT_TRUE(eventually([&] { return pipe.out().find("acquired") != std::string::npos; }));
  Process more = hold("y");  // something to write
  EXPECT_EQ(pipe.wait(), 0);
  EXPECT_EQ(contents("status"), std::to_string(128 + SIGPIPE) + "\n");
  EXPECT_EQ(pipe.err(), "");
}

TEST_F(Inspect, ReleaseOfWhatNobodyHoldsSaysSo) {
  const auto called = call({"release", "x", "--force"});
  EXPECT_EQ(called.status, 1);
  EXPECT_EQ(called.err, "holdfast: nobody holds 'x'; 'holdfast ls' lists the locks in use\n");
  EXPECT_TRUE(is_idle());
}

TEST_F(Inspect, ReleaseNowFreesAtOnceAndWarns) {
  Process holder = hold("x", {"--ttl", "1h"});
  const auto called = call({"release", "x", "--force", "--now"});
  EXPECT_EQ(called.status, 0);
  EXPECT_NE(called.out.find("freed 'x' of 1 holder"), std::string::npos) << called.out;
  EXPECT_EQ(holder.wait(), 76);
}

TEST_F(Inspect, ReleaseTellsWhenItWillBeFree) {
  Process holder = hold("x", {"--ttl", "1h", "--on-lost", "ignore"});
  const auto released = parsed({"release", "x", "--force", "--json"}).as_object();
  EXPECT_EQ(released.at("name"), "x");
  EXPECT_EQ(released.at("holders").to_number<int>(), 1);
  EXPECT_GT(released.at("free_within_ms").to_number<std::int64_t>(), 0);
  const auto lock = parsed({"show", "x", "--json"});
  EXPECT_TRUE(lock.at("holders").at(0).at("revoked").as_bool());
}

TEST_F(Inspect, InitMakesTheStoreAndIsHarmlessTwice) {
  EXPECT_EQ(call({"init"}).out, "ready: " + url() + "\n");
  EXPECT_TRUE(exists("locks.db"));
  EXPECT_EQ(call({"init"}).status, 0);
  EXPECT_EQ(parsed({"init", "--json"}).at("state"), "ready");
  EXPECT_NE(call({"init", "--print"}).out.find("CREATE TABLE"), std::string::npos);
  EXPECT_NE(parsed({"init", "--print", "--json"}).at("script").as_string().find("CREATE TABLE"),
            bj::string::npos);
}

TEST_F(Inspect, DoctorFindsAHealthyStoreHealthy) {
  const auto text = call({"doctor"});
  EXPECT_EQ(text.status, 0) << text.out;
  EXPECT_NE(text.out.find("\nok "), std::string::npos) << text.out;
  const auto report = parsed({"doctor", "--json"}).as_object();
  EXPECT_EQ(report.at("store").as_string(), url());
  EXPECT_EQ(report.at("findings").at(0).at("level"), "ok");
}

TEST_F(Inspect, OutputThatCannotBeWrittenIsAnError) {
  Process process =
      Process::start({"sh", "-c", "exec \"$HOLDFAST\" version >/dev/full"}, environment());
  EXPECT_EQ(process.wait(), 74);
}

}  // namespace
}  // namespace holdfast::test
