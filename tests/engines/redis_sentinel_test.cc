// A master, a replica and three sentinels.
#include <gtest/gtest.h>
#include <holdfast/holdfast.h>

#include <list>
#include <string>

#include "support/eventually.h"
#include "support/needs.h"
#include "support/raw_redis.h"
#include "support/server.h"

namespace holdfast {
namespace {

using namespace test;
using namespace std::chrono_literals;

class RedisSentinel : public ::testing::Test {
 protected:
  void SetUp() override {
    HOLDFAST_SKIP_IF_MISSING(missing_program("redis-sentinel"));
    master_ = std::make_unique<PrivateServer>("redis");
    const std::string port = std::to_string(master_->port());
    replica_ = std::make_unique<PrivateServer>(
        "redis", std::vector<std::string>{"--replicaof=127.0.0.1 " + port});
    for (int i = 0; i < 3; ++i) {
      sentinels_.emplace_back("sentinel", std::vector<std::string>{"master=" + port});
      hosts_ += (i == 0 ? "" : ",") + std::string{"127.0.0.1:"} +
                std::to_string(sentinels_.back().port());
    }
    // They find each other and the replica through the master.
    ASSERT_TRUE(eventually([&] {
      for (const PrivateServer& each : sentinels_) {
        RawRedis sentinel{std::to_string(each.port())};
        if (sentinel.ask({"SENTINEL", "replicas", "mymaster"}).items.size() != 1 ||
            sentinel.ask({"SENTINEL", "sentinels", "mymaster"}).items.size() != 2) {
          return false;
        }
      }
      return true;
    }));
  }

  std::string url() const { return "redis+sentinel://" + hosts_ + "/mymaster?timeout=3s"; }

  std::unique_ptr<PrivateServer> master_;
  std::unique_ptr<PrivateServer> replica_;
  std::list<PrivateServer> sentinels_;
  std::string hosts_;
};

TEST_F(RedisSentinel, AFailoverIsFollowedAndWhatTheNewMasterDoesNotKnowIsLost) {
  auto client = Client::open(url(), {});
  ASSERT_TRUE(client) << client.error();
  auto kept = client->acquire("kept", {.ttl = 1h});
  ASSERT_TRUE(kept) << kept.error();
  RawRedis old{std::to_string(master_->port())};
  ASSERT_EQ(old.ask({"WAIT", "1", "20000"}).integer, 1);
  // The next grant never reaches the replica.
  RawRedis{std::to_string(replica_->port())}.ask({"CONFIG", "SET", "masterauth", "wrong"});
  old.ask({"CLIENT", "KILL", "TYPE", "replica"});
  auto forgotten = client->acquire("forgotten", {.ttl = 1h});
  ASSERT_TRUE(forgotten) << forgotten.error();
  master_->kill();

  EXPECT_TRUE(eventually([&] { return forgotten->lost().stop_requested(); }))
      << "long before its ttl";
  EXPECT_FALSE(kept->lost().stop_requested());
  EXPECT_TRUE(kept->is_alive());
  auto again = client->acquire("forgotten", {.wait = 30s});
  ASSERT_TRUE(again) << again.error();
  EXPECT_TRUE(again->release());
  EXPECT_TRUE(kept->release());
}

// Sentinels on this machine, their master elsewhere: no password goes there in the clear.
TEST(RedisSentinelSecrecy, AMasterOnAnotherMachineIsReachedWithTlsAlone) {
  HOLDFAST_SKIP_IF_MISSING(missing_program("redis-sentinel"));
  const PrivateServer sentinel{"sentinel", {"master=1"}};
  const std::string port = std::to_string(sentinel.port());
  RawRedis{port}.ask({"SENTINEL", "MONITOR", "elsewhere", "192.0.2.1", "6379", "1"});
  const auto refused = Client::open("redis+sentinel://127.0.0.1:" + port + "/elsewhere?timeout=5s");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument) << refused.error();
  EXPECT_NE(refused.error().text.find("tls=true"), std::string::npos) << refused.error();
}

}  // namespace
}  // namespace holdfast
