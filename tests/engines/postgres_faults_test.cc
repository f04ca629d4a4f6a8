// What happens to PostgreSQL, and what the engine makes of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <holdfast/holdfast.h>

#include <future>
#include <set>
#include <string>
#include <thread>

#include "support/engine_driver.h"
#include "support/eventually.h"
#include "support/fault_proxy.h"
#include "support/needs.h"
#include "support/postgres_store.h"
#include "support/server.h"

namespace holdfast {
namespace {

using namespace test;
using core::Status;
using ::testing::HasSubstr;

class PostgresFaults : public ::testing::Test {
 protected:
  void SetUp() override { HOLDFAST_SKIP_IF_MISSING(missing_postgres()); }
  PostgresStore& store() { return store_ ? *store_ : store_.emplace(); }

  // Ours, by the name that this test's URLs give them.
  std::string named() const { return "application_name=" + app_; }
  int connections() {
    return std::stoi(store().sql().value(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = '" + app_ + "'"));
  }
  // Also those that are just being made.
  void terminate_ours() {
    ASSERT_TRUE(eventually([&] {
      store().sql().run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE " +
                        std::string{"application_name = '"} + app_ + "'");
      return connections() == 0;
    }));
  }
  // A role with no more than the documented privileges.
  std::string least_privileged(const std::string& more = "") {
    const std::string role = "r_" + store().schema();
    store().sql().run("CREATE ROLE " + role + " LOGIN " + more);
    store().sql().run("GRANT USAGE ON SCHEMA " + store().schema() + " TO " + role);
    store().sql().run("GRANT SELECT, INSERT, UPDATE, DELETE ON " + store().schema() + ".locks, " +
                      store().schema() + ".fences, " + store().schema() + ".versioned_values TO " +
                      role);
    store().sql().run("GRANT SELECT, UPDATE ON " + store().schema() + ".meta TO " + role);
    role_ = role;
    return role;
  }
  void TearDown() override {
    if (!role_.empty()) {
      store().sql().run("DROP OWNED BY " + role_);
      store().sql().run("DROP ROLE " + role_);
    }
  }

  std::optional<PostgresStore> store_;
  std::string role_;
  const std::string app_ = "test_" + base::Id::random().hex().substr(0, 10);
};

TEST_F(PostgresFaults, TerminatedBackendsLoseNothing) {
  const auto engine = open_engine(store().url(named()));
  const auto granted = submit(*engine, "x", acquire(1));
  ASSERT_EQ(granted.status, Status::granted);
  terminate_ours();
  EXPECT_EQ(submit(*engine, "x", renew(1)).status, Status::renewed);
  terminate_ours();
  EXPECT_EQ(submit(*engine, "x", acquire(1)).token, granted.token);
  terminate_ours();
  EXPECT_EQ(submit(*engine, "x", release(1)).status, Status::released);
}

TEST_F(PostgresFaults, ALostBellIsHungAgain) {
  const auto a = open_engine(store().url(), 1);
  const auto b = open_engine(store().url(named()), 2);
  submit(*a, "x", acquire(1));
  submit(*b, "x", acquire(2));
  terminate_ours();
  EXPECT_TRUE(b->may_have_changed());
  const auto asked = submit(*b, "x", heartbeat(2));  // hangs it
  EXPECT_EQ(asked.status, Status::queued) << asked.error->text;
  submit(*a, "x", release(1));
  std::vector<engine::Ring> rings;
  EXPECT_TRUE(eventually([&] {
    for (const engine::Ring& ring : b->answer_doorbell()) rings.push_back(ring);
    return !rings.empty();
  }));
  EXPECT_EQ(rings.at(0).id, id(2));
}

// Nobody listens yet, so the NOTIFY of a revocation goes into the void.
TEST_F(PostgresFaults, WhoIsRevokedBeforeTheBellHangsIsRungForOnceItDoes) {
  const auto proxy = proxy_to(static_cast<std::uint16_t>(std::stoi(store().port())));
  const auto engine = open_engine("postgres://postgres@127.0.0.1:" + std::to_string(proxy->port()) +
                                  "/postgres?timeout=2s&schema=" + store().schema());
  const auto bystander = open_engine(store().url(), 2);
  proxy->refuse_connections();  // the bell's
  ASSERT_EQ(submit(*engine, "revoked", acquire(1)).status, Status::granted);
  ASSERT_EQ(submit(*engine, "kept", acquire(3)).status, Status::granted);
  ASSERT_EQ(submit(*engine, "given back", acquire(4)).status, Status::granted);
  ASSERT_EQ(submit(*engine, "given back", release(4)).status, Status::released);
  ASSERT_EQ(submit(*bystander, "revoked", core::Revoke{}).status, Status::done);
  EXPECT_THAT(engine->answer_doorbell(), ::testing::IsEmpty());
  proxy->accept_connections();
  submit(*engine, "nobody's", poll(5));  // whoever asks how it stands wants to hear the bell
  const auto rings = wait_for_ring(*engine);
  ASSERT_EQ(rings.size(), 1U);
  EXPECT_EQ(rings[0].id, id(1));
}

TEST_F(PostgresFaults, AKilledServerKeepsLocksAndTokens) {
  PrivateServer server{"postgres", {"durable=1"}};
  const PostgresStore own{std::to_string(server.port())};
  const auto engine = open_engine(own.url());
  core::Acquire lasting = acquire(1);
  lasting.ttl = lasting.window = 1h;  // however long the server takes to come back
  const auto kept = submit(*engine, "kept", lasting);
  const auto freed = submit(*engine, "freed", acquire(2));
  ASSERT_EQ(submit(*engine, "freed", release(2)).status, Status::released);
  ASSERT_EQ(submit(*engine, "other", acquire(3)).status, Status::granted);  // takes it to disk
  server.kill();
  const auto down = submit(*engine, "kept", renew(1));
  EXPECT_EQ(down.status, Status::failed);
  server.start();
  const auto again = submit(*engine, "kept", lasting);
  EXPECT_EQ(again.status, Status::granted) << (again.error ? again.error->text : "");
  EXPECT_EQ(again.token, kept.token);
  EXPECT_GT(submit(*engine, "freed", acquire(4)).token, freed.token);
}

TEST_F(PostgresFaults, ALostReplyIsResolvedByTheRequest) {
  const auto proxy = proxy_to(static_cast<std::uint16_t>(std::stoi(store().port())));
  const std::string url = "postgres://postgres@127.0.0.1:" + std::to_string(proxy->port()) +
                          "/postgres?timeout=2s&schema=" + store().schema();
  const auto engine = open_engine(url);
  ASSERT_EQ(submit(*engine, "warm", acquire(9)).status, Status::granted);
  ASSERT_TRUE(eventually([&] { return !engine->may_have_changed(); }));  // the bell hangs, quiet
  proxy->swallow_reply({.then = Swallow::Then::cut});
  const auto lost = submit(*engine, "x", acquire(1));
  ASSERT_EQ(lost.status, Status::failed);
  EXPECT_EQ(lost.error->code, ErrorCode::outcome_unknown);
  const auto bystander = open_engine(store().url(), 2);
  const auto shown = bystander->show("x");
  ASSERT_TRUE(shown && shown->holders.size() == 1);
  const auto again = submit(*engine, "x", acquire(1));
  EXPECT_EQ(again.status, Status::granted);
  EXPECT_EQ(again.token, shown->holders[0].token);
}

TEST_F(PostgresFaults, AnUnknownSchemaNamesTheRemedy) {
  const auto engine = open_engine("postgres://postgres@127.0.0.1:" + store().port() +
                                  "/postgres?schema=nobody_made_this");
  const auto outcome = submit(*engine, "x", acquire(1));
  ASSERT_EQ(outcome.status, Status::failed);
  EXPECT_EQ(outcome.error->code, ErrorCode::unavailable);
  EXPECT_THAT(outcome.error->text, HasSubstr("holdfast init"));
}

TEST_F(PostgresFaults, AServerThatOnlyReadsSaysSo) {
  const std::string role = least_privileged();
  store().sql().run("ALTER ROLE " + role + " SET default_transaction_read_only = on");
  const auto engine = open_engine(store().url_of(role));
  const auto outcome = submit(*engine, "x", acquire(1));
  ASSERT_EQ(outcome.status, Status::failed);
  EXPECT_EQ(outcome.error->code, ErrorCode::unavailable);
  EXPECT_THAT(outcome.error->text, HasSubstr("primary"));
}

// A real one, by streaming replication; then it takes over.
TEST_F(PostgresFaults, AStandbySaysSoAndServesOncePromoted) {
  PrivateServer primary{"postgres", {"durable=1"}};
  const std::string first = std::to_string(primary.port());
  auto own = std::make_unique<PostgresStore>(first);
  const PrivateServer standby{"postgres", {"durable=1", "standby_of=" + first}};
  const std::string second = std::to_string(standby.port());
  const std::string rest = "/postgres?timeout=20s&schema=" + own->schema();
  const auto both =
      open_engine("postgres://postgres@127.0.0.1:" + second + ",127.0.0.1:" + first + rest, 1);
  const auto granted = submit(*both, "x", acquire(1));
  ASSERT_EQ(granted.status, Status::granted) << "of several servers the primary is found";

  const auto there = open_engine("postgres://postgres@127.0.0.1:" + second + rest, 2);
  const auto refused = submit(*there, "x", try_acquire(2));
  ASSERT_EQ(refused.status, Status::failed);
  EXPECT_EQ(refused.error->code, ErrorCode::unavailable);
  EXPECT_THAT(refused.error->text, HasSubstr("connect to the primary"));
  EXPECT_TRUE(eventually([&] {
    const auto shown = there->show("x");
    return shown && shown->holders.size() == 1 && shown->holders[0].token == granted.token;
  })) << "one can look";

  primary.kill();
  RawPostgres{"host=127.0.0.1 user=postgres dbname=postgres port=" + second}.run(
      "SELECT pg_promote()");
  EXPECT_TRUE(eventually([&] { return submit(*both, "x", renew(1)).status == Status::renewed; }));
  const auto busy = submit(*there, "x", try_acquire(3));
  EXPECT_EQ(busy.status, Status::busy) << (busy.error ? busy.error->text : "");
  EXPECT_EQ(submit(*both, "x", release(1)).status, Status::released);
  EXPECT_GT(submit(*there, "x", acquire(4)).token, granted.token);
}

// Those that one statement wrote carry its transaction's number.
TEST_F(PostgresFaults, AThousandLeasesAreRenewedByOneStatement) {
  const auto engine = open_engine(store().url());
  std::vector<core::Command> takes;
  std::vector<core::Command> renewals;
  for (std::uint32_t i = 1; i <= 1000; ++i) {
    takes.push_back({"many " + std::to_string(i), acquire(i)});
    renewals.push_back({"many " + std::to_string(i), renew(i)});
  }
  for (const auto& outcome : submit(*engine, takes)) {
    ASSERT_EQ(outcome.status, Status::granted);
  }
  for (const auto& outcome : submit(*engine, renewals)) {
    ASSERT_EQ(outcome.status, Status::renewed);
  }
  EXPECT_EQ(store().sql().value("SELECT count(*) || ' ' || count(DISTINCT xmin::text) FROM " +
                                store().schema() + ".locks WHERE starts_with(name, 'many ')"),
            "1000 1");
}

// The next version's init adds to the tables while this one runs.
TEST_F(PostgresFaults, ANewerSchemaServesThisVersionToo) {
  const auto before = open_engine(store().url(), 1);
  ASSERT_EQ(submit(*before, "x", acquire(1)).status, Status::granted);
  for (const char* table : {"locks", "fences", "meta"}) {
    store().sql().run("ALTER TABLE " + store().schema() + "." + table +
                      " ADD COLUMN later text NOT NULL DEFAULT 'unknown to us'");
  }
  store().sql().run("UPDATE " + store().schema() + ".meta SET schema_version = schema_version + 1");
  const auto after = open_engine(store().url(), 2);
  EXPECT_EQ(submit(*after, "x", acquire(2)).status, Status::queued);
  EXPECT_EQ(submit(*before, "x", renew(1)).status, Status::renewed);
  EXPECT_EQ(submit(*before, "x", release(1)).status, Status::released);
  EXPECT_EQ(submit(*after, "x", poll(2)).status, Status::granted);
  EXPECT_TRUE(after->show("x"));
  const std::string version = "SELECT schema_version FROM " + store().schema() + ".meta";
  const std::string newer = store().sql().value(version);
  EXPECT_TRUE(before->init());
  EXPECT_EQ(store().sql().value(version), newer) << "an older init takes nothing back";
  for (const Finding& finding : after->doctor()) {
    EXPECT_NE(finding.level, Finding::Level::problem) << finding.topic << ": " << finding.text;
  }
}

TEST_F(PostgresFaults, TheDocumentedPrivilegesAreEnough) {
  const std::string role = least_privileged();
  const auto a = open_engine(store().url_of(role), 1);
  const auto b = open_engine(store().url_of(role), 2);
  EXPECT_EQ(submit(*a, "x", acquire(1)).status, Status::granted);
  EXPECT_EQ(submit(*b, "x", acquire(2)).status, Status::queued);
  EXPECT_EQ(submit(*a, "x", release(1)).status, Status::released);
  EXPECT_EQ(wait_for_ring(*b).size(), 1U);
  a->tidy();
  EXPECT_TRUE(a->list(""));
  EXPECT_TRUE(
      a->write_value({.name = "x", .expected = {}, .bytes = "y", .writer = id(7)})->applied);
  EXPECT_EQ((*a->load_value("x"))->bytes, "y");
  EXPECT_EQ(a->list_values("x")->size(), 1U);
  std::set<std::string> topics;
  for (const Finding& finding : a->doctor()) {
    EXPECT_NE(finding.level, Finding::Level::problem) << finding.topic << ": " << finding.text;
    topics.insert(finding.topic);
  }
  EXPECT_THAT(topics, ::testing::IsSupersetOf({"version", "privileges", "isolation", "replication",
                                               "durability", "clock", "latency", "pooler"}));
}

TEST_F(PostgresFaults, AnAccountWithoutPrivilegesIsUnauthorized) {
  const std::string role = least_privileged();
  store().sql().run("REVOKE UPDATE ON " + store().schema() + ".locks FROM " + role);
  const auto engine = open_engine(store().url_of(role));
  const auto outcome = submit(*engine, "x", acquire(1));
  ASSERT_EQ(outcome.status, Status::failed);
  EXPECT_EQ(outcome.error->code, ErrorCode::unauthorized);
}

TEST_F(PostgresFaults, WithOneConnectionLeftLocksStillWork) {
  const std::string role = least_privileged("CONNECTION LIMIT 2");
  const auto a = open_engine(store().url_of(role), 1);
  const auto b = open_engine(store().url_of(role), 2);
  EXPECT_EQ(submit(*a, "x", acquire(1)).status, Status::granted);
  EXPECT_EQ(submit(*b, "x", acquire(2)).status, Status::queued);  // though it hears no bell
  EXPECT_TRUE(b->may_have_changed());
  EXPECT_EQ(submit(*a, "x", renew(1)).status, Status::renewed);
  EXPECT_EQ(submit(*a, "x", release(1)).status, Status::released);
  EXPECT_EQ(submit(*b, "x", poll(2)).status, Status::granted);
}

TEST_F(PostgresFaults, ManyWaitersShareThreeConnections) {
  auto holder = Client::open(store().url());
  auto client = Client::open(store().url(named()));
  ASSERT_TRUE(holder && client);
  std::vector<Lease> held;
  for (int i = 0; i < 100; ++i) {
    held.push_back(*holder->acquire("n" + std::to_string(i)));
  }
  std::atomic<int> granted = 0;
  for (int i = 0; i < 300; ++i) {
    client->acquire_then("n" + std::to_string(i % 100), {.wait = test::kPatience},
                         [&](const Result<Lease>& lease) { granted += lease ? 1 : 0; });
  }
  ASSERT_TRUE(eventually([&] { return client->show("n99")->queue.size() == 1; }));
  EXPECT_LE(connections(), 3);
  held.clear();
  EXPECT_TRUE(eventually([&] { return granted == 300; }));
  EXPECT_LE(connections(), 3);
}

// Four processes' worth of batches over the same names in any order: nobody
// hears of deadlocks, whatever isolation is the default.
TEST_F(PostgresFaults, CrossedBatchesNeitherDeadlockNorFail) {
  const std::string role = least_privileged();
  store().sql().run("ALTER ROLE " + role + " SET default_transaction_isolation = serializable");
  store().sql().run("ALTER ROLE " + role + " SET idle_in_transaction_session_timeout = 1");
  std::vector<std::thread> workers;
  std::atomic<int> failures = 0;
  for (std::uint32_t worker = 1; worker <= 4; ++worker) {
    workers.emplace_back([&, worker] {
      const auto engine = open_engine(store().url_of(role), worker);
      for (std::uint32_t round = 0; round < 30; ++round) {
        std::vector<core::Command> batch;
        for (std::uint32_t i = 0; i < 10; ++i) {
          const std::uint32_t place = worker % 2 == 0 ? i : 9 - i;
          auto request = try_acquire(worker * 1000 + place);
          request.session = id(worker);
          const std::string name = "n" + std::to_string(place);
          const auto mine = worker * 1000 + place;
          switch ((round + i) % 3) {
            case 0:
              batch.push_back({name, request});
              break;
            case 1:
              batch.push_back({name, renew(mine)});
              break;
            default:
              batch.push_back({name, release(mine)});
          }
        }
        for (const core::Outcome& outcome : submit(*engine, batch)) {
          failures += outcome.status == Status::failed ? 1 : 0;
        }
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(failures, 0);
}

TEST_F(PostgresFaults, IdleNamesAreForgottenAndTokensGoOn) {
  base::Time now = at(0s);
  const auto engine = open_engine(store().url(), 1, [&] { return now; });
  const auto rows = [&] {
    return std::stoi(store().sql().value("SELECT count(*) FROM " + store().schema() + ".locks"));
  };
  const auto first = submit(*engine, "x", acquire(1));
  submit(*engine, "x", release(1));
  submit(*engine, "held", acquire(2));
  now += 25s;
  engine->tidy();
  EXPECT_EQ(submit(*engine, "held", renew(2)).status, Status::renewed);
  now += 1h;
  submit(*engine, "held", acquire(3));
  EXPECT_TRUE(eventually([&] {
    engine->tidy();
    return rows() == 1;
  }));
  now -= 2h;  // a server's clock that was set back
  EXPECT_GT(submit(*engine, "x", acquire(4)).token, first.token);
}

TEST_F(PostgresFaults, TheTableTellsPeopleWhoHoldsAndWhoWaits) {
  const auto a = open_engine(store().url(), 1);
  const auto b = open_engine(store().url(), 2);
  const std::string name{
      "pay/\xff"
      "day",
      8};
  submit(*a, name, acquire(1));
  const std::string query = "SELECT name, holder, host, pid, waiting, queue, until > now() FROM " +
                            store().schema() + ".locks";
  EXPECT_THAT(store().sql().rows(query).at(0),
              ::testing::ElementsAre("pay/%FFday", "test 1", "here", "42", "0", "", "t"));
  submit(*b, name, acquire(2));
  EXPECT_THAT(store().sql().rows(query).at(0),
              ::testing::ElementsAre("pay/%FFday", "test 1", "here", "42", "1",
                                     "test 2 on here, process 42, exclusive", "t"));
}

TEST_F(PostgresFaults, ADatabaseOfAnotherEncodingKeepsAnyName) {
  const std::string database = "d_" + store().schema();
  store().sql().run("CREATE DATABASE " + database +
                    " ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'");
  {
    const auto engine =
        open_engine("postgres://postgres@127.0.0.1:" + store().port() + "/" + database);
    ASSERT_TRUE(engine->init());
    std::string all;
    for (int c = 0; c < 256; ++c) all.push_back(static_cast<char>(c));
    const std::string low = all.substr(0, 128);
    const std::string high = all.substr(128);
    EXPECT_EQ(submit(*engine, low, acquire(1)).status, Status::granted);
    EXPECT_EQ(submit(*engine, high, acquire(2)).status, Status::granted);
    EXPECT_EQ(submit(*engine, "\xe4\xb8\xad", acquire(3)).status, Status::granted);
    const auto listed = engine->list("");
    ASSERT_TRUE(listed) << listed.error();
    ASSERT_EQ(listed->size(), 3U);
    EXPECT_EQ((*listed)[0].name, low);
    EXPECT_EQ((*listed)[1].name, high);
  }
  store().sql().run("DROP DATABASE " + database + " WITH (FORCE)");
}

TEST_F(PostgresFaults, BehindAPoolerWaitersAskAndDoctorSaysSo) {
  HOLDFAST_SKIP_IF_MISSING(missing_program("pgbouncer"));
  PrivateServer pooler{"pgbouncer", {"upstream=" + store().port()}};
  const std::string url = "postgres://postgres@127.0.0.1:" + std::to_string(pooler.port()) +
                          "/postgres?schema=" + store().schema();
  auto first = Client::open(url);
  auto second = Client::open(url);
  ASSERT_TRUE(first) << first.error();
  ASSERT_TRUE(second) << second.error();
  for (int i = 0; i < 20; ++i) {
    auto lease = first->acquire("n" + std::to_string(i % 3));
    ASSERT_TRUE(lease) << lease.error();
    ASSERT_TRUE(lease->release());
  }
  auto lease = first->acquire("x");
  ASSERT_TRUE(lease) << lease.error();
  auto waiter = std::async(std::launch::async,
                           [&] { return second->acquire("x", {.wait = test::kPatience}); });
  ASSERT_TRUE(eventually([&] { return first->show("x")->queue.size() == 1; }));
  ASSERT_TRUE(lease->release());
  auto granted = waiter.get();
  EXPECT_TRUE(granted) << granted.error();
  bool told = false;
  for (const Finding& finding : first->doctor()) {
    EXPECT_NE(finding.level, Finding::Level::problem) << finding.topic << ": " << finding.text;
    told = told || (finding.topic == "pooler" && finding.level == Finding::Level::warning);
  }
  EXPECT_TRUE(told);
}

// A crash may then take along what was answered.
TEST_F(PostgresFaults, BehindAPoolerDoctorWarnsOfCommitsThatAreNotOnDisk) {
  HOLDFAST_SKIP_IF_MISSING(missing_program("pgbouncer"));
  const PrivateServer server{"postgres", {"durable=1", "synchronous_commit=off"}};
  PostgresStore own{std::to_string(server.port())};
  const PrivateServer pooler{"pgbouncer", {"upstream=" + own.port()}};
  const auto level_of_durability = [&](const std::string& url) {
    for (const Finding& finding : open_engine(url)->doctor()) {
      if (finding.topic == "durability") return finding.level;
    }
    return Finding::Level::problem;
  };
  EXPECT_EQ(level_of_durability(own.url()), Finding::Level::ok);  // we switch it on
  EXPECT_EQ(level_of_durability("postgres://postgres@127.0.0.1:" + std::to_string(pooler.port()) +
                                "/postgres?schema=" + own.schema()),
            Finding::Level::warning);
}

}  // namespace
}  // namespace holdfast
