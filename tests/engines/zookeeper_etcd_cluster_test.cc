// Three servers: one is killed, or cut off, and the locks live on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <holdfast/holdfast.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "support/eventually.h"
#include "support/needs.h"
#include "support/server.h"

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

std::uint16_t free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ::bind(fd, reinterpret_cast<const sockaddr*>(&address), size);
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  ::close(fd);
  return ntohs(address.sin_port);
}

constexpr int kServers = 3;

class QuorumCluster : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const bool there = GetParam() == "etcd"
                           ? !missing_program("etcd")
                           : std::filesystem::exists("/usr/share/java/zookeeper.jar");
    HOLDFAST_SKIP_IF_MISSING(there ? std::nullopt
                                   : std::optional{GetParam() + " is not installed"});
    const bool etcd = GetParam() == "etcd";
    std::vector<std::string> clients;
    std::string peers;
    for (int i = 1; i <= kServers; ++i) {
      clients.push_back(std::to_string(free_port()));
      const std::string one = std::to_string(free_port());
      const std::string other = std::to_string(free_port());
      peers += i == 1 ? "" : ",";
      peers += etcd ? "n" + std::to_string(i) + ":" + clients.back() + ":" + one
                    : clients.back() + ":" + one + ":" + other;
      hosts_ += (i == 1 ? "127.0.0.1:" : ",127.0.0.1:") + clients.back();
    }
    for (int i = 1; i <= kServers; ++i) {
      const std::string number = std::to_string(i);
      servers_.push_back(std::make_unique<PrivateServer>(
          GetParam(), std::vector{"port=" + clients[static_cast<std::size_t>(i - 1)],
                                  "peers=" + peers, etcd ? "name=n" + number : "id=" + number}));
    }
  }

  std::string url() const {
    return GetParam() == "etcd"
               ? "etcd://" + hosts_ + "/t?timeout=2s"
               : "zookeeper://" + hosts_ + "/t?session_timeout=10s&tick=200ms&timeout=10s";
  }
  Client open() const {
    std::optional<Client> client;
    eventually([&] {
      auto opened = Client::open(url());
      if (opened) client.emplace(*std::move(opened));
      return opened.has_value();
    });
    return std::move(client.value());
  }

  std::string hosts_;
  std::vector<std::unique_ptr<PrivateServer>> servers_;
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
  for (auto& server : servers_) {
    server->kill();
    EXPECT_TRUE(goes_on()) << "two of three are enough";
    server->start();
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
  servers_[0]->kill();
  servers_[1]->kill();
  EXPECT_FALSE(client.acquire("y", {.wait = 1s}));
  servers_[0]->start();
  servers_[1]->start();
  EXPECT_TRUE(eventually([&] { return client.acquire("y", {.wait = 5s}).has_value(); }));
}

INSTANTIATE_TEST_SUITE_P(, QuorumCluster, ::testing::Values("zookeeper", "etcd"),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace holdfast::test
