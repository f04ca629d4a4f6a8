// A release with one simple waiter passes the lock on in one statement; everything else goes
// through the lock record, in two.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "support/engine_driver.h"
#include "support/eventually.h"
#include "support/needs.h"
#include "support/postgres_store.h"
#include "support/server.h"

namespace holdfast {
namespace {

using namespace test;
using core::Status;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PostgresHandOver : public ::testing::Test {
 protected:
  // One server for all: it counts statements, which the shared one does not.
  static void SetUpTestSuite() {
    if (!missing_postgres()) {
      server_ = std::make_unique<PrivateServer>(
          "postgres", std::vector<std::string>{"shared_preload_libraries=pg_stat_statements"});
      RawPostgres{"host=127.0.0.1 user=postgres dbname=postgres port=" +
                  std::to_string(server_->port())}
          .run("CREATE EXTENSION pg_stat_statements");
    }
  }
  static void TearDownTestSuite() { server_.reset(); }

  void SetUp() override {
    HOLDFAST_SKIP_IF_MISSING(missing_postgres());
    store_.emplace(std::to_string(server_->port()));
    a_ = open(1);
    b_ = open(2);
  }

  std::unique_ptr<engine::Engine> open(std::uint32_t session) {
    auto engine = open_engine(store_->url(), session, [this] { return now_; });
    submit(*engine, "nobody's", poll(session));  // who asks how it stands hears the bell
    return engine;
  }

  // 1 holds, 2 waits.
  void one_waits(const core::Acquire& holder = acquire(1),
                 const core::Acquire& waiter = acquire(2)) {
    const auto held = submit(*a_, "x", holder);
    ASSERT_EQ(held.status, Status::granted);
    token_ = held.token;
    ASSERT_EQ(submit(*b_, "x", waiter).status, Status::queued);
  }

  // How many statements on locks it takes to give the lock back.
  int statements_to_release(std::uint32_t request = 1) {
    store_->sql().run("SELECT pg_stat_statements_reset()");
    const auto outcome = submit(*a_, "x", release(request));
    EXPECT_EQ(outcome.status, Status::released) << (outcome.error ? outcome.error->text : "");
    return std::stoi(
        store_->sql().value("SELECT coalesce(sum(calls), 0) FROM pg_stat_statements WHERE query "
                            "LIKE '%" +
                            store_->schema() + ".%' AND query NOT LIKE '%pg_stat_statements%'"));
  }

  // b_ was rung for this request with a token above the last one, and has what the ring says.
  void expect_granted(std::uint32_t request, core::Duration lease_for = 20s) {
    const auto rings = wait_for_ring(*b_);
    ASSERT_EQ(rings.size(), 1U);
    EXPECT_EQ(rings[0].id, id(request));
    EXPECT_GE(rings[0].token, token_ + core::kTokenStride);
    const auto outcome = submit(*b_, "x", poll(request));
    EXPECT_EQ(outcome.status, Status::granted);
    EXPECT_EQ(outcome.token, rings[0].token);
    EXPECT_EQ(outcome.lease_for, lease_for);
    EXPECT_THAT(b_->answer_doorbell(), IsEmpty());
  }

  std::string column(const std::string& name) {
    return store_->sql().value("SELECT " + name + " FROM " + store_->schema() +
                               ".locks WHERE name = 'x'");
  }

  static std::unique_ptr<PrivateServer> server_;
  std::optional<PostgresStore> store_;
  base::Time now_ = at(0s);
  std::unique_ptr<engine::Engine> a_;
  std::unique_ptr<engine::Engine> b_;
  std::uint64_t token_ = 0;
};
std::unique_ptr<PrivateServer> PostgresHandOver::server_;

TEST_F(PostgresHandOver, AReleaseWithOneWaiterIsOneStatement) {
  one_waits();
  now_ += 1s;
  EXPECT_EQ(statements_to_release(), 1);
  expect_granted(2);
  EXPECT_EQ(submit(*a_, "x", release(1)).status, Status::not_held);
  EXPECT_THAT(a_->answer_doorbell(), IsEmpty());
  EXPECT_EQ(submit(*b_, "x", renew(2)).lease_for, 30s);
  EXPECT_EQ(submit(*a_, "x", try_acquire(3)).status, Status::busy);
  EXPECT_EQ(submit(*b_, "x", release(2)).status, Status::released);
  EXPECT_EQ(submit(*a_, "x", try_acquire(3)).status, Status::granted);
}

TEST_F(PostgresHandOver, TheRowTellsPeopleWhoIsNextAndThenWhoHolds) {
  one_waits();
  EXPECT_THAT(column("parties"), HasSubstr("passes on to"));
  EXPECT_THAT(column("parties"), HasSubstr("test 2"));
  now_ += 2s;
  EXPECT_EQ(statements_to_release(), 1);
  EXPECT_EQ(
      column("concat_ws(',', holder, host, pid, waiting, until - since, ttl, since)"),
      "test 2,here,42,0,00:00:20,00:00:30," + store_->sql().value("SELECT to_timestamp(3602)"));
  EXPECT_EQ(column("concat(queue, idle_at, parties, record)"), "");
  const auto shown = a_->show("x");
  ASSERT_TRUE(shown) << shown.error();
  ASSERT_EQ(shown->holders.size(), 1U);
  EXPECT_EQ(shown->holders[0].party.label, "test 2");
  EXPECT_THAT(shown->queue, IsEmpty());
}

TEST_F(PostgresHandOver, AWaiterWhoseTimeIsUpDoesNotGetIt) {
  one_waits();
  now_ += 20s;
  EXPECT_EQ(statements_to_release(), 2);
  EXPECT_THAT(b_->answer_doorbell(), IsEmpty());
  EXPECT_EQ(submit(*b_, "x", poll(2)).status, Status::not_held);
  EXPECT_EQ(submit(*a_, "x", try_acquire(3)).status, Status::granted);
  EXPECT_THAT(b_->answer_doorbell(), IsEmpty());
}

TEST_F(PostgresHandOver, AWaiterHasUntilTheLastMicrosecond) {
  one_waits();
  now_ += 20s - 1us;
  EXPECT_EQ(statements_to_release(), 1);
  expect_granted(2);
}

TEST_F(PostgresHandOver, AHeartbeatCounts) {
  one_waits();
  now_ += 15s;
  ASSERT_EQ(submit(*b_, "x", heartbeat(2)).status, Status::queued);
  now_ += 10s;
  EXPECT_EQ(statements_to_release(), 1);
  expect_granted(2);
}

TEST_F(PostgresHandOver, AHolderWhoseTimeIsUpPassesNothingOn) {
  core::Acquire patient = acquire(2);
  patient.ttl = patient.window = 1min;
  one_waits(acquire(1), patient);
  now_ += 30s;
  // The record finds the end of the lease, and gives the lock to the next.
  EXPECT_EQ(submit(*a_, "x", release(1)).status, Status::not_held);
  expect_granted(2, 1min);
}

TEST_F(PostgresHandOver, AShortTtlIsNotMadeLonger) {
  core::Acquire brief = acquire(2);
  brief.ttl = 7s;
  one_waits(acquire(1), brief);
  EXPECT_EQ(statements_to_release(), 1);
  expect_granted(2, 7s);
}

// Before version 15 the server reads a number of microseconds in an interval as a C int.
TEST_F(PostgresHandOver, ALongTtlIsNoLargeNumber) {
  core::Acquire patient = acquire(2);
  patient.ttl = patient.window = 168h;
  one_waits(acquire(1), patient);
  EXPECT_EQ(column("split_part(parties, E'\\t', 6)"), "168:00:00.000000");
  EXPECT_EQ(column("split_part(parties, E'\\t', 7)"), "168:00:00.000000");
  EXPECT_EQ(statements_to_release(), 1);
  expect_granted(2, 168h);
}

// It counts from that heartbeat, so a release that had its time before does not count for it.
TEST_F(PostgresHandOver, AReleaseThatIsOlderThanTheHeartbeatPassesNothingOn) {
  one_waits();
  now_ += 5s;
  ASSERT_EQ(submit(*b_, "x", heartbeat(2)).status, Status::queued);
  now_ -= 1us;
  EXPECT_EQ(statements_to_release(), 2);
  expect_granted(2);
}

TEST_F(PostgresHandOver, ARenewalBetweenChangesNothing) {
  one_waits();
  now_ += 10s;
  ASSERT_EQ(submit(*a_, "x", renew(1)).status, Status::renewed);
  EXPECT_EQ(statements_to_release(), 1);
  expect_granted(2);
}

TEST_F(PostgresHandOver, NobodyElsesReleasePassesItOn) {
  one_waits();
  EXPECT_EQ(submit(*a_, "x", release(9)).status, Status::not_held);
  EXPECT_EQ(submit(*b_, "x", poll(2)).status, Status::queued);
  // The waiter's own ends its wait.
  EXPECT_EQ(submit(*b_, "x", release(2)).status, Status::released);
  EXPECT_EQ(submit(*a_, "x", renew(1)).status, Status::renewed);
  EXPECT_EQ(statements_to_release(), 1);
  EXPECT_THAT(b_->answer_doorbell(), IsEmpty());
}

TEST_F(PostgresHandOver, ATransferredGrantIsPassedOnByItsNewRequest) {
  one_waits();
  core::Transfer handed = transfer(1, 3);
  handed.next.session = id(1);
  const auto moved = submit(*a_, "x", handed);
  ASSERT_EQ(moved.status, Status::granted);
  token_ = moved.token;
  EXPECT_EQ(submit(*a_, "x", release(1)).status, Status::not_held);
  EXPECT_EQ(statements_to_release(3), 1);
  expect_granted(2);
}

TEST_F(PostgresHandOver, OddNamesAndLabelsSurvive) {
  const auto parsed = engine::Url::parse(store_->url());
  ASSERT_TRUE(parsed);
  const std::string odd = "tab\there, line\nthere, %09 and \xff";
  auto other = engine::open(*parsed, {.session = id(7),
                                      .party = {.label = odd, .host = "", .pid = -1},
                                      .now = [this] { return now_; }});
  ASSERT_TRUE(other) << other.error();
  const std::string name = "odd\tname\n'";
  ASSERT_EQ(submit(*a_, name, acquire(1)).status, Status::granted);
  ASSERT_EQ(submit(**other, name, acquire(7)).status, Status::queued);
  ASSERT_EQ(submit(*a_, name, release(1)).status, Status::released);
  const auto shown = a_->show(name);
  ASSERT_TRUE(shown) << shown.error();
  ASSERT_EQ(shown->holders.size(), 1U);
  EXPECT_EQ(shown->holders[0].party.label, odd);
  EXPECT_EQ(shown->holders[0].party.pid, -1);
}

// A clock that was ahead and has been set right: tokens do not come from it for a while.
TEST_F(PostgresHandOver, TokensRiseThoughTheClockIsBehindThem) {
  ASSERT_EQ(submit(*a_, "x", acquire(1)).status, Status::granted);
  store_->sql().run("UPDATE " + store_->schema() + ".locks SET last_token = last_token * 1000");
  token_ = std::stoull(column("last_token"));
  ASSERT_EQ(submit(*b_, "x", acquire(2)).status, Status::queued);
  EXPECT_EQ(statements_to_release(), 1);
  const auto rings = wait_for_ring(*b_);
  ASSERT_EQ(rings.size(), 1U);
  EXPECT_GT(rings[0].token, token_);
  ASSERT_EQ(submit(*b_, "x", release(2)).status, Status::released);
  EXPECT_GE(submit(*a_, "x", acquire(3)).token, rings[0].token + core::kTokenStride);
}

// --- what is not simple

TEST_F(PostgresHandOver, TwoWaitersGoThroughTheRecord) {
  one_waits();
  core::Acquire third = acquire(3);
  third.session = id(2);
  ASSERT_EQ(submit(*b_, "x", third).status, Status::queued);
  EXPECT_EQ(statements_to_release(), 2);
  expect_granted(2);
  EXPECT_EQ(submit(*b_, "x", poll(3)).status, Status::queued);
}

TEST_F(PostgresHandOver, ASharedWaiterGoesThroughTheRecord) {
  one_waits(acquire(1), acquire(2, kShared));
  EXPECT_EQ(statements_to_release(), 2);
  expect_granted(2);
  EXPECT_EQ(submit(*a_, "x", try_acquire(3, kShared)).status, Status::granted);
}

TEST_F(PostgresHandOver, ASharedHolderGoesThroughTheRecord) {
  one_waits(acquire(1, kShared), acquire(2));
  EXPECT_EQ(statements_to_release(), 2);
  expect_granted(2);
}

TEST_F(PostgresHandOver, PermitsGoThroughTheRecord) {
  one_waits(acquire(1, permits(2, 2)), acquire(2, permits(1, 2)));
  EXPECT_EQ(statements_to_release(), 2);
  expect_granted(2);
  EXPECT_EQ(submit(*a_, "x", try_acquire(3, permits(1, 2))).status, Status::granted);
}

TEST_F(PostgresHandOver, ARevokedHolderGoesThroughTheRecord) {
  one_waits();
  ASSERT_EQ(submit(*b_, "x", core::Revoke{}).status, Status::done);
  EXPECT_EQ(statements_to_release(), 2);
  expect_granted(2);
}

TEST_F(PostgresHandOver, AReaderThatWaitsToBeTheWriterGoesThroughTheRecord) {
  const auto reader = submit(*a_, "x", acquire(1, kShared));
  ASSERT_EQ(reader.status, Status::granted);
  token_ = reader.token;
  core::Acquire other = acquire(2, kShared);
  ASSERT_EQ(submit(*b_, "x", other).status, Status::granted);
  ASSERT_EQ(submit(*b_, "x", upgrade(2)).status, Status::queued);
  EXPECT_EQ(statements_to_release(), 2);
  expect_granted(2, 30s);
}

// A fence must rise with the grant, which takes the whole row.
TEST_F(PostgresHandOver, AFencedLockGoesThroughTheRecord) {
  one_waits();
  ASSERT_TRUE(a_->fence_sql("x", token_));
  EXPECT_EQ(statements_to_release(), 2);
  expect_granted(2);
  EXPECT_EQ(store_->sql().value("SELECT f.token = l.token FROM " + store_->schema() +
                                ".fences f JOIN " + store_->schema() + ".locks l USING (name)"),
            "t");
}

TEST_F(PostgresHandOver, WithoutTokensLeftTheRecordDecides) {
  ASSERT_EQ(submit(*a_, "x", acquire(1)).status, Status::granted);
  store_->sql().run("UPDATE " + store_->schema() + ".locks SET last_token = " +
                    std::to_string(core::kMaxToken - core::kTokenStride));
  ASSERT_EQ(submit(*b_, "x", acquire(2)).status, Status::queued);
  EXPECT_THAT(column("parties"), ::testing::Not(HasSubstr("passes on to")));
  EXPECT_EQ(statements_to_release(), 2);
  expect_granted(2);  // the last block
}

// Somebody who knows nothing of that line wrote the row.
TEST_F(PostgresHandOver, WithoutTheLineTheRecordDecides) {
  one_waits();
  store_->sql().run(
      "UPDATE " + store_->schema() +
      ".locks SET parties = regexp_replace(parties, '^[^\\n]*passes on to[^\\n]*\\n', '')");
  ASSERT_THAT(column("parties"), ::testing::Not(HasSubstr("passes on to")));
  EXPECT_EQ(statements_to_release(), 2);
  expect_granted(2);
}

// Before it said when the waiter was last heard, it had another marker: nothing of it is read.
TEST_F(PostgresHandOver, WithALineOfAnOlderVersionTheRecordDecides) {
  one_waits();
  store_->sql().run("UPDATE " + store_->schema() +
                    ".locks SET parties = regexp_replace(parties, "
                    "'^([^\\t]*\\t)passes on to((\\t[^\\t]*){9})\\t[^\\t]*\\t\\n', "
                    "E'\\\\1passes to\\\\2\\t\\n')");
  ASSERT_EQ(column("array_length(string_to_array(split_part(parties, E'\\n', 1), E'\\t'), 1)"),
            "12")
      << "11 fields, and what the last tab ends";
  ASSERT_THAT(column("parties"), HasSubstr("\tpasses to\t"));
  EXPECT_EQ(statements_to_release(), 2);
  expect_granted(2);
}

// --- a crash

// A server that writes its log only when it must.
class PostgresHandOverCrash : public ::testing::Test {
 protected:
  void SetUp() override {
    HOLDFAST_SKIP_IF_MISSING(missing_postgres());
    server_.emplace("postgres", std::vector<std::string>{"durable=1", "wal_writer_delay=10s",
                                                         "autovacuum_naptime=1h"});
    store_.emplace(std::to_string(server_->port()));
    const auto clock = [this] { return now_; };
    a_ = open_engine(store_->url(), 1, clock);
    b_ = open_engine(store_->url(), 2, clock);
    core::Acquire brief = acquire(1);
    brief.ttl = brief.window = 10s;
    ASSERT_EQ(submit(*a_, "x", brief).status, Status::granted);
    // The clock was ahead once: tokens do not come from it for a while.
    store_->sql().run("UPDATE " + store_->schema() + ".locks SET last_token = last_token * 1000");
    ASSERT_EQ(submit(*b_, "x", acquire(2)).status, Status::queued);
    ASSERT_EQ(submit(*a_, "x", release(1)).status, Status::released);
  }
  void crash() {
    server_->kill();
    server_->start();
  }

  std::optional<PrivateServer> server_;
  std::optional<PostgresStore> store_;
  base::Time now_ = at(0s);
  std::unique_ptr<engine::Engine> a_;
  std::unique_ptr<engine::Engine> b_;
};

// What was passed on is not on disk when it is told. Lost in a crash, it leaves the waiter where it
// was: nobody gets the lock before it stops waiting, and nobody ever gets its tokens.
TEST_F(PostgresHandOverCrash, NobodyGetsTheLockOrTheTokenThatItSwallowed) {
  const auto rings = wait_for_ring(*b_);
  ASSERT_EQ(rings.size(), 1U);
  crash();
  // Nearly always: the log may have been written just then.
  const bool swallowed = insist(*a_, "x", poll(1)).status == Status::granted;
  EXPECT_EQ(insist(*b_, "x", renew(2)).status, swallowed ? Status::not_held : Status::renewed);
  now_ += 20s - 1us;  // b may believe that it holds the lock; a is long gone
  core::Acquire hasty = acquire(3);
  hasty.queue = false;
  hasty.barge = true;
  EXPECT_EQ(submit(*a_, "x", hasty).status, Status::busy);
  now_ += 20s + 1us;
  const auto next = submit(*a_, "x", acquire(3));
  EXPECT_EQ(next.status, Status::granted);
  EXPECT_GE(next.token, rings[0].token + core::kTokenStride);
}

TEST_F(PostgresHandOverCrash, WhoLookedAndWasToldThatItHoldsStillDoes) {
  now_ += 5s;
  const auto looked = submit(*b_, "x", poll(2));
  ASSERT_EQ(looked.status, Status::granted);
  crash();
  EXPECT_EQ(insist(*b_, "x", poll(2)).token, looked.token);
  EXPECT_EQ(submit(*a_, "x", poll(1)).status, Status::not_held);
}

TEST_F(PostgresHandOverCrash, WhoAskedAgainAndWasToldThatItHoldsStillDoes) {
  const auto asked = submit(*b_, "x", acquire(2));
  ASSERT_EQ(asked.status, Status::granted);
  crash();
  EXPECT_EQ(insist(*b_, "x", poll(2)).token, asked.token);
}

TEST_F(PostgresHandOverCrash, WhoRenewedStillHolds) {
  const auto renewed = submit(*b_, "x", renew(2));
  ASSERT_EQ(renewed.status, Status::renewed);
  crash();
  EXPECT_EQ(insist(*b_, "x", poll(2)).token, renewed.token);
}

}  // namespace
}  // namespace holdfast
