// A release with one simple waiter passes the lock on in one packet, and rings before the disk is
// waited for; everything else goes through the lock record, in two.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "support/engine_driver.h"
#include "support/eventually.h"
#include "support/mysql_store.h"
#include "support/needs.h"

namespace holdfast {
namespace {

using namespace test;
using core::Status;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Two engines that have met at "x" before: who never saw a waiter there does not look for one.
class Pair {
 public:
  explicit Pair(MysqlStore& store, const std::string& url = {}) {
    const auto clock = [this] { return now; };
    a = open_engine(store.url(), 1, clock);
    b = open_engine(url.empty() ? store.url() : url, 2, clock);
    core::Acquire waiting = acquire(92);
    waiting.session = id(1);
    submit(*b, "x", acquire(91));
    EXPECT_EQ(submit(*a, "x", waiting).status, Status::queued);
    EXPECT_EQ(submit(*b, "x", release(91)).status, Status::released);
    EXPECT_EQ(submit(*a, "x", release(92)).status, Status::released);
    a->answer_doorbell();
  }

  base::Time now = at(0s);
  std::unique_ptr<engine::Engine> a;
  std::unique_ptr<engine::Engine> b;
};

class MysqlHandOver : public ::testing::Test {
 protected:
  // One server for all: it counts statements, which the shared one does not.
  static void SetUpTestSuite() {
    if (!missing_program("mariadbd")) {
      store_ = std::make_unique<MysqlStore>(std::vector<std::string>{});
    }
  }
  static void TearDownTestSuite() { store_.reset(); }

  void SetUp() override {
    HOLDFAST_SKIP_IF_MISSING(missing_program("mariadbd"));
    pair_.emplace(*store_);
  }
  static std::string bell_of(std::uint32_t session) { return "holdfast.bell." + id(session).hex(); }
  void TearDown() override {
    pair_.reset();
    if (store_) {
      store_->kill_sessions();  // the next test's doorbells have the same names
      store_->root().ask("DELETE FROM " + store_->prefix() + "locks");
    }
  }

  engine::Engine& a() { return *pair_->a; }
  engine::Engine& b() { return *pair_->b; }
  base::Time& now() { return pair_->now; }

  // 1 holds, 2 waits.
  void one_waits(const core::Acquire& holder = acquire(1),
                 const core::Acquire& waiter = acquire(2)) {
    const auto held = submit(a(), "x", holder);
    ASSERT_EQ(held.status, Status::granted);
    token_ = held.token;
    ASSERT_EQ(submit(b(), "x", waiter).status, Status::queued);
    sleeps();
  }
  // Until b's doorbell can be heard.
  void sleeps() { sleeps(b(), 2); }
  void sleeps(engine::Engine& engine, std::uint32_t session) {
    ASSERT_TRUE(eventually([&] {
      engine.answer_doorbell();
      return !store_->root()
                  .ask(
                      "SELECT 1 FROM information_schema.PROCESSLIST WHERE INFO LIKE "
                      "'%holdfast_doze%' AND STATE IN "
                      "('User lock', 'User sleep') AND ID = IS_USED_LOCK('" +
                      bell_of(session) + "')")
                  .empty();
    }));
  }

  std::uint64_t writes_so_far() {
    std::uint64_t sum = 0;
    for (const auto& row : store_->root().ask(
             "SHOW GLOBAL STATUS WHERE Variable_name IN ('Com_insert','Com_update')")) {
      sum += std::stoull(row.at(1));
    }
    return sum;
  }
  // How many statements that may write it takes to give the lock back.
  std::uint64_t statements_to_release(std::uint32_t request = 1) {
    const std::uint64_t before = writes_so_far();
    const auto outcome = submit(a(), "x", release(request));
    EXPECT_EQ(outcome.status, Status::released) << (outcome.error ? outcome.error->text : "");
    return writes_so_far() - before;
  }

  // b was rung for this request with a token above the last one, and has what the ring says.
  void expect_granted(std::uint32_t request, core::Duration lease_for = 20s) {
    const auto rings = wait_for_ring(b());
    ASSERT_EQ(rings.size(), 1U);
    EXPECT_EQ(rings[0].id, id(request));
    EXPECT_GE(rings[0].token, token_ + core::kTokenStride);
    const auto outcome = submit(b(), "x", poll(request));
    EXPECT_EQ(outcome.status, Status::granted);
    EXPECT_EQ(outcome.token, rings[0].token);
    EXPECT_EQ(outcome.lease_for, lease_for);
    EXPECT_THAT(b().answer_doorbell(), IsEmpty());
  }

  std::string column(const std::string& expression, const std::string& name = "x") {
    return store_->root()
        .ask("SELECT " + expression + " FROM " + store_->prefix() + "locks WHERE name = '" + name +
             "'")
        .at(0)
        .at(0);
  }
  bool says_who_is_next() { return column("session_id = REPEAT(x'00', 16)") == "0"; }

  static std::unique_ptr<MysqlStore> store_;
  std::optional<Pair> pair_;
  std::uint64_t token_ = 0;
};
std::unique_ptr<MysqlStore> MysqlHandOver::store_;

TEST_F(MysqlHandOver, AReleaseWithOneWaiterIsOneStatement) {
  one_waits();
  now() += 1s;
  EXPECT_EQ(statements_to_release(), 1);
  expect_granted(2);
  EXPECT_EQ(submit(a(), "x", release(1)).status, Status::not_held);
  EXPECT_THAT(a().answer_doorbell(), IsEmpty());
  EXPECT_EQ(submit(b(), "x", renew(2)).lease_for, 30s);
  EXPECT_EQ(submit(a(), "x", try_acquire(3)).status, Status::busy);
  EXPECT_EQ(submit(b(), "x", release(2)).status, Status::released);
  EXPECT_EQ(submit(a(), "x", try_acquire(3)).status, Status::granted);
}

TEST_F(MysqlHandOver, TheRowTellsPeopleWhoIsNextAndThenWhoHolds) {
  one_waits();
  EXPECT_TRUE(says_who_is_next());
  EXPECT_THAT(column("queue"), HasSubstr("test 2"));
  now() += 2s;
  EXPECT_EQ(statements_to_release(), 1);
  EXPECT_EQ(column("CONCAT_WS(',', holder, host, pid, waiting, "
                   "TIMESTAMPDIFF(SECOND, held_since, held_until), ttl_us, held_since)"),
            "test 2,here,42,0,20,30000000,1970-01-01 01:00:02.000000");
  EXPECT_EQ(column("queue IS NULL AND rest IS NULL"), "1");
  const auto shown = a().show("x");
  ASSERT_TRUE(shown) << shown.error();
  ASSERT_EQ(shown->holders.size(), 1U);
  EXPECT_EQ(shown->holders[0].party.label, "test 2");
  EXPECT_THAT(shown->queue, IsEmpty());
}

TEST_F(MysqlHandOver, AWaiterWhoseTimeIsUpDoesNotGetIt) {
  one_waits();
  now() += 20s;
  EXPECT_EQ(statements_to_release(), 2);
  EXPECT_EQ(submit(b(), "x", poll(2)).status, Status::not_held);
  EXPECT_EQ(submit(a(), "x", try_acquire(3)).status, Status::granted);
  for (const engine::Ring& ring : b().answer_doorbell()) {
    EXPECT_EQ(ring.token, 0U);  // it may see that it is not in the queue any more
  }
}

TEST_F(MysqlHandOver, AWaiterHasUntilTheLastMicrosecond) {
  one_waits();
  now() += 20s - 1us;
  EXPECT_EQ(statements_to_release(), 1);
  expect_granted(2);
}

TEST_F(MysqlHandOver, AHeartbeatCounts) {
  one_waits();
  now() += 15s;
  ASSERT_EQ(submit(b(), "x", heartbeat(2)).status, Status::queued);
  now() += 10s;
  EXPECT_EQ(statements_to_release(), 1);
  expect_granted(2);
}

TEST_F(MysqlHandOver, AHolderWhoseTimeIsUpPassesNothingOn) {
  core::Acquire patient = acquire(2);
  patient.ttl = patient.window = 1min;
  one_waits(acquire(1), patient);
  now() += 30s;
  // The record finds the end of the lease, and gives the lock to the next.
  EXPECT_EQ(submit(a(), "x", release(1)).status, Status::not_held);
  expect_granted(2, 1min);
}

TEST_F(MysqlHandOver, AShortTtlIsNotMadeLonger) {
  core::Acquire brief = acquire(2);
  brief.ttl = 7s;
  one_waits(acquire(1), brief);
  EXPECT_EQ(statements_to_release(), 1);
  expect_granted(2, 7s);
}

TEST_F(MysqlHandOver, ARenewalBetweenChangesNothing) {
  one_waits();
  now() += 10s;
  ASSERT_EQ(submit(a(), "x", renew(1)).status, Status::renewed);
  EXPECT_EQ(statements_to_release(), 1);
  expect_granted(2);
}

TEST_F(MysqlHandOver, NobodyElsesReleasePassesItOn) {
  one_waits();
  EXPECT_EQ(submit(a(), "x", release(9)).status, Status::not_held);
  EXPECT_EQ(submit(b(), "x", poll(2)).status, Status::queued);
  // The waiter's own ends its wait.
  EXPECT_EQ(submit(b(), "x", release(2)).status, Status::released);
  EXPECT_EQ(submit(a(), "x", renew(1)).status, Status::renewed);
  EXPECT_EQ(statements_to_release(), 2);  // tokens are missing: the record knows which
  EXPECT_THAT(b().answer_doorbell(), IsEmpty());
}

TEST_F(MysqlHandOver, ATransferredGrantIsPassedOnByItsNewRequest) {
  one_waits();
  core::Transfer handed = transfer(1, 3);
  handed.next.session = id(1);
  const auto moved = submit(a(), "x", handed);
  ASSERT_EQ(moved.status, Status::granted);
  token_ = moved.token;
  EXPECT_EQ(submit(a(), "x", release(1)).status, Status::not_held);
  EXPECT_EQ(statements_to_release(3), 1);
  expect_granted(2);
}

TEST_F(MysqlHandOver, OddNamesAndLabelsSurvive) {
  const auto parsed = engine::Url::parse(store_->url());
  ASSERT_TRUE(parsed);
  const std::string odd = "tab\there, \\ 'quoted' \xc3\xa9\xf0\x9f\x94\x92";
  const std::string name = "odd\tname\n'\xff";
  const auto clock = [this] { return now(); };
  for (const std::uint32_t turn : {10U, 20U}) {  // the first one learns that somebody waits here
    auto other = engine::open(
        *parsed,
        {.session = id(turn + 1), .party = {.label = odd, .host = "", .pid = -1}, .now = clock});
    ASSERT_TRUE(other) << other.error();
    ASSERT_EQ(submit(a(), name, acquire(turn)).status, Status::granted);
    ASSERT_EQ(submit(**other, name, acquire(turn + 1)).status, Status::queued);
    sleeps(**other, turn + 1);
    const std::uint64_t before = writes_so_far();
    ASSERT_EQ(submit(a(), name, release(turn)).status, Status::released);
    EXPECT_EQ(writes_so_far() - before, turn == 10 ? 2U : 1U);
    const auto shown = a().show(name);
    ASSERT_TRUE(shown) << shown.error();
    ASSERT_EQ(shown->holders.size(), 1U);
    EXPECT_EQ(shown->holders[0].party.label, "tab?here, \\ 'quoted' \xc3\xa9\xf0\x9f\x94\x92");
    EXPECT_EQ(shown->holders[0].party.host, "");
    EXPECT_EQ(shown->holders[0].party.pid, -1);
    ASSERT_EQ(submit(**other, name, release(turn + 1)).status, Status::released);
  }
}

// A clock that was ahead and has been set right: tokens do not come from it for a while.
TEST_F(MysqlHandOver, TokensRiseThoughTheClockIsBehindThem) {
  ASSERT_EQ(submit(a(), "x", acquire(1)).status, Status::granted);
  store_->root().ask("UPDATE " + store_->prefix() + "locks SET token = token * 1000");
  token_ = std::stoull(column("token"));
  ASSERT_EQ(submit(b(), "x", acquire(2)).status, Status::queued);
  sleeps();
  EXPECT_EQ(statements_to_release(), 1);
  const auto rings = wait_for_ring(b());
  ASSERT_EQ(rings.size(), 1U);
  EXPECT_GT(rings[0].token, token_);
  ASSERT_EQ(submit(b(), "x", release(2)).status, Status::released);
  EXPECT_GE(submit(a(), "x", acquire(3)).token, rings[0].token + core::kTokenStride);
}

// --- what is not simple

TEST_F(MysqlHandOver, TwoWaitersGoThroughTheRecord) {
  one_waits();
  core::Acquire third = acquire(3);
  third.session = id(2);
  ASSERT_EQ(submit(b(), "x", third).status, Status::queued);
  EXPECT_EQ(statements_to_release(), 2);
  expect_granted(2);
  EXPECT_EQ(submit(b(), "x", poll(3)).status, Status::queued);
}

TEST_F(MysqlHandOver, ASharedWaiterGoesThroughTheRecord) {
  one_waits(acquire(1), acquire(2, kShared));
  EXPECT_EQ(statements_to_release(), 2);
  expect_granted(2);
  EXPECT_EQ(submit(a(), "x", try_acquire(3, kShared)).status, Status::granted);
}

TEST_F(MysqlHandOver, ASharedHolderGoesThroughTheRecord) {
  one_waits(acquire(1, kShared), acquire(2));
  EXPECT_EQ(statements_to_release(), 2);
  expect_granted(2);
}

TEST_F(MysqlHandOver, PermitsGoThroughTheRecord) {
  one_waits(acquire(1, permits(2, 2)), acquire(2, permits(1, 2)));
  EXPECT_EQ(statements_to_release(), 2);
  expect_granted(2);
  EXPECT_EQ(submit(a(), "x", try_acquire(3, permits(1, 2))).status, Status::granted);
}

TEST_F(MysqlHandOver, ARevokedHolderGoesThroughTheRecord) {
  one_waits();
  ASSERT_EQ(submit(b(), "x", core::Revoke{}).status, Status::done);
  EXPECT_EQ(statements_to_release(), 2);
  expect_granted(2);
}

TEST_F(MysqlHandOver, AReaderThatWaitsToBeTheWriterGoesThroughTheRecord) {
  const auto reader = submit(a(), "x", acquire(1, kShared));
  ASSERT_EQ(reader.status, Status::granted);
  token_ = reader.token;
  core::Acquire other = acquire(2, kShared);
  ASSERT_EQ(submit(b(), "x", other).status, Status::granted);
  ASSERT_EQ(submit(b(), "x", upgrade(2)).status, Status::queued);
  EXPECT_EQ(statements_to_release(), 2);
  expect_granted(2, 30s);
}

// A fence must rise with the grant, which takes the whole row.
TEST_F(MysqlHandOver, AFencedLockGoesThroughTheRecord) {
  one_waits();
  ASSERT_TRUE(a().fence_sql("x", token_));
  EXPECT_EQ(statements_to_release(), 2);
  expect_granted(2);
  EXPECT_EQ(column("(SELECT f.token FROM " + store_->prefix() + "fences f WHERE f.name = 'x') = " +
                   "token - " + std::to_string(core::kTokenStride - 1)),
            "1");
}

TEST_F(MysqlHandOver, WithoutTokensLeftTheRecordDecides) {
  ASSERT_EQ(submit(a(), "x", acquire(1)).status, Status::granted);
  store_->root().ask("UPDATE " + store_->prefix() +
                     "locks SET token = " + std::to_string(core::kMaxToken - core::kTokenStride));
  ASSERT_EQ(submit(b(), "x", acquire(2)).status, Status::queued);
  EXPECT_FALSE(says_who_is_next());
  EXPECT_EQ(statements_to_release(), 2);
  expect_granted(2);  // the last block
}

// Somebody who knows nothing of this wrote the row.
TEST_F(MysqlHandOver, WhereTheRowDoesNotSayItTheRecordDecides) {
  one_waits();
  store_->root().ask("UPDATE " + store_->prefix() + "locks SET session_id = REPEAT(x'00', 16)");
  EXPECT_EQ(statements_to_release(), 2);
  expect_granted(2);
}

// The one who is next is this very session: it is told without a doorbell.
TEST_F(MysqlHandOver, OurOwnNextInLineGoesThroughTheRecord) {
  ASSERT_EQ(submit(a(), "x", acquire(1)).status, Status::granted);
  core::Acquire next = acquire(2);
  next.session = id(1);
  ASSERT_EQ(submit(a(), "x", next).status, Status::queued);
  EXPECT_EQ(statements_to_release(), 2);
  const auto rings = a().answer_doorbell();
  EXPECT_TRUE(std::any_of(rings.begin(), rings.end(), [](const engine::Ring& ring) {
    return ring.id == id(2) && ring.token > 0;
  }));
}

// Where nobody waits any more it is one statement as well, and says so.
TEST_F(MysqlHandOver, ALockThatNobodyWaitsForIsGivenBack) {
  ASSERT_EQ(submit(a(), "x", acquire(1)).status, Status::granted);
  EXPECT_EQ(statements_to_release(), 1);
  EXPECT_EQ(submit(b(), "x", try_acquire(2)).status, Status::granted);
  EXPECT_EQ(submit(a(), "x", release(1)).status, Status::not_held);
}

// Whoever is next may use an account that we may not wake.
TEST_F(MysqlHandOver, AWaiterThatMayNotBeWokenGetsTheLockAllTheSame) {
  ASSERT_TRUE(a().init());
  const std::string other = store_->add_least_user();
  pair_.emplace(*store_, store_->url_of(other));
  one_waits();
  EXPECT_EQ(submit(a(), "x", release(1)).status, Status::released);
  EXPECT_EQ(submit(b(), "x", poll(2)).status, Status::granted);
  EXPECT_EQ(column("token >= " + std::to_string(token_ + core::kTokenStride)), "1");
  pair_.reset();
  for (const auto& row : store_->root().ask(
           "SELECT ID FROM information_schema.PROCESSLIST WHERE USER='" + other + "'")) {
    store_->root().error_of("KILL " + row.front());
  }
  store_->drop_user(other);
}

// A waiter that was heard of after the release began believes to hold the lock for longer than a
// statement could know that uses its own time.
TEST_F(MysqlHandOver, AHeartbeatFromLaterIsForTheRecord) {
  one_waits();
  now() += 5s;
  ASSERT_EQ(submit(b(), "x", heartbeat(2)).status, Status::queued);
  now() -= 1us;
  EXPECT_EQ(statements_to_release(), 2);
  expect_granted(2);
}

// Who rings does so before its COMMIT: whoever looks too early looks once more, and waits for it.
TEST_F(MysqlHandOver, ARingThatIsEarlierThanTheCommitIsNotLost) {
  // So many names that the doorbell cannot ask about all of them where it goes to sleep, and so
  // many rows that it does not read them all.
  const std::string locks = store_->prefix() + "locks";
  std::string idle;
  for (int i = 0; i < 5000; ++i) {
    idle += (i == 0 ? "('idle" : ",('idle") + std::to_string(i) +
            "','','',0,'1970-01-01','1970-01-01',0,64,0,REPEAT(x'00',16),REPEAT(x'00',16),1,0)";
  }
  store_->root().ask("INSERT INTO " + locks +
                     " (name,holder,host,pid,held_since,held_until,waiting,token,ttl_us,"
                     "request_id,session_id,version,mark) VALUES " +
                     idle);
  store_->root().ask("ANALYZE TABLE " + locks);
  for (std::uint32_t i = 100; i < 160; ++i) {
    core::Acquire waiting = acquire(i, kShared);
    waiting.session = id(2);
    ASSERT_EQ(submit(a(), std::to_string(i), acquire(i + 100)).status, Status::granted);
    ASSERT_EQ(submit(b(), std::to_string(i), waiting).status, Status::queued);
  }
  core::Acquire last = acquire(255);
  last.session = id(2);
  one_waits(acquire(1), last);
  const std::string session = "x'" + id(2).hex() + "'";
  const std::string bell = "IS_USED_LOCK('" + bell_of(2) + "')";
  RawMysql other{store_->port_text()};
  other.ask("START TRANSACTION");
  other.ask("UPDATE " + locks + " SET version = version + 1, rest = NULL, " + "request_id = x'" +
            id(255).hex() + "', session_id = " + session +
            ", ttl_us = 30000000, held_until = '1970-01-01 01:10:00' WHERE name = 'x'");
  other.ask("KILL QUERY " + store_->root().ask_one("SELECT " + bell));
  std::jthread commits{[&] {
    const bool waited_for = eventually([&] {
      return store_->root()
                 .ask("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'")
                 .at(0)
                 .at(1) != "0";
    });
    EXPECT_TRUE(waited_for);
    other.ask("COMMIT");
  }};
  const auto rings = wait_for_ring(b());
  ASSERT_EQ(rings.size(), 1U);
  EXPECT_EQ(rings[0].id, id(255));
  EXPECT_GT(rings[0].token, token_);
}

// Who finds out by a look that it has the lock may be earlier than the disk, too.
TEST_F(MysqlHandOver, AGrantThatIsFoundIsWrittenBeforeItIsTold) {
  one_waits();
  EXPECT_EQ(statements_to_release(), 1);
  for (const core::Operation& question : {core::Operation{poll(2)}, core::Operation{acquire(2)}}) {
    const std::string version = column("version");
    EXPECT_EQ(submit(b(), "x", question).status, Status::granted);
    EXPECT_NE(column("version"), version);
  }
}

// What a server refuses that is read-only for a while leaves no transaction open, in which later
// grants would never be committed.
TEST_F(MysqlHandOver, ARefusedReleaseLeavesNoTransactionBehind) {
  auto hasty = open_engine(store_->url() + "&timeout=200ms", 3, [this] { return now(); });
  ASSERT_EQ(submit(b(), "x", acquire(2)).status, Status::granted);
  ASSERT_EQ(submit(*hasty, "x", acquire(3)).status, Status::queued);
  ASSERT_EQ(submit(b(), "x", release(2)).status, Status::released);
  ASSERT_EQ(submit(b(), "x", acquire(2)).status, Status::queued);
  store_->root().ask("SET GLOBAL read_only = 1");
  const auto refused = submit(*hasty, "x", release(3));
  store_->root().ask("SET GLOBAL read_only = 0");
  EXPECT_EQ(refused.status, Status::failed);
  EXPECT_EQ(submit(*hasty, "y", acquire(30)).status, Status::granted);
  EXPECT_EQ(column("COUNT(*)", "y"), "1");
}

// --- a crash

// What is passed on is told before it is on disk. Lost in a crash, it leaves the waiter where it
// was: nobody gets the lock before it stops waiting, and nobody ever gets its token.
TEST(MysqlHandOverCrash, NobodyGetsTheLockOrTheTokenThatItSwallowed) {
  HOLDFAST_SKIP_IF_MISSING(missing_program("mariadbd"));
  MysqlStore store{{}};
  Pair pair{store};
  core::Acquire brief = acquire(1);
  brief.ttl = 10s;
  ASSERT_EQ(submit(*pair.a, "x", brief).status, Status::granted);
  // The clock was ahead once: tokens do not come from it for a while.
  store.root().ask("UPDATE " + store.prefix() + "locks SET token = token * 1000");
  ASSERT_EQ(submit(*pair.b, "x", acquire(2)).status, Status::queued);
  ASSERT_TRUE(eventually([&] {
    pair.b->answer_doorbell();
    return store.sessions_in("User lock") + store.sessions_in("User sleep") > 0;
  }));
  // From here on it writes its log only when it must.
  store.root().ask("SET GLOBAL innodb_flush_log_at_timeout = 2700");
  store.root().ask("SET GLOBAL innodb_flush_log_at_trx_commit = 0");
  ASSERT_EQ(submit(*pair.a, "x", release(1)).status, Status::released);
  const auto rings = wait_for_ring(*pair.b);
  ASSERT_EQ(rings.size(), 1U);
  ASSERT_GT(rings[0].token, 0U);
  store.server().kill();
  store.server().start();
  store.forget_root();

  // Nearly always: the log may have been written just then.
  const bool swallowed = insist(*pair.a, "x", poll(1)).status == Status::granted;
  EXPECT_EQ(insist(*pair.b, "x", renew(2)).status, swallowed ? Status::not_held : Status::renewed);
  pair.now += 20s - 1us;  // b may believe that it holds the lock; a's lease is over
  core::Acquire hasty = acquire(3);
  hasty.queue = false;
  hasty.barge = true;
  EXPECT_EQ(submit(*pair.a, "x", hasty).status, Status::busy);
  pair.now += 1min;
  const auto next = submit(*pair.a, "x", acquire(3));
  EXPECT_EQ(next.status, Status::granted);
  EXPECT_GE(next.token, rings[0].token + core::kTokenStride);
}

}  // namespace
}  // namespace holdfast
