// In one line with Curator and kazoo, in both directions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <holdfast/holdfast.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <thread>

#include "base/ids.h"
#include "support/needs.h"
#include "support/peer.h"
#include "support/server.h"

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

class ZookeeperInterop : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* file :
         {"/usr/bin/java", "/usr/bin/javac", "/usr/share/java/zookeeper.jar",
          "/usr/share/java/curator-recipes.jar", "/usr/lib/python3/dist-packages/kazoo"}) {
      HOLDFAST_SKIP_IF_MISSING(std::filesystem::exists(file)
                                   ? std::nullopt
                                   : std::optional{std::string{file} + " is missing"});
    }
    hosts_ = "127.0.0.1:" + shared_server_port("zookeeper");
  }

  Client open(const std::string& more = "") const {
    return Client::open("zookeeper://" + hosts_ + root_ + "?session_timeout=30s&tick=200ms" + more)
        .value();
  }
  std::string path() const { return root_ + "/peers"; }

  std::vector<std::string> curator(const std::string& kind) const {
    std::string jars;
    for (const char* jar : {"curator-recipes", "curator-framework", "curator-client", "zookeeper",
                            "zookeeper-jute", "guava", "slf4j-api", "slf4j-nop"}) {
      jars.append("/usr/share/java/").append(jar).append(".jar:");
    }
    return {"java", "-Xmx64m", "-XX:TieredStopAtLevel=1",
            "-cp",  jars,      HOLDFAST_SOURCE_DIR "/tests/support/peers/CuratorPeer.java",
            hosts_, kind,      path()};
  }
  std::vector<std::string> kazoo(const std::string& kind) const {
    return {"/usr/bin/python3", HOLDFAST_SOURCE_DIR "/tests/support/peers/kazoo_peer.py", hosts_,
            kind, path()};
  }

  // The peer first, then we, then the peer again.
  void expect_turns(Client& client, const std::vector<std::string>& words,
                    const AcquireOptions& how, const std::string& label) {
    Peer first{words};
    ASSERT_TRUE(first.await_hold()) << first.words();
    const LockInfo seen = client.show("peers").value();
    ASSERT_EQ(seen.holders.size(), 1U);
    EXPECT_THAT(seen.holders[0].party.label, ::testing::StartsWith(label));
    AcquireOptions now = how;
    now.wait = 0s;
    EXPECT_EQ(client.acquire("peers", now).error().code, ErrorCode::busy);
    AcquireOptions patient = how;
    patient.wait = 4 * kPatience;  // Java takes its time to start on a busy machine
    auto waiting = std::async(std::launch::async, [&] { return client.acquire("peers", patient); });
    EXPECT_TRUE(eventually([&] { return client.show("peers").value().queue.size() == 1; }));

    Peer second{words};
    EXPECT_TRUE(
        eventually([&] { return client.show("peers").value().queue.size() == 2; }, 3 * kPatience))
        << second.words();
    EXPECT_EQ(waiting.wait_for(0s), std::future_status::timeout) << "the first still holds it";
    ASSERT_TRUE(first.let_go()) << first.words();
    auto lease = waiting.get();
    ASSERT_TRUE(lease) << lease.error();
    EXPECT_FALSE(second.holds());
    EXPECT_TRUE(lease->release());
    EXPECT_TRUE(second.await_hold()) << second.words();
    EXPECT_TRUE(second.let_go());
  }

  std::string hosts_;
  const std::string root_ = "/t-" + base::Id::random().hex().substr(0, 12);
};

TEST_F(ZookeeperInterop, CuratorsMutex) {
  auto client = open();
  expect_turns(client, curator("mutex"), {}, "curator");
}

TEST_F(ZookeeperInterop, CuratorsWriteLockAgainstOurReaders) {
  auto client = open("&kind=rw");
  expect_turns(client, curator("write"), {.mode = Mode::shared}, "curator");
}

TEST_F(ZookeeperInterop, CuratorsReadersShareWithOurs) {
  auto client = open();
  auto lease = client.acquire("peers", {.mode = Mode::shared});
  ASSERT_TRUE(lease) << lease.error();
  Peer reader{curator("read")};
  EXPECT_TRUE(reader.await_hold()) << reader.words();
  EXPECT_EQ(client.show("peers").value().holders.size(), 2U);
  EXPECT_EQ(open().try_acquire("peers").error().code, ErrorCode::busy);
  EXPECT_TRUE(lease->release());
  EXPECT_EQ(client.try_acquire("peers").error().code, ErrorCode::busy) << "the other still reads";
  EXPECT_TRUE(reader.let_go());
  EXPECT_TRUE(client.acquire("peers", {.wait = kPatience}));
}

TEST_F(ZookeeperInterop, CuratorsSemaphore) {
  auto client = open();
  expect_turns(client, curator("semaphore:1"), {.mode = Mode::permits, .permits = 1, .of = 1},
               "curator");
}

TEST_F(ZookeeperInterop, AReaderIsRefusedWhereJavaHasAMutex) {
  Peer mutex{curator("mutex")};
  ASSERT_TRUE(mutex.await_hold()) << mutex.words();
  auto client = open();
  EXPECT_EQ(client.try_acquire("peers", {.mode = Mode::shared}).error().code,
            ErrorCode::invalid_argument);
  EXPECT_TRUE(mutex.let_go());
}

TEST_F(ZookeeperInterop, KazoosLock) {
  auto client = open("&layout=kazoo");
  expect_turns(client, kazoo("lock"), {}, "kazoo");
}

TEST_F(ZookeeperInterop, KazoosWriteLockAgainstOurReaders) {
  auto client = open("&layout=kazoo");
  expect_turns(client, kazoo("write"), {.mode = Mode::shared}, "kazoo");
}

}  // namespace
}  // namespace holdfast::test
