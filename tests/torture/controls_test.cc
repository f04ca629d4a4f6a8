// Set-ups that are known to be unsafe, switched on: the torture must find each
// of them. Engines that are wrong by themselves are in mutants_test.cc.

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "proof/fault_proxy.h"
#include "support/eventually.h"
#include "support/galera.h"
#include "support/needs.h"
#include "support/process.h"
#include "support/server.h"
#include "torture/torture_run.h"

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using proof::FaultProxy;
using proof::Way;
using Properties = std::set<std::string>;

// One usually does; on a machine that is busy with other things there is less to forget.
constexpr int kAttempts = 20;

std::string ask_redis(const PrivateServer& server, const std::vector<std::string>& words) {
  std::vector<std::string> command{"redis-cli", "-p", std::to_string(server.port()), "-e"};
  command.insert(command.end(), words.begin(), words.end());
  Process process = Process::start(command);
  EXPECT_EQ(process.wait(60s), 0) << process.err();
  return process.out();
}

std::unique_ptr<FaultProxy> proxy_to(const PrivateServer& server) {
  auto proxy = FaultProxy::start("127.0.0.1", server.port());
  if (!proxy) {
    throw std::runtime_error{proxy.error().text};
  }
  return std::move(*proxy);
}

std::string here(std::uint16_t port) {
  return "127.0.0.1:" + std::to_string(port);
}

bool breaks_exclusion(const Properties& violated) {
  return violated.contains("S2") || violated.contains("S6");
}

// Leases that outlast what is done to the store, and processes that die or stop
// while they hold them: these cannot notice that the store has forgotten them.
std::vector<std::string> long_leases(const std::string& ttl, const std::string& seconds) {
  return {"--ttl", ttl, "--seconds", seconds, "--faults", "process"};
}

// --- A master dies, its replica takes over, and has not heard of the newest grants.

Properties fail_over(std::string& text) {
  PrivateServer master{"redis"};
  const PrivateServer replica{"redis"};
  const auto link = proxy_to(master);
  const auto clients = proxy_to(master);
  ask_redis(replica, {"REPLICAOF", "127.0.0.1", std::to_string(link->port())});
  EXPECT_TRUE(eventually([&] {
    return ask_redis(replica, {"INFO", "replication"}).find("master_link_status:up") !=
           std::string::npos;
  }));
  TortureRun torture{"redis://" + here(clients->port()), long_leases("2s", "5")};
  std::this_thread::sleep_for(2s);  // work for the locks, not a wait for anything
  link->block(Way::from_store);
  std::this_thread::sleep_for(1s);  // what is granted now only the master knows
  master.kill();
  ask_redis(replica, {"REPLICAOF", "NO", "ONE"});
  EXPECT_TRUE(clients->retarget({{"127.0.0.1", replica.port()}}));
  clients->reset_all();
  const Properties violated = torture.violated();
  text = torture.text();
  return violated;
}

TEST(TortureControls, AnAsynchronousFailOverIsFoundOutLongRun) {
  HOLDFAST_SKIP_IF_MISSING(missing_program("redis-server"));
  std::string text;
  Properties violated;
  for (int attempt = 0; attempt < kAttempts && !breaks_exclusion(violated); ++attempt) {
    violated = fail_over(text);
  }
  EXPECT_TRUE(breaks_exclusion(violated)) << text;
}

// --- Most nodes of a Redlock set come back empty while leases are out.

class TortureControlsRedlock : public testing::Test {
 protected:
  void SetUp() override {
    HOLDFAST_SKIP_IF_MISSING(missing_program("redis-server"));
    for (int i = 0; i < 3; ++i) {
      nodes_.push_back(std::make_unique<PrivateServer>("redis"));
    }
  }

  Properties restart_most(const std::string& more) {
    std::string hosts;
    for (const auto& node : nodes_) {
      hosts += (hosts.empty() ? "" : ",") + here(node->port());
    }
    TortureRun torture{"redlock://" + hosts + "/?max_ttl=4s" + more, long_leases("2s", "7")};
    std::this_thread::sleep_for(2s);  // work for the locks, not a wait for anything
    for (const std::size_t node : {0U, 1U}) {
      nodes_[node]->kill();
      nodes_[node]->start();
    }
    const Properties violated = torture.violated();
    text_ = torture.text();
    EXPECT_GT(torture.granted(), 0) << text_;
    return violated;
  }

  std::vector<std::unique_ptr<PrivateServer>> nodes_;
  std::string text_;
};

TEST_F(TortureControlsRedlock, AnEarlyRestartIsFoundOutWhereTheGuardIsOffLongRun) {
  Properties violated;
  for (int attempt = 0; attempt < kAttempts && !breaks_exclusion(violated); ++attempt) {
    violated = restart_most("&first_start=true");
  }
  EXPECT_TRUE(breaks_exclusion(violated)) << text_;
}

TEST_F(TortureControlsRedlock, AnEarlyRestartIsHarmlessWhereTheGuardIsOnLongRun) {
  std::this_thread::sleep_for(5s);  // until the nodes are old enough to count
  const Properties violated = restart_most("");
  EXPECT_FALSE(breaks_exclusion(violated)) << text_;
}

// --- Every node of a Galera cluster has user-level locks of its own.

TEST(TortureControls, UserLevelLocksOnAGaleraClusterAreFoundOutLongRun) {
  HOLDFAST_SKIP_IF_MISSING(missing_galera());
  const GaleraPair cluster;
  const auto& [one, other] = cluster;
  const auto balancer = proxy_to(one);
  ASSERT_TRUE(balancer->retarget({{"127.0.0.1", one.port()}, {"127.0.0.1", other.port()}}));
  const std::string url = "mysql://app@" + here(balancer->port()) + "/holdfast?strategy=advisory";
  Process refused = Process::start({HOLDFAST_COMMAND, "init", "--url", url});
  EXPECT_NE(refused.wait(60s), 0) << "it is not to be had by accident";

  // Sessions that do not know of the cluster: the engine cannot see it.
  for (const PrivateServer* node : {&one, &other}) {
    GaleraPair::ask(*node, "SET GLOBAL wsrep_on=OFF");
  }
  Properties violated;
  std::string text;
  for (int attempt = 0; attempt < kAttempts && !violated.contains("S2"); ++attempt) {
    TortureRun torture{url, {"--seconds", "3", "--faults", "none"}};
    violated = torture.violated();
    text = torture.text();
  }
  EXPECT_TRUE(violated.contains("S2")) << text;
}

}  // namespace
}  // namespace holdfast::test
