// Three servers: one is killed, or cut off, and the locks live on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <holdfast/holdfast.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "support/eventually.h"
#include "support/needs.h"
#include "support/quorum_servers.h"

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

class QuorumCluster : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    HOLDFAST_SKIP_IF_MISSING(missing_quorum(GetParam()));
    servers_.emplace(GetParam());
  }
  Client open() const {
    return servers_->open({}, GetParam() == "etcd" ? "" : "&session_timeout=10s");
  }

  std::optional<QuorumServers> servers_;
};

// Two clients take turns while each server in turn is killed and comes back.
TEST_P(QuorumCluster, ServersDieInTurnsAndNobodyHoldsTwiceLongRun) {
  Client one = open();
  Client other = open();
  std::atomic<bool> done = false;
  std::atomic<int> inside = 0;
  std::atomic<int> turns = 0;
  std::atomic<bool> wrong = false;
  std::uint64_t last = 0;  // protected by the lock under test
  std::mutex complaints_mutex;
  std::string complaint;  // the last
  const auto work = [&](Client& client) {
    while (!done) {
      auto lease = client.acquire("x", {.wait = 5s, .hand_over = 0});
      if (!lease) {  // the cluster is busy electing
        const std::lock_guard lock{complaints_mutex};
        complaint = lease.error().text;
        continue;
      }
      const bool alone = ++inside == 1;
      if (lease->is_alive()) {
        if (!alone || lease->token().value_or(0) <= last) wrong = true;
        last = lease->token().value_or(0);
        ++turns;
      }
      --inside;
    }
  };
  std::thread first{[&] { work(one); }};
  std::thread second{[&] { work(other); }};
  const auto goes_on = [&]() -> ::testing::AssertionResult {
    const int before = turns;
    if (eventually([&] { return turns > before + 10; }, 2 * kPatience)) {
      return ::testing::AssertionSuccess();
    }
    const std::lock_guard lock{complaints_mutex};
    return ::testing::AssertionFailure() << turns - before << " turns; last heard: " << complaint;
  };
  EXPECT_TRUE(goes_on());
  for (std::size_t i = 0; i < servers_->size(); ++i) {
    (*servers_)[i].kill();
    EXPECT_TRUE(goes_on()) << "two of three are enough";
    (*servers_)[i].start();
    EXPECT_TRUE(goes_on());
  }
  done = true;
  first.join();
  second.join();
  EXPECT_FALSE(wrong) << "two holders, or a token that did not rise";
}

// Without a majority nobody is granted anything; with it, a waiter is served.
TEST_P(QuorumCluster, AMinorityGrantsNothingLongRun) {
  Client client = open();
  ASSERT_TRUE(client.acquire("x", {.wait = kPatience}));
  (*servers_)[0].kill();
  (*servers_)[1].kill();
  EXPECT_FALSE(client.acquire("y", {.wait = 1s}));
  (*servers_)[0].start();
  (*servers_)[1].start();
  EXPECT_TRUE(eventually([&] { return client.acquire("y", {.wait = 5s}).has_value(); }));
}

INSTANTIATE_TEST_SUITE_P(, QuorumCluster, ::testing::Values("zookeeper", "etcd"),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace holdfast::test
