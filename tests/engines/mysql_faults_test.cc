// What happens to MySQL and MariaDB, and what the engine makes of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <thread>

#include "support/engine_driver.h"
#include "support/eventually.h"
#include "support/fault_proxy.h"
#include "support/mysql_store.h"
#include "support/needs.h"

namespace holdfast {
namespace {

using namespace test;
using core::Outcome;
using core::Status;

class MysqlFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    HOLDFAST_SKIP_IF_MISSING(missing_program("mariadbd"));
    store_ = std::make_unique<MysqlStore>();
  }

  std::unique_ptr<MysqlStore> store_;
};

std::string said(const Outcome& outcome) {
  return outcome.error ? outcome.error->text : "no error";
}

// One of eight that ask for the same ten locks, several at a time and in no
// order: what the server answers with 1213 and 1205 is nobody's business.
void mix(engine::Engine& engine, std::uint32_t number, std::atomic<int>& failures,
         std::array<std::atomic<std::uint32_t>, 10>& holders) {
  std::mt19937 random{number};
  std::uint32_t next = number * 100'000;
  std::map<std::size_t, std::uint32_t> held;
  std::map<std::size_t, std::uint32_t> waiting;
  for (int round = 0; round < 40; ++round) {
    std::vector<core::Command> batch;
    std::vector<std::size_t> names(holders.size());
    std::iota(names.begin(), names.end(), 0U);
    std::shuffle(names.begin(), names.end(), random);
    names.resize(1 + random() % names.size());
    std::vector<std::uint32_t> ids;
    for (const std::size_t name : names) {
      const std::string text = "lock " + std::to_string(name);
      const auto has = held.find(name);
      const auto waits = waiting.find(name);
      if (has != held.end() && random() % 2 == 0) {
        batch.push_back({text, renew(has->second)});
        ids.push_back(has->second);
      } else if (has != held.end()) {
        std::uint32_t expected = number;
        holders.at(name).compare_exchange_strong(expected, 0);
        failures += expected == number ? 0 : 1;
        batch.push_back({text, release(has->second)});
        ids.push_back(has->second);
      } else if (waits != waiting.end()) {
        batch.push_back({text, heartbeat(waits->second)});
        ids.push_back(waits->second);
      } else {
        core::Acquire wanted = acquire(++next);
        wanted.session = id(number);
        wanted.queue = random() % 2 == 0;
        batch.push_back({text, wanted});
        ids.push_back(next);
      }
    }
    const auto outcomes = submit(engine, batch);
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      const std::size_t name = names[i];
      EXPECT_NE(outcomes[i].status, Status::failed) << said(outcomes[i]);
      failures += outcomes[i].status == Status::failed ? 1 : 0;
      waiting.erase(name);
      if (outcomes[i].status == Status::granted) {
        std::uint32_t nobody = 0;
        EXPECT_TRUE(holders.at(name).compare_exchange_strong(nobody, number)) << "two holders";
        held[name] = ids[i];
      } else if (outcomes[i].status == Status::queued) {
        waiting[name] = ids[i];
      } else if (outcomes[i].status == Status::released) {
        held.erase(name);
      } else if (outcomes[i].status != Status::busy) {
        EXPECT_EQ(outcomes[i].status, Status::renewed);
      }
    }
  }
  for (const auto& all : {held, waiting}) {
    for (const auto& [name, number_of] : all) {
      std::uint32_t mine = number;
      holders.at(name).compare_exchange_strong(mine, 0);
      submit(engine, "lock " + std::to_string(name), release(number_of));
    }
  }
}

TEST_F(MysqlFaults, EightWhoMixTenNamesInNoOrderHearOfNoDeadlock) {
  std::array<std::atomic<std::uint32_t>, 10> holders{};
  std::atomic<int> failures = 0;
  std::vector<std::jthread> threads;
  threads.reserve(8);
  for (std::uint32_t number = 1; number <= 8; ++number) {
    threads.emplace_back([&, number] {
      const auto engine = open_engine(store_->url(), number);
      mix(*engine, number, failures, holders);
    });
  }
  threads.clear();
  EXPECT_EQ(failures, 0);
}

TEST_F(MysqlFaults, LeasesSurviveTheirKilledSessions) {
  const auto a = open_engine(store_->url(), 1);
  const auto b = open_engine(store_->url(), 2);
  const Outcome before = submit(*a, "x", acquire(1));
  ASSERT_EQ(before.status, Status::granted);
  ASSERT_EQ(submit(*b, "x", acquire(2)).status, Status::queued);
  for (int i = 0; i < 3; ++i) {
    ASSERT_GT(store_->kill_sessions(), 0U);
    // Killed while idle: the next use finds out before it sends anything.
    const Outcome renewed = submit(*a, "x", renew(1));
    EXPECT_EQ(renewed.status, Status::renewed) << said(renewed);
    EXPECT_EQ(renewed.token, before.token);
    EXPECT_EQ(submit(*b, "x", heartbeat(2)).status, Status::queued);
  }
  EXPECT_EQ(submit(*a, "x", release(1)).status, Status::released);
  EXPECT_EQ(submit(*b, "x", poll(2)).status, Status::granted);
}

// Those who sleep share a mutex of the server, and a KILL QUERY that meets another of them
// there takes two seconds, for everybody. Those who wait for a user-level lock do not.
TEST_F(MysqlFaults, ADoorbellDoesNotSleepInTheServersOneBed) {
  if (!store_->is_mariadb()) GTEST_SKIP() << "a fault of MariaDB";
  const auto a = open_engine(store_->url(), 1);
  const auto b = open_engine(store_->url(), 2);
  ASSERT_EQ(submit(*a, "x", acquire(1)).status, Status::granted);
  ASSERT_EQ(submit(*b, "x", acquire(2)).status, Status::queued);
  const auto waits = [&](const std::string& state) {
    b->answer_doorbell();  // it moves on if somebody looks
    return store_->sessions_in(state) > 0;
  };
  EXPECT_TRUE(eventually([&] { return waits("User lock"); }));
  EXPECT_EQ(store_->sessions_in("User sleep"), 0U);
  EXPECT_EQ(submit(*a, "x", release(1)).status, Status::released);
  EXPECT_FALSE(wait_for_ring(*b).empty());

  // Whoever kept the door shut is gone: it is heard all the same.
  ASSERT_EQ(submit(*b, "x", release(2)).status, Status::released);
  ASSERT_EQ(submit(*a, "y", acquire(3)).status, Status::granted);
  ASSERT_EQ(submit(*b, "y", acquire(4)).status, Status::queued);
  ASSERT_GT(store_->kill_sessions(), 0U);
  EXPECT_TRUE(eventually([&] { return waits("User sleep"); }));
  EXPECT_EQ(submit(*a, "y", release(3)).status, Status::released);
  EXPECT_FALSE(wait_for_ring(*b).empty());
}

TEST_F(MysqlFaults, AResetLineIsNoticedBeforeItIsUsed) {
  const auto proxy = proxy_to(store_->port());
  const auto engine = open_engine(store_->url(proxy->port()));
  ASSERT_EQ(submit(*engine, "x", acquire(1)).status, Status::granted);
  proxy->reset_all();
  ASSERT_TRUE(eventually([&] { return proxy->connections() == 0; }));
  const Outcome renewed = submit(*engine, "x", renew(1));
  EXPECT_EQ(renewed.status, Status::renewed) << said(renewed);
}

TEST_F(MysqlFaults, ALostReplyIsResolvedByAskingAgain) {
  const auto proxy = proxy_to(store_->port());
  const auto engine = open_engine(store_->url(proxy->port()) + "&timeout=2s");
  ASSERT_EQ(insist(*engine, "warm-up", acquire(9)).status, Status::granted);
  for (const auto then : {Swallow::Then::cut, Swallow::Then::silence}) {
    const std::uint32_t number = then == Swallow::Then::cut ? 1 : 2;
    const std::string name = "lock " + std::to_string(number);
    proxy->swallow_reply({.pattern = "INSERT INTO", .then = then});
    const Outcome lost = submit(*engine, name, acquire(number));
    ASSERT_TRUE(lost.error);
    EXPECT_EQ(lost.error->code, ErrorCode::outcome_unknown) << lost.error->text;
    proxy->stop_swallowing();
    const std::uint64_t granted = store_->token_of(name);
    const Outcome found = insist(*engine, name, acquire(number));
    EXPECT_EQ(found.status, Status::granted);
    EXPECT_EQ(found.token, granted) << "one grant, not two";

    proxy->swallow_reply({.pattern = "UPDATE", .then = then});
    const Outcome gone = submit(*engine, name, release(number));
    ASSERT_TRUE(gone.error);
    EXPECT_EQ(gone.error->code, ErrorCode::outcome_unknown) << gone.error->text;
    proxy->stop_swallowing();
    // Somebody else has it now, and the repeated release leaves them alone.
    ASSERT_EQ(insist(*engine, name, acquire(number + 10)).status, Status::granted);
    EXPECT_EQ(insist(*engine, name, release(number)).status, Status::not_held);
    EXPECT_EQ(insist(*engine, name, renew(number + 10)).status, Status::renewed);
  }
}

TEST_F(MysqlFaults, ABlackHoleGivesAnAnswerInTimeAndOneGrant) {
  const auto proxy = proxy_to(store_->port());
  const auto engine = open_engine(store_->url(proxy->port()) + "&timeout=1s");
  ASSERT_EQ(insist(*engine, "warm-up", acquire(9)).status, Status::granted);
  proxy->block(Way::from_store);
  const Outcome lost = submit(*engine, "x", acquire(1));
  ASSERT_TRUE(lost.error);
  EXPECT_EQ(lost.error->code, ErrorCode::outcome_unknown) << lost.error->text;
  // Nothing can be sent any more: nothing was applied.
  proxy->block(Way::to_store);
  const Outcome nothing = submit(*engine, "y", acquire(2));
  ASSERT_TRUE(nothing.error);
  EXPECT_EQ(nothing.error->code, ErrorCode::unavailable) << nothing.error->text;
  proxy->heal();
  const std::uint64_t granted = store_->token_of("x");
  EXPECT_EQ(insist(*engine, "x", acquire(1)).token, granted);
}

// Rows of idle names go while their names are in use: tokens rise all the same.
TEST_F(MysqlFaults, CleaningUpNeverLowersAToken) {
  const std::string url = store_->url() + "&keep_idle=0s";
  std::atomic<bool> over = false;
  std::jthread cleaner{[&] {
    const auto engine = open_engine(url, 9);
    while (!over) {
      engine->tidy();
    }
  }};
  const auto a = open_engine(url, 1);
  const auto b = open_engine(url, 2);
  std::uint64_t last = 0;
  for (std::uint32_t i = 1; i < 300; ++i) {
    engine::Engine& engine = i % 2 == 0 ? *a : *b;
    const Outcome outcome = submit(engine, "x", acquire(i));
    EXPECT_EQ(outcome.status, Status::granted) << said(outcome);
    EXPECT_GT(outcome.token, last);
    last = outcome.token + core::kTokenStride - 1;
    EXPECT_EQ(submit(engine, "x", release(i)).status, Status::released);
  }
  EXPECT_TRUE(eventually([&] { return store_->rows() == 0; })) << "nothing was ever cleaned up";
  over = true;
}

TEST_F(MysqlFaults, OddNamesAreNamesOfTheirOwn) {
  std::vector<std::string> names{"a",
                                 "A",
                                 "a ",
                                 " a",
                                 "\xc3\xa4",
                                 "a\xcc\x88",
                                 "'",
                                 "\"",
                                 "`",
                                 "\\",
                                 "%",
                                 "_",
                                 "--",
                                 ";",
                                 "x'",
                                 "\n",
                                 std::string(1, '\0'),
                                 "\xff",
                                 "\xf0\x9f\x94\x92",
                                 std::string(255, 'a'),
                                 std::string(254, 'a') + "b",
                                 std::string(255, '\xff'),
                                 "'; DROP TABLE holdfast_locks; --"};
  const auto engine = open_engine(store_->url());
  std::vector<core::Command> takes;
  for (std::uint32_t i = 0; i < names.size(); ++i) {
    takes.push_back({names[i], try_acquire(i + 1)});
  }
  for (const Outcome& outcome : submit(*engine, takes)) {
    EXPECT_EQ(outcome.status, Status::granted) << said(outcome);
  }
  const auto listed = engine->list("");
  ASSERT_TRUE(listed) << listed.error();
  std::set<std::string> found;
  for (const LockInfo& info : *listed) {
    found.insert(info.name);
  }
  EXPECT_EQ(found, std::set<std::string>(names.begin(), names.end()));
}

// The next version's init adds to the tables while this one runs.
TEST_F(MysqlFaults, ANewerSchemaServesThisVersionToo) {
  const auto before = open_engine(store_->url(), 1);
  ASSERT_EQ(submit(*before, "x", acquire(1)).status, Status::granted);
  for (const char* table : {"locks", "notes", "fences", "schema"}) {
    store_->root().ask("ALTER TABLE " + store_->prefix() + table +
                       " ADD COLUMN later VARCHAR(20) NOT NULL DEFAULT 'unknown to us'");
  }
  const std::string schema = store_->prefix() + "schema";
  store_->root().ask("UPDATE " + schema + " SET version=version+1");
  const auto after = open_engine(store_->url(), 2);
  EXPECT_EQ(submit(*after, "x", acquire(2)).status, Status::queued);
  EXPECT_EQ(submit(*before, "x", renew(1)).status, Status::renewed);
  EXPECT_EQ(submit(*before, "x", release(1)).status, Status::released);
  EXPECT_EQ(submit(*after, "x", poll(2)).status, Status::granted);
  EXPECT_TRUE(after->show("x"));
  const std::string newer = store_->root().ask_one("SELECT version FROM " + schema);
  EXPECT_TRUE(before->init());
  EXPECT_EQ(store_->root().ask_one("SELECT version FROM " + schema), newer)
      << "an older init takes nothing back";
}

TEST_F(MysqlFaults, TheDoctorTellsWhatItLookedAt) {
  const auto engine = open_engine(store_->url());
  ASSERT_TRUE(engine->init());
  std::map<std::string, std::string> told;
  for (const Finding& finding : engine->doctor()) {
    EXPECT_EQ(finding.level, Finding::Level::ok) << finding.topic << ": " << finding.text;
    told[finding.topic] = finding.text;
  }
  for (const char* topic : {"server", "tables", "privileges", "clock", "round trip", "commit",
                            "replication", "doorbell"}) {
    EXPECT_TRUE(told.contains(topic)) << topic;
  }
  EXPECT_EQ(told["features"], store_->is_mariadb() ? "RETURNING, NOWAIT, SKIP LOCKED"
                                                   : "no RETURNING, NOWAIT, SKIP LOCKED");
  const auto global = [&](const char* name) {
    return store_->root().ask_one(std::string{"SELECT @@global."} + name);
  };
  EXPECT_THAT(told["isolation"],
              ::testing::HasSubstr(
                  global(store_->is_mariadb() ? "tx_isolation" : "transaction_isolation")));
  EXPECT_THAT(told["wait_timeout"], ::testing::HasSubstr(global("wait_timeout") + " s"));
}

// Only what the documentation asks for.
TEST_F(MysqlFaults, TheDocumentedPrivilegesAreEnough) {
  ASSERT_TRUE(open_engine(store_->url())->init());
  const std::string user = store_->add_least_user();
  const auto a = open_engine(store_->url_of(user), 1);
  const auto b = open_engine(store_->url_of(user), 2);
  ASSERT_EQ(submit(*a, "x", acquire(1)).status, Status::granted);
  ASSERT_EQ(submit(*b, "x", acquire(2)).status, Status::queued);
  ASSERT_EQ(submit(*a, "x", renew(1)).status, Status::renewed);
  ASSERT_EQ(submit(*a, "x", release(1)).status, Status::released);
  EXPECT_THAT(wait_for_ring(*b), ::testing::Not(::testing::IsEmpty()));
  ASSERT_EQ(submit(*b, "x", poll(2)).status, Status::granted);
  ASSERT_EQ(submit(*a, "x", core::Revoke{}).status, Status::done);
  EXPECT_EQ(submit(*b, "x", renew(2)).status, Status::revoked);
  EXPECT_EQ(submit(*b, "s", acquire(3, permits(1, 2))).status, Status::granted);
  EXPECT_TRUE(a->list(""));
  a->tidy();
  for (const Finding& finding : a->doctor()) {
    EXPECT_NE(finding.level, Finding::Level::problem) << finding.topic << ": " << finding.text;
  }
  store_->drop_user(user);
}

}  // namespace
}  // namespace holdfast
