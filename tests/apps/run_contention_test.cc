// Many processes, one lock.

#include <algorithm>
#include <deque>

#include "apps/command.h"
#include "base/ids.h"
#include "support/needs.h"
#include "support/server.h"

namespace holdfast::test {
namespace {

class RunContention : public CommandTest {
 protected:
  std::deque<Process> start_many(int count, const Words& options, const std::string& script) {
    std::deque<Process> processes;
    for (int i = 0; i < count; ++i) {
      processes.push_back(start(run("x", options, script)));
    }
    return processes;
  }

  static void expect_success(std::deque<Process>& processes) {
    for (Process& process : processes) {
      EXPECT_EQ(process.wait(), 0) << process.err();
    }
  }
};

TEST_F(RunContention, LosesNoUpdateAndTokensRise) {
  touch("tokens");
  std::ofstream{file("counter")} << "0\n";
  // Each process comes several times; reading and writing apart is what a lock
  // must protect.
  const std::string worker =
      "for i in 1 2 3 4; do \"$HOLDFAST\" run x -- sh -c '"
      "read -r n <\"$DIR/counter\"; sleep 0.005; echo $((n + 1)) >\"$DIR/counter\"; "
      "echo $HOLDFAST_TOKEN >>\"$DIR/tokens\"' || exit 1; done";
  std::deque<Process> workers;
  for (int i = 0; i < 8; ++i) {
    workers.push_back(Process::start({"sh", "-c", worker}, environment()));
  }
  expect_success(workers);
  EXPECT_EQ(contents("counter"), "32\n");
  std::vector<std::uint64_t> tokens;
  for (const std::string& line : lines("tokens")) {
    tokens.push_back(std::stoull(line));
  }
  ASSERT_EQ(tokens.size(), 32U);
  EXPECT_TRUE(std::is_sorted(tokens.begin(), tokens.end(), std::less_equal<>{}));
  EXPECT_TRUE(is_idle());
}

TEST_F(RunContention, ServesInTheOrderOfArrival) {
  Process holder =
      start(run("x", {}, "touch \"$DIR/in\"; while [ ! -e \"$DIR/go\" ]; do sleep 0.01; done"));
  ASSERT_TRUE(appears("in"));
  std::deque<Process> queue;
  std::string expected;
  for (int i = 1; i <= 4; ++i) {
    const std::string number = std::to_string(i);
    expected += number + "\n";
    queue.push_back(start(run("x", {}, "echo " + number + " >>\"$DIR/order\"")));
    const std::string waits = number + (i == 1 ? " waits" : " wait");
    ASSERT_TRUE(eventually([&] {
      return call({"show", "x"}).out.find(waits) != std::string::npos;
    }));
  }
  touch("go");
  expect_success(queue);
  EXPECT_EQ(contents("order"), expected);
}

TEST_F(RunContention, ReadersShareAndKeepWritersOut) {
  // Each reader leaves only when all three are inside.
  auto readers = start_many(
      3, {"--shared"},
      "echo in >>\"$DIR/readers\"; "
      "while [ $(wc -l <\"$DIR/readers\") -lt 3 -o ! -e \"$DIR/go\" ]; do sleep 0.01; done");
  ASSERT_TRUE(eventually([&] { return lines("readers").size() == 3; }));
  EXPECT_EQ(call(run("x", {"--wait", "0"}, "true")).status, 75);
  EXPECT_EQ(call(run("x", {"--shared", "--wait", "0"}, "true")).status, 0);
  touch("go");
  expect_success(readers);
  EXPECT_EQ(call(run("x", {"--wait", "0"}, "\"$HOLDFAST\" run x --shared -n -- true; [ $? = 75 ]"))
                .status,
            0);
}

TEST_F(RunContention, NeverMorePermitsThanThereAre) {
  auto two = start_many(2, {"--permits", "2/4"},
                        "echo in >>\"$DIR/in\"; while [ ! -e \"$DIR/go\" ]; do sleep 0.01; done");
  ASSERT_TRUE(eventually([&] { return lines("in").size() == 2; }));
  EXPECT_EQ(call(run("x", {"--permits", "1/4", "--wait", "0"}, "true")).status, 75);
  const auto other = call(run("x", {"--permits", "1/5", "--wait", "0"}, "true"));
  EXPECT_EQ(other.status, 64);
  EXPECT_NE(other.err.find("4"), std::string::npos) << other.err;  // says what it is
  touch("go");
  expect_success(two);
  EXPECT_EQ(call(run("x", {"--permits", "1/5", "--wait", "0"}, "true")).status, 0);
}

TEST_F(RunContention, AKilledHolderOnlyCostsItsTtl) {
  Process holder =
      start(run("x", {"--ttl", "1s"}, "echo $HOLDFAST_TOKEN >\"$DIR/old\"; exec sleep 60"));
  ASSERT_TRUE(eventually([&] { return !contents("old").empty(); }));
  Process next = start(run("x", {}, "echo $HOLDFAST_TOKEN >\"$DIR/new\""));
  holder.signal(SIGKILL);
  EXPECT_EQ(next.wait(), 0);
  EXPECT_GT(std::stoull(contents("new")), std::stoull(contents("old")));
}

TEST_F(RunContention, AKilledWaiterDoesNotBlockTheQueue) {
  Process holder =
      start(run("x", {}, "touch \"$DIR/in\"; while [ ! -e \"$DIR/go\" ]; do sleep 0.01; done"));
  ASSERT_TRUE(appears("in"));
  Process dead = start(run("x", {"--ttl", "1s"}, "touch \"$DIR/never\""));
  ASSERT_TRUE(eventually([&] {
    return call({"show", "x"}).out.find("1 waits") != std::string::npos;
  }));
  Process next = start(run("x", {}, "true"));
  ASSERT_TRUE(eventually([&] {
    return call({"show", "x"}).out.find("2 wait") != std::string::npos;
  }));
  dead.signal(SIGKILL);
  touch("go");
  EXPECT_EQ(next.wait(), 0);
  EXPECT_FALSE(exists("never"));
  EXPECT_TRUE(comes_to_rest());
}

#ifndef HOLDFAST_WITHOUT_REDIS
// Hosts whose clocks are hours apart: only the store's decides.
TEST_F(RunContention, TheClocksOfTheHostsDoNotMatter) {
  HOLDFAST_SKIP_IF_MISSING(missing_program("redis-server"));
  HOLDFAST_SKIP_IF_MISSING(missing_program("faketime"));
  const std::string store = "redis://127.0.0.1:" + shared_server_port("redis") +
                            "/0?prefix=" + base::Id::random().hex() + ":";
  const auto at = [&](const std::string& clock, const Words& options, const std::string& script) {
    Words words{"faketime", "-f", clock, kProgram, "--url", store};
    const Words rest = run("x", options, script);
    words.insert(words.end(), rest.begin(), rest.end());
    return Process::start(words, environment());
  };
  Process ahead = at("+1h", {},
                     "echo $HOLDFAST_TOKEN >\"$DIR/first\"; touch \"$DIR/in\"; "
                     "while [ ! -e \"$DIR/go\" ]; do sleep 0.01; done");
  ASSERT_TRUE(appears("in"));
  EXPECT_EQ(at("-1h", {"--wait", "0"}, "true").wait(), 75);
  EXPECT_EQ(at("+3h", {"--wait", "0"}, "true").wait(), 75);
  Process behind = at("-1h", {}, "echo $HOLDFAST_TOKEN >\"$DIR/second\"");
  touch("go");
  EXPECT_EQ(ahead.wait(), 0) << ahead.err();
  EXPECT_EQ(behind.wait(), 0) << behind.err();
  EXPECT_GT(std::stoull(contents("second")), std::stoull(contents("first")));
}
#endif

}  // namespace
}  // namespace holdfast::test
