// holdfast task: cron on many hosts.

#include <boost/json.hpp>
#include <csignal>

#include "apps/command.h"
#include "base/ids.h"
#include "support/given_time.h"
#include "support/needs.h"
#include "support/server.h"

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
namespace bj = boost::json;

class Task : public CommandTest {
 protected:
  // `holdfast task run x OPTIONS -- sh -c SCRIPT`
  static Words task(const Words& options, const std::string& script) {
    Words words{"task", "run", "x"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", "sh", "-c", script});
    return words;
  }

  bj::object record() const {
    const Called listed = call({"task", "ls", "x", "--json"});
    EXPECT_EQ(listed.status, 0) << listed.err;
    const auto all = bj::parse(listed.out).as_array();
    EXPECT_EQ(all.size(), 1U);
    return all.empty() ? bj::object{} : all.front().as_object();
  }
  std::string last(const std::string& field) const {
    return std::string{record().at("last").at(field).as_string()};
  }

  static constexpr const char* kWait =
      "touch \"$DIR/in\"; while [ ! -e \"$DIR/go\" ]; do sleep 0.01; done";
};

TEST_F(Task, RunsTheCommandAndRemembersIt) {
  const Called done =
      call(task({"--at-most", "10m"}, "test -n \"$HOLDFAST_TOKEN\"; echo $HOLDFAST_NAME"));
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(done.out, "x\n");
  const bj::object seen = record();
  EXPECT_EQ(seen.at("name").as_string(), "x");
  EXPECT_EQ(seen.at("last").at("status").as_string(), "succeeded");
  EXPECT_GT(seen.at("last").at("begin_unix_ms").to_number<std::int64_t>(), 0);
  EXPECT_GE(seen.at("last").at("end_unix_ms").to_number<std::int64_t>(),
            seen.at("last").at("begin_unix_ms").to_number<std::int64_t>());
  EXPECT_TRUE(seen.at("previous").is_null());
  EXPECT_EQ(seen.at("not_before_ms").to_number<std::int64_t>(), 0);
  EXPECT_TRUE(is_idle());
  const std::string table = call({"task", "ls"}).out;
  EXPECT_EQ(table.find("NAME"), 0U);
  EXPECT_NE(table.find("succeeded"), std::string::npos);
}

TEST_F(Task, PassesTheStatusOnAndRemembersTheFailure) {
  EXPECT_EQ(call(task({"--at-most", "10m"}, "exit 3")).status, 3);
  EXPECT_EQ(last("status"), "failed");
  EXPECT_EQ(last("message"), "exit status 3");
  EXPECT_EQ(call(task({"--at-most", "10m"}, "kill -KILL $$")).status, 128 + SIGKILL);
  EXPECT_EQ(last("message"), "signal 9");
}

TEST_F(Task, SkipsWhileItRunsElsewhere) {
  Process first = start(task({"--at-most", "10m"}, kWait));
  ASSERT_TRUE(appears("in"));
  EXPECT_EQ(last("status"), "running");
  const Called second = call(task({"--at-most", "10m"}, "touch \"$DIR/second\""));
  EXPECT_EQ(second.status, 75);
  EXPECT_EQ(second.err.find("holdfast: skipped 'x': it is running on "), 0U) << second.err;
  touch("go");
  EXPECT_EQ(first.wait(), 0) << first.err();
  EXPECT_FALSE(exists("second"));
}

TEST_F(Task, SkipsWhatIsNotDue) {
  const Words daily{"--at-most", "10m", "--once-per", "23h"};
  EXPECT_EQ(call(task(daily, "exit 1")).status, 1);  // does not count
  EXPECT_EQ(call(task(daily, "exit 0")).status, 0);
  const Called again = call(task(daily, "touch \"$DIR/again\""));
  EXPECT_EQ(again.status, 75);
  EXPECT_NE(again.err.find("not long ago; try again in 2"), std::string::npos) << again.err;
  EXPECT_FALSE(exists("again"));
  const Called in_json = call({"--json", "task", "run", "x", "--at-most", "1m", "--", "true"});
  EXPECT_EQ(bj::parse(in_json.err).at("error").as_string(), "busy");
  EXPECT_EQ(bj::parse(in_json.err).at("exit_status").to_number<int>(), 75);
}

TEST_F(Task, RunsAgainBeforeItIsDueOnceItsRecordIsForgotten) {
  const Words daily{"--at-most", "10m", "--once-per", "23h"};
  const Called nothing = call({"task", "forget", "x"});
  EXPECT_EQ(nothing.status, 1);
  EXPECT_EQ(nothing.err.find("holdfast: there is no record of 'x'"), 0U) << nothing.err;
  EXPECT_EQ(call(task(daily, "exit 0")).status, 0);
  EXPECT_EQ(call(task(daily, "exit 0")).status, 75);
  const Called done = call({"task", "forget", "x"});
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(done.out, "forgot the runs of 'x'; it may begin at once\n");
  EXPECT_EQ(call({"task", "ls", "--json"}).out, "[]\n");
  EXPECT_EQ(call(task(daily, "exit 0")).status, 0);
  EXPECT_EQ(call({"task", "forget", "x", "--json"}).out, "{\"name\":\"x\"}\n");
}

TEST_F(Task, DoesNotForgetWhatRuns) {
  Process first = start(task({"--at-most", "10m"}, kWait));
  ASSERT_TRUE(appears("in"));
  const Called refused = call({"task", "forget", "x"});
  EXPECT_EQ(refused.status, 75);
  EXPECT_EQ(refused.err.find("holdfast: the task is running on "), 0U) << refused.err;
  touch("go");
  EXPECT_EQ(first.wait(), 0) << first.err();
}

TEST_F(Task, KeepsAtLeastAfterAFailure) {
  const Words words{"--at-most", "10m", "--at-least", "5m"};
  EXPECT_EQ(call(task(words, "exit 1")).status, 1);
  EXPECT_EQ(call(task(words, "exit 0")).status, 75);
}

TEST_F(Task, AfterACrashAnotherRunsAndTheRecordTells) {
  Process first = start(task({"--at-most", "3s"}, "touch \"$DIR/in\"; exec sleep 60"));
  ASSERT_TRUE(appears("in"));
  first.signal(SIGKILL);
  first.wait();
  ASSERT_TRUE(eventually([&] { return call(task({"--at-most", "3s"}, "true")).status == 0; }));
  const bj::object seen = record();
  EXPECT_EQ(seen.at("last").at("status").as_string(), "succeeded");
  EXPECT_EQ(seen.at("previous").at("status").as_string(), "lost");
}

TEST_F(Task, EndsTheCommandBeforeAtMostIsOver) {
  given_time([&](int scale) {
    const std::string at_most = std::to_string(500 * scale) + "ms";
    const Called late = call(task({"--at-most", at_most}, "sleep 60"));
    EXPECT_EQ(late.status, 76);
    EXPECT_NE(late.err.find("--at-most"), std::string::npos) << late.err;
    EXPECT_EQ(last("status"), "lost");
  });
}

TEST_F(Task, ACommandThatCannotRunIsFoundBeforeAnythingIsLocked) {
  EXPECT_EQ(call({"task", "run", "x", "--at-most", "1m", "--", "no-such-command"}).status, 127);
  EXPECT_EQ(call({"task", "ls", "--json"}).out, "[]\n");
}

#ifndef HOLDFAST_WITHOUT_REDIS
// Two hosts, two hours apart, one store: its clock decides.
TEST_F(Task, TheHostsClocksDoNotMatter) {
  HOLDFAST_SKIP_IF_MISSING(missing_program("redis-server"));
  HOLDFAST_SKIP_IF_MISSING(missing_program("faketime"));
  const std::string store = "redis://127.0.0.1:" + shared_server_port("redis") +
                            "/0?prefix=" + base::Id::random().hex() + ":";
  const auto at = [&](const std::string& clock, const std::string& once_per) {
    Process process =
        Process::start({"faketime", "-f", clock, kProgram, "--url", store, "task", "run", "x",
                        "--at-most", "1m", "--once-per", once_per, "--", "true"},
                       environment());
    const auto status = process.wait();
    EXPECT_TRUE(status == 0 || status == 75) << process.err();
    return status;
  };
  EXPECT_EQ(at("+1h", "30m"), 0);
  EXPECT_EQ(at("-1h", "30m"), 75);
  EXPECT_EQ(at("+2h", "30m"), 75);
  EXPECT_EQ(at("+0h", "30m"), 75);
}

#endif

struct TaskMistake {
  Words words;
  std::string message;
};

TEST_F(Task, MistakesAreExplained) {
  const std::vector<TaskMistake> mistakes{
      {{"task"}, "ACTION is missing"},
      {{"task", "rnu"}, "there is no 'task rnu'"},
      {{"task", "run"}, "NAME is missing"},
      {{"task", "run", "x", "--", "true"}, "--at-most is missing"},
      {{"task", "run", "x", "--at-most", "0", "--", "true"}, "--at-most must be longer"},
      {{"task", "run", "x", "--at-most", "-5s", "--", "true"}, "--at-most"},
      {{"task", "run", "x", "--at-most", "1m", "--at-least", "2m", "--", "true"},
       "--at-least is longer than --at-most"},
      {{"task", "run", "x", "--at-most", "1m", "--once-per", "0", "--", "true"}, "--once-per"},
      {{"task", "run", "x", "--at-most", "1m"}, "there is no command"},
      {{"task", "run", "x", "--at-mots", "1m", "--", "true"}, "unknown option '--at-mots'"},
      {{"task", "run", std::string(242, 'x'), "--at-most", "1m", "--", "true"}, "name has 242"},
      {{"task", "ls", "--at-most", "1m"}, "'task ls' takes a prefix"},
      {{"task", "ls", "--label", "me"}, "'task ls' takes a prefix"},
      {{"task", "forget"}, "NAME is missing"},
      {{"task", "forget", "x", "--at-most", "1m"}, "'task forget' takes a name"},
      {{"task", "forget", std::string(242, 'x')}, "name has 242"},
  };
  for (const TaskMistake& mistake : mistakes) {
    const Called called = call(mistake.words);
    EXPECT_EQ(called.status, 64) << mistake.message;
    EXPECT_EQ(called.err.find("holdfast: " + mistake.message), 0U) << called.err;
  }
}

#ifndef HOLDFAST_WITHOUT_REDIS
TEST_F(Task, AStoreWithoutValuesIsRefused) {
  HOLDFAST_SKIP_IF_MISSING(missing_program("redis-server"));
  const Called called =
      call({"--url", "redis://127.0.0.1:" + shared_server_port("redis") + "/0?strategy=simple",
            "task", "run", "x", "--at-most", "1m", "--", "true"});
  EXPECT_EQ(called.status, 64);
  EXPECT_NE(called.err.find("redis with strategy=simple keeps no values"), std::string::npos)
      << called.err;
}
#endif

}  // namespace
}  // namespace holdfast::test
