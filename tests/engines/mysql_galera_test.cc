// Two nodes of one cluster: each has locks of its own, both have the tables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <holdfast/holdfast.h>

#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "support/engine_driver.h"
#include "support/eventually.h"
#include "support/galera.h"
#include "support/needs.h"
#include "support/raw_mysql.h"
#include "support/server.h"

namespace holdfast::test {
namespace {

using core::Status;
using ::testing::AnyOf;
using ::testing::HasSubstr;

std::string url(const PrivateServer& node, const std::string& more = "") {
  return "mysql://app@127.0.0.1:" + std::to_string(node.port()) + "/holdfast?timeout=20s" + more;
}

std::vector<Client> clients_of(const std::vector<std::string>& urls) {
  std::vector<Client> clients;
  for (const std::string& each : urls) {
    auto client = Client::open(each);
    EXPECT_TRUE(client) << client.error();
    clients.push_back(std::move(*client));
  }
  return clients;
}

// Threads of both nodes' clients, on names that they share: alone inside, with rising tokens where
// there are any.
void expect_exclusion(const std::vector<std::string>& urls, std::size_t turns_each) {
  constexpr int kThreads = 4;
  constexpr int kNames = 3;
  std::vector<Client> clients = clients_of(urls);
  std::array<std::atomic<int>, kNames> inside{};
  std::array<std::uint64_t, kNames> last{};
  std::atomic<std::size_t> turns = 0;
  std::vector<std::jthread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t turn = 0; turn < turns_each; ++turn) {
        const std::size_t name = (t + turn) % kNames;
        Client& client = clients[t % clients.size()];
        const std::string text = "n" + std::to_string(name);
        auto lease = client.acquire(text, {.wait = kPatience});
        // Two nodes that write the same row refuse each other's commits: a batch may give up, and
        // cannot always say what became of it.
        while (!lease && (lease.error().code == ErrorCode::unavailable ||
                          lease.error().code == ErrorCode::outcome_unknown)) {
          lease = client.acquire(text, {.wait = kPatience});
        }
        ASSERT_TRUE(lease) << lease.error();
        EXPECT_EQ(++inside[name], 1);
        if (lease->token()) {
          EXPECT_GT(*lease->token(), last[name]);
          last[name] = *lease->token();
        }
        --inside[name];
        ++turns;
        const auto released = lease->release();
        EXPECT_TRUE(released) << released.error();
      }
    });
  }
  threads.clear();
  EXPECT_EQ(turns, kThreads * turns_each);
}

// Each of them is counted once.
void expect_no_lost_update(const std::vector<std::string>& urls) {
  constexpr std::size_t kThreads = 4;
  constexpr int kTurns = 25;
  std::vector<Client> clients = clients_of(urls);
  std::atomic<int> stored = 0;
  std::atomic<int> unknown = 0;
  std::vector<std::jthread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const Versioned count = clients[t % clients.size()].versioned("count");
      for (int turn = 0; turn < kTurns; ++turn) {
        const auto done = count.update([](const std::optional<std::string>& now) {
          return std::to_string(now ? std::stoi(*now) + 1 : 1);
        });
        if (done && done->end == UpdateEnd::stored) {
          ++stored;
        } else if (!done) {
          EXPECT_THAT(done.error().code, AnyOf(ErrorCode::unavailable, ErrorCode::outcome_unknown))
              << done.error();
          unknown += done.error().code == ErrorCode::outcome_unknown ? 1 : 0;
        }
      }
    });
  }
  threads.clear();
  int last = 0;  // a node shows what another one wrote after a moment
  eventually([&] {
    const auto read = clients.front().versioned("count").read();
    last = read && *read ? std::stoi((*read)->value) : 0;
    return last >= stored;
  });
  EXPECT_GE(last, stored);
  EXPECT_LE(last, stored + unknown);
}

TEST(MysqlGalera, SessionLocksAreRefusedAndLeasesHoldLongRun) {
  HOLDFAST_SKIP_IF_MISSING(missing_galera());
  const GaleraPair cluster;
  const auto& [one, other] = cluster;
  RawMysql a{std::to_string(one.port())};
  RawMysql b{std::to_string(other.port())};

  // What we refuse would be no lock at all.
  EXPECT_EQ(a.ask_one("SELECT GET_LOCK('both',0)"), "1");
  EXPECT_EQ(b.ask_one("SELECT GET_LOCK('both',0)"), "1");
  a.ask("CREATE TABLE control (name INT PRIMARY KEY) ENGINE=InnoDB");
  a.ask("INSERT INTO control VALUES (1)");
  ASSERT_TRUE(eventually([&] { return b.error_of("SELECT * FROM control") == 0; }));
  ASSERT_TRUE(eventually([&] { return b.ask("SELECT * FROM control").size() == 1; }));
  for (RawMysql* node : {&a, &b}) {
    node->ask("START TRANSACTION");
    EXPECT_EQ(node->ask("SELECT 1 FROM control WHERE name=1 FOR UPDATE").size(), 1U);
  }
  a.ask("ROLLBACK");
  b.ask("ROLLBACK");
  for (const char* strategy : {"advisory", "row", "upsert"}) {
    const auto refused = Client::open(url(one, std::string{"&strategy="} + strategy));
    ASSERT_FALSE(refused) << strategy;
    EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
    EXPECT_THAT(refused.error().text, HasSubstr("Galera"));
  }

  expect_exclusion({url(one), url(other)}, 60);
  expect_no_lost_update({url(one), url(other)});
  for (const char* strategy : {"insert", "timestamp", "slots", "status", "shedlock"}) {
    SCOPED_TRACE(strategy);
    const std::string more = std::string{"&strategy="} + strategy;
    expect_exclusion({url(one, more), url(other, more)}, 6);
  }
  auto client = Client::open(url(one));
  ASSERT_TRUE(client) << client.error();
  auto lease = client->acquire("guarded");
  ASSERT_TRUE(lease) << lease.error();
  const auto fence = lease->fence_sql();
  ASSERT_FALSE(fence);
  EXPECT_EQ(fence.error().code, ErrorCode::unsupported) << fence.error();

  std::string said;
  const auto engine = open_engine(url(other));
  for (const Finding& finding : engine->doctor()) {
    said += finding.topic + ": " + finding.text + "\n";
  }
  EXPECT_THAT(said, HasSubstr("galera: a cluster of 2 nodes"));
}

}  // namespace
}  // namespace holdfast::test
