// What a turn leaves behind for the next one: connections, votes, waiters.
#include <thread>

#include "engines/redlock/redlock_script.h"
#include "support/fault_proxy.h"
#include "support/redlock_test.h"

namespace holdfast {
namespace {

using namespace test;
using core::Status;

class RedlockTurns : public Redlock {
 protected:
  void SetUp() override {
    Redlock::SetUp();
    if (!IsSkipped()) {
      for (const auto& node : nodes_) {
        watchers_.push_back(std::make_unique<RawRedis>(std::to_string(node->port())));
        watchers_.back()->ask({"PING"});
      }
    }
  }
  RawRedis& node(std::size_t which) { return *watchers_[which]; }

  // That were ever made to any node.
  std::uint64_t connections() {
    std::uint64_t sum = 0;
    for (const auto& each : watchers_) {
      sum += told(*each, "stats", "total_connections_received:");
    }
    return sum;
  }

  // A line to each node.
  using Proxies = std::array<std::unique_ptr<FaultProxy>, 3>;
  Proxies line_up() const {
    return {proxy_to(nodes_[0]->port()), proxy_to(nodes_[1]->port()), proxy_to(nodes_[2]->port())};
  }
  static std::array<std::uint16_t, 3> ports_of(const Proxies& proxies) {
    return {proxies[0]->port(), proxies[1]->port(), proxies[2]->port()};
  }

 private:
  std::vector<std::unique_ptr<RawRedis>> watchers_;
};

// The turn ends with the answers of a majority; what the others said lies there until the next.
TEST_F(RedlockTurns, ANodeIsNotGivenUpBecauseNobodyHasReadItsAnswer) {
  const auto engine = open_engine(bare_url("first_start=true&node_timeout=3s&timeout=500ms"));
  until_granted(*engine, acquire(1));
  const auto before = connections();
  for (int i = 0; i < 4; ++i) {
    std::this_thread::sleep_for(700ms);
    EXPECT_EQ(submit(*engine, "x", renew(1)).status, Status::renewed);
  }
  EXPECT_EQ(connections(), before);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(eventually([&] {
      return node(i).ask({"PTTL", "x"}).integer > 29'000;
    })) << "node "
        << i << " has lost its vote";
  }
}

// Each step of the connection takes longer than a turn.
TEST_F(RedlockTurns, ANodeIsConnectedAgainThoughTurnsAreShortAndFarApart) {
  const auto proxies = line_up();
  const auto engine = open_engine(url_of(ports_of(proxies), "first_start=true&timeout=300ms"));
  until_granted(*engine, acquire(1));
  proxies[2]->delay(Way::from_store, 100ms);
  proxies[2]->reset_all();
  node(2).ask({"DEL", "x"});
  bool repaired = false;
  for (int i = 0; i < 12 && !repaired; ++i) {
    std::this_thread::sleep_for(400ms);
    EXPECT_EQ(submit(*engine, "x", renew(1)).status, Status::renewed);
    repaired = node(2).ask({"EXISTS", "x"}).integer == 1;
  }
  EXPECT_TRUE(repaired);
}

TEST_F(RedlockTurns, ANodeThatIsAlwaysTheLastLearnsTheScript) {
  const auto proxies = line_up();
  const auto engine = open_engine(url_of(ports_of(proxies), "first_start=true&node_timeout=3s"));
  proxies[2]->delay(Way::from_store, 200ms);
  const auto hears = [&](std::uint32_t number) {
    const std::string name = "x" + std::to_string(number);
    EXPECT_EQ(submit(*engine, name, acquire(number)).status, Status::granted);
    return eventually([&] { return node(2).ask({"EXISTS", name}).integer == 1; }, 1s);
  };
  EXPECT_TRUE(hears(1)) << "it knows the script from the start";
  node(2).ask({"SCRIPT", "FLUSH"});
  EXPECT_FALSE(hears(2));
  std::this_thread::sleep_for(300ms);
  hears(3);  // it is heard that it does not know the script
  EXPECT_TRUE(hears(4));
}

TEST_F(RedlockTurns, ManyDenialsAtOnceCostNoConnection) {
  constexpr std::uint32_t kMany = 400;
  const auto holder = open("first_start=true");
  const auto other = open("first_start=true", 2);
  std::vector<core::Command> theirs;
  std::vector<core::Command> ours;
  for (std::uint32_t i = 0; i < kMany; ++i) {
    theirs.push_back({"x" + std::to_string(i), acquire(1000 + i)});
    ours.push_back({"x" + std::to_string(i), try_acquire(5000 + i)});
  }
  for (const auto& outcome : submit(*holder, theirs)) {
    ASSERT_EQ(outcome.status, Status::granted);
  }
  const auto before = connections();
  for (int i = 0; i < 2; ++i) {
    for (const auto& outcome : submit(*other, ours)) {
      EXPECT_EQ(outcome.status, Status::busy);
    }
  }
  EXPECT_EQ(submit(*other, "free", acquire(1)).status, Status::granted);
  EXPECT_EQ(connections(), before);
}

// An earlier question with the same id may have left votes that were never given back.
TEST_F(RedlockTurns, VotesThatAreLeftOverCountForWhatIsLeftOfThem) {
  const auto engine = open("first_start=true");
  const auto leave_vote = [&](std::uint32_t number, std::size_t which, const char* ms) {
    const std::string id{reinterpret_cast<const char*>(test::id(number).bytes.data()), 16};
    node(which).ask({"SET", "x", "hf1:" + id + "-" + id + "30000|0|0|1", "PX", ms});
  };
  for (std::size_t i = 0; i < 3; ++i) {
    leave_vote(1, i, "5000");
  }
  const auto granted = submit(*engine, "x", acquire(1));
  ASSERT_EQ(granted.status, Status::granted);
  EXPECT_LT(granted.lease_for, 5s);
  EXPECT_GT(granted.lease_for, 0s);
}

// The script looks at everything once, and must not forget what it did itself.
TEST_F(RedlockTurns, ANameMayComeSeveralTimesInOneBatch) {
  const auto engine = open("first_start=true");
  until_granted(*engine, acquire(1));
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(eventually([&] { return node(i).ask({"EXISTS", "x"}).integer == 1; }));
  }
  const auto first =
      submit(*engine, {{"x", release(1)}, {"x", acquire(2)}, {"x", release(1)}, {"y", acquire(9)}});
  EXPECT_EQ(first[0].status, Status::released);
  EXPECT_EQ(first[1].status, Status::granted);
  EXPECT_EQ(first[2].status, Status::not_held);
  EXPECT_EQ(first[3].status, Status::granted);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(eventually([&] { return node(i).ask({"EXISTS", "y"}).integer == 1; }));
    EXPECT_EQ(node(i).ask({"EXISTS", "x"}).integer, 1) << "another's lock was given back";
  }

  const auto second =
      submit(*engine, {{"x", release(2)}, {"x", acquire(3)}, {"x", release(3)}, {"x", acquire(4)}});
  for (const std::size_t granted : {1U, 3U}) {
    EXPECT_EQ(second[granted].status, Status::granted);
  }
  EXPECT_GE(second[3].token, second[1].token + core::kTokenStride);
}

// They lie behind the same prefix as the locks.
TEST_F(RedlockTurns, KeysOfTheNodesOwnAreNoLocks) {
  const auto engine = open("first_start=true&prefix=p:");
  until_granted(*engine, acquire(1));
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(eventually([&] { return node(i).ask({"EXISTS", "p:x"}).integer == 1; }));
  }
  const auto outcomes = submit(*engine, {{"a", acquire(2)},
                                         {"holdfast:redlock", core::Revoke{.now = true}},
                                         {"holdfast:redlock", acquire(3)},
                                         {"holdfast:token:p:b", acquire(4)},
                                         {"holdfast:waiters:p:b", acquire(5)},
                                         {"holdfast:waiters:p:b:who", release(5)},
                                         {"b", acquire(6)}});
  for (std::size_t i = 1; i < 6; ++i) {
    ASSERT_TRUE(outcomes[i].error) << i;
    EXPECT_EQ(outcomes[i].error->code, ErrorCode::invalid_argument) << i;
    EXPECT_NE(outcomes[i].error->text.find("holdfast:token:"), std::string::npos);
  }
  EXPECT_EQ(outcomes.front().status, Status::granted);
  EXPECT_EQ(outcomes.back().status, Status::granted);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(node(i).ask({"EXISTS", "p:holdfast:redlock"}).integer, 1) << "it would not count";
  }
  EXPECT_EQ(engine->show("holdfast:redlock").error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(submit(*engine, "not:holdfast:redlock", acquire(7)).status, Status::granted);
}

// Nobody waits for the answer to what is told: the next turn finds that it was not understood.
TEST_F(RedlockTurns, AVoteIsGivenBackThoughTheScriptIsForgottenMeanwhile) {
  const auto proxies = line_up();
  const auto engine = open_engine(url_of(ports_of(proxies), "first_start=true&node_timeout=3s"));
  until_granted(*engine, acquire(1));
  for (std::size_t i = 0; i < 2; ++i) {
    node(i).ask({"SET", "y", "theirs", "PX", "30000"});
  }
  for (const auto& proxy : proxies) {
    proxy->delay(Way::from_store, 300ms);
  }
  std::thread forgets{[&] {
    EXPECT_TRUE(eventually([&] { return node(2).ask({"EXISTS", "y"}).integer == 1; }));
    for (std::size_t i = 0; i < 3; ++i) {
      node(i).ask({"SCRIPT", "FLUSH"});
    }
  }};
  EXPECT_EQ(submit(*engine, "y", try_acquire(2)).status, Status::busy);
  forgets.join();
  EXPECT_EQ(submit(*engine, "z", acquire(3)).status, Status::granted);
  EXPECT_TRUE(eventually(
      [&] {
        return node(2).ask({"EXISTS", "y"}).integer == 0;
      },
      10s))
      << "long before the ttl";
}

// Another client has taught the script since, so that the next question came through first.
TEST_F(RedlockTurns, AVoteThatWasGivenMeanwhileIsNotTakenBack) {
  const auto proxies = line_up();
  const auto engine = open_engine(url_of(ports_of(proxies), "first_start=true&node_timeout=3s"));
  until_granted(*engine, acquire(1));
  const auto at_all = [&](std::initializer_list<std::string_view> words) {
    for (std::size_t i = 0; i < 3; ++i) {
      node(i).ask(words);
    }
  };
  at_all({"SET", "y", "theirs", "PX", "30000"});
  for (const auto& proxy : proxies) {
    proxy->delay(Way::from_store, 300ms);
  }
  std::thread forgets{[&] {
    EXPECT_TRUE(eventually([&] {
      return node(2).ask({"EXISTS", "holdfast:waiters:y"}).integer == 1;
    }));
    at_all({"SCRIPT", "FLUSH"});
  }};
  EXPECT_EQ(submit(*engine, "y", acquire(2)).status, Status::queued);
  forgets.join();
  std::this_thread::sleep_for(50ms);  // it has been told, and was not understood
  at_all({"SCRIPT", "LOAD", engines::kRedlockScript});
  at_all({"DEL", "y"});
  ASSERT_EQ(submit(*engine, "y", poll(2)).status, Status::granted);
  std::this_thread::sleep_for(100ms);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(node(i).ask({"EXISTS", "y"}).integer, 1) << "node " << i;
  }
}

// Earlier versions kept what a node knows of itself in a hash.
TEST_F(RedlockTurns, ANodeStaysAsOldAsItWas) {
  for (std::size_t i = 0; i < 3; ++i) {
    node(i).ask({"HSET", "holdfast:redlock", "max_ttl", "60000", "born", "1700000000000000"});
  }
  const auto engine = open("first_start=true");
  until_granted(*engine, acquire(1));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(eventually([&] { return node(i).ask({"EXISTS", "x"}).integer == 1; }));
    EXPECT_EQ(node(i).ask({"GET", "holdfast:redlock"}).text, "170000000000000060000");
  }
  const auto other = open("first_start=true&max_ttl=50s", 2);
  EXPECT_EQ(submit(*other, "y", try_acquire(2)).error->code, ErrorCode::invalid_argument);
}

// Whoever is refused by a node is noted there as waiting, also if others grant it.
TEST_F(RedlockTurns, WhoIsGrantedByAMajorityDoesNotWaitAtTheOthers) {
  const auto proxies = line_up();
  const auto engine = open_engine(url_of(ports_of(proxies), "first_start=true&node_timeout=3s"));
  until_granted(*engine, acquire(1));  // the clocks are known
  node(0).ask({"SET", "y", "theirs", "NX", "PX", "30000"});
  for (std::size_t i = 1; i < 3; ++i) {
    proxies[i]->delay(Way::from_store, 100ms);  // its answer comes first
  }
  ASSERT_EQ(submit(*engine, "y", acquire(2)).status, Status::granted);
  EXPECT_TRUE(eventually(
      [&] {
        return node(0).ask({"EXISTS", "holdfast:waiters:y"}).integer == 0;
      },
      3s));
}

}  // namespace
}  // namespace holdfast
