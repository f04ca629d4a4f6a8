// In one line with etcdctl lock, in both directions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <holdfast/holdfast.h>

#include <cstdlib>
#include <future>

#include "base/ids.h"
#include "support/needs.h"
#include "support/peer.h"
#include "support/server.h"

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

class EtcdInterop : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* program : {"etcd", "etcdctl"}) {
      HOLDFAST_SKIP_IF_MISSING(missing_program(program));
    }
    port_ = shared_server_port("etcd");
  }

  Client open() const { return Client::open("etcd://127.0.0.1:" + port_ + "/" + prefix_).value(); }
  std::vector<std::string> etcdctl() const {
    return {"env",
            "ETCDCTL_API=3",
            "etcdctl",
            "--endpoints=http://127.0.0.1:" + port_,
            "lock",
            "--ttl=10",
            "--",
            prefix_ + "/peers",
            "sh",
            "-c",
            "echo held; while [ ! -e \"$0\" ]; do sleep 0.02; done"};
  }

  std::string port_;
  const std::string prefix_ = "t-" + base::Id::random().hex().substr(0, 12);
};

TEST_F(EtcdInterop, EtcdctlFirstThenWeThenEtcdctl) {
  auto client = open();
  Peer first{etcdctl()};
  ASSERT_TRUE(first.await_hold()) << first.words();
  const LockInfo seen = client.show("peers").value();
  ASSERT_EQ(seen.holders.size(), 1U);
  EXPECT_EQ(seen.holders[0].party.label, "etcd client");
  EXPECT_EQ(client.try_acquire("peers").error().code, ErrorCode::busy);
  auto waiting =
      std::async(std::launch::async, [&] { return client.acquire("peers", {.wait = kPatience}); });
  EXPECT_TRUE(eventually([&] { return client.show("peers").value().queue.size() == 1; }));
  Peer second{etcdctl()};
  EXPECT_TRUE(eventually([&] { return client.show("peers").value().queue.size() == 2; }))
      << second.words();
  ASSERT_TRUE(first.let_go()) << first.words();
  auto lease = waiting.get();
  ASSERT_TRUE(lease) << lease.error();
  EXPECT_FALSE(second.holds());
  EXPECT_TRUE(lease->release());
  EXPECT_TRUE(second.await_hold()) << second.words();
  EXPECT_TRUE(second.let_go());
}

TEST_F(EtcdInterop, AReaderOfOursWaitsForEtcdctlToo) {
  auto client = open();
  Peer first{etcdctl()};
  ASSERT_TRUE(first.await_hold()) << first.words();
  EXPECT_EQ(client.try_acquire("peers", {.mode = Mode::shared}).error().code, ErrorCode::busy);
  EXPECT_TRUE(first.let_go());
  EXPECT_TRUE(client.acquire("peers", {.wait = kPatience, .mode = Mode::shared}));
}

}  // namespace
}  // namespace holdfast::test
