// Three servers: some are killed, frozen or cut off while locks are held and
// waited for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <holdfast/holdfast.h>

#include <atomic>
#include <csignal>
#include <future>
#include <string>
#include <vector>

#include "support/eventually.h"
#include "support/needs.h"
#include "support/quorum_servers.h"

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

std::string session(const std::string& kind, const std::string& time) {
  return kind == "zookeeper" ? "&session_timeout=" + time : "";
}
// ZooKeeper's leases last as long as its sessions.
AcquireOptions for_long(const std::string& kind, Duration ttl) {
  AcquireOptions options{.wait = 3 * kPatience};
  if (kind == "etcd") options.ttl = ttl;
  options.hand_over = 0;
  return options;
}

bool sees_in_line(Client& client, const std::string& name, std::size_t count) {
  return eventually([&] {
    const auto seen = client.show(name);
    return seen && seen->queue.size() == count;
  });
}

// Servers that have just found each other again have no leader yet.
Result<Lease> acquire_in_the_end(Client& client, const std::string& name,
                                 const AcquireOptions& options) {
  auto lease = client.acquire(name, options);
  eventually([&] {
    if (!lease) lease = client.acquire(name, options);
    return lease.has_value();
  });
  return lease;
}

// Stands in line; once it is let in, whoever held the lock must have been told.
std::future<Result<Lease>> waits_for_the_end_of(const Lease& lease, Client& other,
                                                const std::string& name,
                                                const AcquireOptions& patiently) {
  auto waiting = std::async(std::launch::async, [&lease, &other, name, patiently] {
    auto next = other.acquire(name, patiently);
    EXPECT_TRUE(lease.lost().stop_requested()) << "two hold it";
    EXPECT_FALSE(lease.is_alive()) << "two hold it";
    return next;
  });
  EXPECT_TRUE(sees_in_line(other, name, 1));
  return waiting;
}

class QuorumFaults : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { HOLDFAST_SKIP_IF_MISSING(missing_quorum(GetParam())); }
};
INSTANTIATE_TEST_SUITE_P(, QuorumFaults, ::testing::Values("zookeeper", "etcd"),
                         [](const auto& tested) { return tested.param; });

TEST_P(QuorumFaults, TheLeaderDiesAndNoWaiterIsLostLongRun) {
  QuorumServers servers{GetParam()};
  const std::string more = session(GetParam(), "15s");
  const AcquireOptions patiently = for_long(GetParam(), 15s);
  Client holder = servers.open({}, more);
  std::vector<Client> clients;
  for (int i = 0; i < 4; ++i) clients.push_back(servers.open({}, more));
  auto lease = holder.acquire("x", patiently).value();

  std::atomic<int> inside = 1;
  std::atomic<bool> together = false;
  const auto wait = [&](Client& client) -> std::optional<std::uint64_t> {
    auto mine = client.acquire("x", patiently);
    if (!mine) {
      ADD_FAILURE() << mine.error();
      return std::nullopt;
    }
    if (++inside != 1) together = true;
    const auto token = mine->token();
    --inside;
    return token;
  };
  std::vector<std::future<std::optional<std::uint64_t>>> waiting;
  for (std::size_t i = 0; i < clients.size(); ++i) {
    waiting.push_back(std::async(std::launch::async, [&, i] { return wait(clients[i]); }));
    ASSERT_TRUE(sees_in_line(holder, "x", i + 1));
  }
  servers[servers.leader()].kill();
  EXPECT_FALSE(lease.lost().stop_requested()) << "a lost leader is not a lost lock";
  std::uint64_t last = lease.token().value_or(0);
  --inside;
  lease = Lease{};  // released as soon as there is somebody to tell
  for (auto& each : waiting) {
    const auto token = each.get();
    ASSERT_TRUE(token);
    EXPECT_GT(*token, last) << "first come, first served";
    last = *token;
  }
  EXPECT_FALSE(together);
}

TEST_P(QuorumFaults, ARollingRestartLosesNeitherHolderNorWaiterLongRun) {
  QuorumServers servers{GetParam()};
  const std::string more = session(GetParam(), "30s");
  const AcquireOptions patiently = for_long(GetParam(), 30s);
  Client holder = servers.open({}, more);
  Client other = servers.open({}, more);
  auto lease = holder.acquire("x", patiently).value();
  auto waiting = std::async(std::launch::async, [&] { return other.acquire("x", patiently); });
  ASSERT_TRUE(sees_in_line(holder, "x", 1));
  for (std::size_t i = 0; i < servers.size(); ++i) {
    servers[i].signal(SIGTERM);  // in good order
    EXPECT_TRUE(eventually([&] { return servers.role(i).empty(); }));
    servers[i].kill();
    servers[i].start();
    EXPECT_TRUE(eventually([&] { return !servers.role(i).empty(); }));
  }
  EXPECT_FALSE(lease.lost().stop_requested());
  EXPECT_EQ(waiting.wait_for(0s), std::future_status::timeout);
  EXPECT_TRUE(eventually([&] { return lease.release().has_value(); }));
  const auto next = waiting.get();
  ASSERT_TRUE(next) << next.error();
  EXPECT_GT(next->token(), lease.token());
}

// The server goes on answering pings and reads, but it no longer belongs to
// those who decide: whoever is connected to it must know before they do.
TEST(ZookeeperPartition, TheHolderAtACutOffFollowerIsToldBeforeTheNextOneEntersLongRun) {
  HOLDFAST_SKIP_IF_MISSING(missing_quorum("zookeeper"));
  QuorumServers servers{"zookeeper", QuorumServers::Lines::third_can_be_cut};
  ASSERT_TRUE(eventually([&] { return servers.role(2) == "follower"; }));
  Client holder = servers.open({2}, "&session_timeout=4s");
  Client other = servers.open({0, 1}, "&session_timeout=4s");
  auto lease = holder.acquire("x", for_long("zookeeper", {})).value();
  auto waiting = waits_for_the_end_of(lease, other, "x", for_long("zookeeper", {}));
  EXPECT_TRUE(lease.is_alive()) << "nothing is cut yet";
  servers.cut_off_third();
  EXPECT_EQ(servers.role(2), "follower") << "it does not know yet";
  EXPECT_TRUE(eventually([&] { return lease.lost().stop_requested(); }));
  const auto next = waiting.get();
  ASSERT_TRUE(next) << next.error();
  EXPECT_GT(next->token(), lease.token());
  EXPECT_FALSE(holder.acquire("y", {.wait = 500ms})) << "a minority grants nothing";
}

class EtcdPartition : public ::testing::Test {
 protected:
  void SetUp() override { HOLDFAST_SKIP_IF_MISSING(missing_quorum("etcd")); }
};

TEST_F(EtcdPartition, TheHolderAtAFrozenMemberIsToldBeforeTheNextOneEntersLongRun) {
  QuorumServers servers{"etcd"};
  const std::size_t leader = servers.leader();
  for (const std::size_t frozen : {(leader + 1) % 3, leader}) {
    const std::string name = "x" + std::to_string(frozen);
    Client holder = servers.open({frozen});
    Client other = servers.open({(frozen + 1) % 3, (frozen + 2) % 3});
    auto lease = holder.acquire(name, for_long("etcd", 3s)).value();
    auto waiting = waits_for_the_end_of(lease, other, name, for_long("etcd", 3s));
    servers[frozen].signal(SIGSTOP);
    const auto next = waiting.get();
    ASSERT_TRUE(next) << next.error();
    EXPECT_GT(next->token(), lease.token());
    servers[frozen].signal(SIGCONT);
    EXPECT_TRUE(eventually([&] { return !servers.role(frozen).empty(); }));
  }
}

// The leader and the holder are on one side of the cut, the other members and who
// waits on the other: it goes on for a while as if it were the leader still.
TEST_F(EtcdPartition, TheHolderAtACutOffLeaderIsToldBeforeTheNextOneEntersLongRun) {
  QuorumServers servers{"etcd", QuorumServers::Lines::all_can_be_cut};
  const std::size_t leader = servers.leader();
  const std::vector<std::size_t> others{(leader + 1) % 3, (leader + 2) % 3};
  Client holder = servers.open({leader});
  Client other = servers.open(others);
  auto lease = holder.acquire("x", for_long("etcd", 6s)).value();
  auto reader = holder.acquire("r", {.ttl = 6s, .mode = Mode::shared}).value();
  // The next one holds throughout the election that a member who comes back may cause.
  auto waiting = waits_for_the_end_of(lease, other, "x", for_long("etcd", 30s));
  EXPECT_TRUE(lease.is_alive()) << "nothing is cut yet";
  servers.cut_off(leader);
  EXPECT_TRUE(eventually([&] {
    return servers.role(others[0]) == "leader" || servers.role(others[1]) == "leader";
  })) << "the majority elects another";
  EXPECT_TRUE(eventually([&] { return lease.lost().stop_requested(); }));
  EXPECT_FALSE(holder.acquire("y", {.wait = 500ms})) << "a minority grants nothing";
  auto next = waiting.get();
  ASSERT_TRUE(next) << next.error();
  EXPECT_GT(next->token(), lease.token());
  EXPECT_TRUE(eventually([&] { return reader.lost().stop_requested(); }));
  EXPECT_FALSE(reader.upgrade(0s));

  servers.rejoin();
  auto waiting_again = std::async(
      std::launch::async, [&] { return acquire_in_the_end(holder, "x", for_long("etcd", 6s)); });
  EXPECT_TRUE(eventually([&] {
    const auto seen = other.show("x");
    return seen && seen->queue.size() == 1;
  })) << "who was cut off lines up again";
  EXPECT_TRUE(next->is_alive());
  const auto token = next->token();
  EXPECT_TRUE(eventually([&] { return next->release().has_value(); }));
  const auto last = waiting_again.get();
  ASSERT_TRUE(last) << last.error();
  EXPECT_GT(last->token(), token);
}

// The other two are frozen: the one that is left can neither renew nor grant.
TEST_F(EtcdPartition, TheHolderAtALonelyMemberIsToldLongRun) {
  QuorumServers servers{"etcd"};
  const std::size_t alone = (servers.leader() + 1) % 3;
  Client holder = servers.open({alone});
  auto lease = holder.acquire("x", for_long("etcd", 3s)).value();
  for (std::size_t i = 0; i < servers.size(); ++i) {
    if (i != alone) servers[i].signal(SIGSTOP);
  }
  EXPECT_TRUE(eventually([&] { return lease.lost().stop_requested(); }));
  EXPECT_FALSE(holder.acquire("y", {.wait = 500ms}));
  for (std::size_t i = 0; i < servers.size(); ++i) {
    if (i != alone) servers[i].signal(SIGCONT);
  }
  EXPECT_TRUE(eventually([&] { return !lease.is_alive(); }));
  const auto again = acquire_in_the_end(holder, "x", for_long("etcd", 3s));
  ASSERT_TRUE(again) << again.error();
  EXPECT_GT(again->token(), lease.token());
}

// Who can reach the others loses nothing when one of them freezes.
TEST_F(EtcdPartition, AFrozenMemberIsLeftForAnotherLongRun) {
  QuorumServers servers{"etcd"};
  Client client = servers.open();
  auto lease = client.acquire("x", for_long("etcd", 15s)).value();
  for (std::size_t i = 0; i < servers.size(); ++i) {
    servers[i].signal(SIGSTOP);
    EXPECT_TRUE(eventually([&] { return client.acquire("y", {.wait = 5s}).has_value(); }));
    servers[i].signal(SIGCONT);
    EXPECT_TRUE(eventually([&] { return !servers.role(i).empty(); }));
  }
  EXPECT_FALSE(lease.lost().stop_requested());
  EXPECT_TRUE(eventually([&] { return lease.release().has_value(); }));
}

}  // namespace
}  // namespace holdfast::test
