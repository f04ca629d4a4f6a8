// What happens to Redis, and what the engine makes of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "support/engine_driver.h"
#include "support/eventually.h"
#include "support/fault_proxy.h"
#include "support/needs.h"
#include "support/raw_redis.h"
#include "support/server.h"

namespace holdfast {
namespace {

using namespace test;
using core::Status;

class RedisFaults : public ::testing::Test {
 protected:
  void SetUp() override { HOLDFAST_SKIP_IF_MISSING(missing_program("redis-server")); }
  void start(std::vector<std::string> options = {}) {
    server_ = std::make_unique<PrivateServer>("redis", std::move(options));
  }
  std::string port() const { return std::to_string(server_->port()); }
  std::string url(const std::string& options = "") const {
    return "redis://127.0.0.1:" + port() + "/0?" + options;
  }
  std::unique_ptr<RawRedis> raw() const { return std::make_unique<RawRedis>(port()); }
  static Result<std::unique_ptr<engine::Engine>> try_open(const std::string& url) {
    return engine::open(*engine::Url::parse(url), {.session = id(1), .party = {}, .now = nullptr});
  }

  // Else the master waits five seconds for more replicas before it serves the first.
  const std::vector<std::string> kReplicatesAtOnce{"--repl-diskless-sync-delay=0"};

  std::unique_ptr<PrivateServer> server_;
};

TEST_F(RedisFaults, AForgottenScriptIsSentAgain) {
  start();
  const auto engine = open_engine(url());
  for (std::uint32_t i = 1; i < 4; ++i) {
    raw()->ask({"SCRIPT", "FLUSH"});
    EXPECT_EQ(submit(*engine, {{"a", acquire(i)}, {"b", acquire(10 + i)}})[1].status,
              Status::granted);
    EXPECT_EQ(submit(*engine, {{"a", release(i)}, {"b", release(10 + i)}})[0].status,
              Status::released);
  }
}

TEST_F(RedisFaults, TokensRiseThroughFlushAndRestartWithoutData) {
  start();
  const auto engine = open_engine(url());
  std::uint64_t last = 0;
  const auto take = [&](std::uint32_t number) {
    core::Outcome outcome;
    // A restart is noticed by the first request that meets it.
    eventually([&] {
      outcome = submit(*engine, "x", acquire(number));
      return outcome.status != Status::failed;
    });
    EXPECT_EQ(outcome.status, Status::granted);
    EXPECT_GT(outcome.token, last);
    last = outcome.token + core::kTokenStride - 1;
  };
  take(1);
  raw()->ask({"FLUSHALL"});
  EXPECT_EQ(submit(*engine, "x", renew(1)).status, Status::not_held);
  take(2);
  server_->kill();
  server_->start();
  take(3);
  EXPECT_EQ(submit(*engine, "x", poll(2)).status, Status::not_held);
}

TEST_F(RedisFaults, ADurableServerKeepsTheLockThroughAKill) {
  start({"durable=1"});
  const auto engine = open_engine(url());
  const auto before = submit(*engine, "x", acquire(1));
  ASSERT_EQ(before.status, Status::granted);
  server_->kill();
  server_->start();
  core::Outcome after;
  EXPECT_TRUE(eventually([&] {
    after = submit(*engine, "x", acquire(1));
    return after.status == Status::granted;
  }));
  EXPECT_EQ(after.token, before.token);
}

TEST_F(RedisFaults, ALostReplyIsResolvedByAskingAgain) {
  start();
  const auto proxy = proxy_to(server_->port());
  const auto engine =
      open_engine("redis://127.0.0.1:" + std::to_string(proxy->port()) + "/0?timeout=2s");
  ASSERT_EQ(submit(*engine, "warm-up", acquire(9)).status, Status::granted);
  for (const auto then : {Swallow::Then::cut, Swallow::Then::silence}) {
    const std::uint32_t number = then == Swallow::Then::cut ? 1 : 2;
    const std::string name = "lock " + std::to_string(number);
    proxy->swallow_reply({.pattern = "EVALSHA", .then = then});
    const auto lost = submit(*engine, name, acquire(number));
    ASSERT_TRUE(lost.error);
    EXPECT_EQ(lost.error->code, ErrorCode::outcome_unknown);
    core::Outcome found;
    EXPECT_TRUE(eventually([&] {
      found = submit(*engine, name, acquire(number));
      return found.status == Status::granted;
    }));
    EXPECT_EQ(submit(*engine, name, poll(number)).token, found.token);
    EXPECT_LT(found.lease_for, 30s) << "it is the first grant, not a new one";
  }
}

TEST_F(RedisFaults, NoConnectionMeansThatNothingWasApplied) {
  start();
  const auto proxy = proxy_to(server_->port());
  const auto engine =
      open_engine("redis://127.0.0.1:" + std::to_string(proxy->port()) + "/0?timeout=1s");
  proxy->refuse_connections();
  proxy->reset_all();
  core::Outcome outcome;
  EXPECT_TRUE(eventually([&] {
    outcome = submit(*engine, "x", acquire(1));
    return outcome.error && outcome.error->code == ErrorCode::unavailable;
  }));
  proxy->heal();
  EXPECT_TRUE(
      eventually([&] { return submit(*engine, "x", acquire(1)).status == Status::granted; }));
}

TEST_F(RedisFaults, ABrokenDoorbellIsMendedAndSaysThatItMissedSomething) {
  start();
  const auto a = open_engine(url(), 1);
  const auto b = open_engine(url(), 2);
  submit(*a, "x", acquire(1));
  ASSERT_EQ(submit(*b, "x", acquire(2)).status, Status::queued);
  b->may_have_changed();
  EXPECT_FALSE(b->may_have_changed());
  raw()->ask({"CLIENT", "KILL", "TYPE", "pubsub"});
  EXPECT_TRUE(eventually([&] { return b->may_have_changed(); }));
  submit(*a, "x", release(1));
  // What the missed ring would have said.
  EXPECT_EQ(submit(*b, "x", poll(2)).status, Status::granted);
  for (auto* engine : {a.get(), b.get()}) {
    EXPECT_TRUE(eventually([&] {
      engine->answer_doorbell();
      return !engine->may_have_changed();
    })) << "it never listens again";
  }
  auto again = acquire(3);
  again.session = id(1);
  ASSERT_EQ(submit(*a, "x", again).status, Status::queued);
  submit(*b, "x", release(2));
  EXPECT_TRUE(eventually([&] {
    const auto rings = a->answer_doorbell();
    return !rings.empty() && rings[0].id == id(3) && rings[0].token != 0;
  }));
}

TEST_F(RedisFaults, AFullServerGrantsNothingAndStillReleases) {
  start();
  const auto engine = open_engine(url("timeout=2s"));
  ASSERT_EQ(submit(*engine, "held", acquire(1)).status, Status::granted);
  raw()->ask({"CONFIG", "SET", "maxmemory", "1"});
  const auto outcomes = submit(*engine, {{"new", acquire(2)}, {"held", release(1)}});
  ASSERT_TRUE(outcomes[0].error);
  EXPECT_EQ(outcomes[0].error->code, ErrorCode::unavailable);
  EXPECT_EQ(outcomes[1].status, Status::released);
  raw()->ask({"CONFIG", "SET", "maxmemory", "0"});
  EXPECT_EQ(submit(*engine, "new", acquire(2)).status, Status::granted);
}

TEST_F(RedisFaults, AReplicaRefusesAndIsAskedAgainWhenItIsTheMaster) {
  start();
  const auto engine = open_engine(url("timeout=2s"));
  raw()->ask({"REPLICAOF", "127.0.0.1", "1"});
  const auto refused = submit(*engine, "x", acquire(1));
  ASSERT_TRUE(refused.error);
  EXPECT_EQ(refused.error->code, ErrorCode::unavailable);
  raw()->ask({"REPLICAOF", "NO", "ONE"});
  EXPECT_TRUE(
      eventually([&] { return submit(*engine, "x", acquire(1)).status == Status::granted; }));
}

TEST_F(RedisFaults, ADataSetThatEvictsIsReported) {
  start();
  const auto engine = open_engine(url());
  raw()->ask({"CONFIG", "SET", "maxmemory-policy", "volatile-lru"});
  raw()->ask({"CONFIG", "SET", "maxmemory", "100mb"});
  bool found = false;
  for (const Finding& finding : engine->doctor()) {
    found = found || (finding.topic == "eviction" && finding.level == Finding::Level::problem);
  }
  EXPECT_TRUE(found);
}

TEST_F(RedisFaults, UsersPasswordsDatabasesAndSockets) {
  start();
  raw()->ask({"ACL", "SETUSER", "locks", "on", ">s3cret", "~holdfast:*", "&holdfast:*", "+@read",
              "+@write", "+@connection", "+@pubsub", "+@scripting", "+time", "+wait", "+info"});
  raw()->ask({"ACL", "SETUSER", "looker", "on", ">s3cret", "~*", "+@read", "+@connection"});
  const auto as = [&](const std::string& who, const std::string& rest) {
    return "redis://" + who + "@127.0.0.1:" + port() + rest;
  };
  const auto engine = open_engine(as("locks:s3cret", "/3"));
  EXPECT_EQ(submit(*engine, "x", acquire(1)).status, Status::granted);
  std::set<std::string> topics;
  for (const Finding& finding : engine->doctor()) {
    const bool slow = finding.topic == "latency";  // of this machine, at the moment
    EXPECT_TRUE(slow || finding.level == Finding::Level::ok)
        << finding.topic << ": " << finding.text;
    topics.insert(finding.topic);
  }
  EXPECT_THAT(topics, ::testing::IsSupersetOf({"version", "eviction", "persistence", "replication",
                                               "clock", "latency", "scripts", "doorbell"}));
  const auto wrong = try_open(as("locks:wrong-s3cret", "/0"));
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ErrorCode::unauthorized);
  EXPECT_EQ(wrong.error().text.find("s3cret"), std::string::npos) << wrong.error().text;
  const auto looker = try_open(as("looker:s3cret", "/0"));
  ASSERT_TRUE(looker) << looker.error();
  const auto outcome = submit(**looker, "x", acquire(1));
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->code, ErrorCode::unauthorized);
  EXPECT_FALSE(try_open(as("locks:s3cret", "/9999")));

  const auto other = open_engine("redis://" + server_->fact("socket") + "?database=3", 2);
  EXPECT_EQ(submit(*other, "x", try_acquire(2)).status, Status::busy) << "the same database";
  const auto third = open_engine(url(), 3);
  EXPECT_EQ(submit(*third, "x", try_acquire(3)).status, Status::granted) << "another database";
}

TEST_F(RedisFaults, AClusterIsRefusedInPlainWords) {
  start({"--cluster-enabled=yes"});
  const auto refused = try_open(url());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported) << refused.error();
  EXPECT_THAT(refused.error().text, ::testing::HasSubstr("Cluster"));
}

TEST_F(RedisFaults, TlsIsVerified) {
  HOLDFAST_SKIP_IF_MISSING(missing_program("openssl"));
  start({"tls=1"});
  const std::string base = "rediss://127.0.0.1:" + port() + "/0?timeout=2s";
  const auto trusted = try_open(base + "&ca=" + server_->fact("ca"));
  ASSERT_TRUE(trusted) << trusted.error();
  EXPECT_EQ(submit(**trusted, "x", acquire(1)).status, Status::granted);
  EXPECT_EQ(submit(**trusted, "x", release(1)).status, Status::released);

  const auto unknown = try_open(base);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::unauthorized) << unknown.error();
  EXPECT_TRUE(try_open(base + "&insecure=true"));
  EXPECT_FALSE(try_open(base + "&ca=/nowhere"));
  EXPECT_FALSE(try_open("redis://127.0.0.1:" + port() + "/0?timeout=1s")) << "it speaks TLS alone";
}

TEST_F(RedisFaults, GrantsWaitForReplicas) {
  start(kReplicatesAtOnce);
  const auto engine = open_engine(url("wait_replicas=1&timeout=2s"));
  const auto alone = submit(*engine, "x", acquire(1));
  ASSERT_TRUE(alone.error);
  EXPECT_EQ(alone.error->code, ErrorCode::outcome_unknown);
  const PrivateServer replica{"redis", {"--replicaof=127.0.0.1 " + port()}};
  EXPECT_TRUE(
      eventually([&] { return submit(*engine, "x", acquire(1)).status == Status::granted; }));
}

TEST_F(RedisFaults, WhoseTurnItIsAsksTheReplicasBeforeItEnters) {
  start(kReplicatesAtOnce);
  const PrivateServer replica{"redis", {"--replicaof=127.0.0.1 " + port()}};
  const auto holder = open_engine(url("wait_replicas=1&timeout=2s"), 1);
  const auto waiter = open_engine(url("wait_replicas=1&timeout=2s"), 2);
  ASSERT_TRUE(
      eventually([&] { return submit(*holder, "x", acquire(1)).status == Status::granted; }));
  ASSERT_TRUE(
      eventually([&] { return submit(*waiter, "x", acquire(2)).status == Status::queued; }));
  replica.signal(SIGSTOP);
  ASSERT_EQ(submit(*holder, "x", release(1)).status, Status::released);
  const auto rings = wait_for_ring(*waiter);
  ASSERT_FALSE(rings.empty());
  EXPECT_EQ(rings[0].id, id(2));
  EXPECT_EQ(rings[0].token, 0U) << "no replica knows of this grant";
  const auto unsure = submit(*waiter, "x", poll(2));
  ASSERT_TRUE(unsure.error);
  EXPECT_EQ(unsure.error->code, ErrorCode::outcome_unknown);
  replica.signal(SIGCONT);
  EXPECT_TRUE(eventually([&] { return submit(*waiter, "x", poll(2)).status == Status::granted; }));
}

TEST_F(RedisFaults, WritesOfValuesWaitForReplicas) {
  start(kReplicatesAtOnce);
  const std::string store = url("wait_replicas=1&timeout=2s");
  const auto engine = open_engine(store);
  core::ValueWrite write{.name = "v", .expected = {}, .bytes = "one", .writer = id(1)};
  const auto alone = engine->write_value(write);
  ASSERT_FALSE(alone);
  EXPECT_EQ(alone.error().code, ErrorCode::outcome_unknown) << alone.error();

  const PrivateServer replica{"redis", {"--replicaof=127.0.0.1 " + port()}};
  std::uint64_t version = 0;
  ASSERT_TRUE(eventually([&] {
    const auto written = engine->write_value(write);
    version = written ? written->version : 0;
    return written && written->applied;
  }));

  replica.signal(SIGSTOP);
  write = {.name = "v", .expected = version, .bytes = "two", .writer = id(2)};
  EXPECT_EQ(engine->write_value(write).error().code, ErrorCode::outcome_unknown);
  // Asked again on a connection that has written nothing itself.
  const auto fresh = open_engine(store, 2);
  const auto again = fresh->write_value(write);
  ASSERT_FALSE(again) << "no replica has it";
  EXPECT_EQ(again.error().code, ErrorCode::outcome_unknown) << again.error();
  // A conflict needs nobody's acknowledgement.
  const auto late =
      fresh->write_value({.name = "v", .expected = version, .bytes = "three", .writer = id(3)});
  ASSERT_TRUE(late) << late.error();
  EXPECT_FALSE(late->applied);
  replica.signal(SIGCONT);
  EXPECT_TRUE(eventually([&] {
    const auto written = fresh->write_value(write);
    return written && written->applied;
  }));
}

TEST_F(RedisFaults, AServerThatLoadsItsDataIsWaitedForAndGrantsNothingMeanwhile) {
  // A key every 50 ms, and an ear for clients in between.
  start({"--key-load-delay=50000", "--loading-process-events-interval-bytes=1024",
         "--rdbcompression=no"});
  const auto hasty = open_engine(url("timeout=1s"), 1);
  const auto patient = open_engine(url("timeout=60s"), 2);
  core::Acquire lasting = acquire(1);
  lasting.ttl = 1h;
  ASSERT_EQ(submit(*hasty, "held", lasting).status, Status::granted);
  raw()->ask({"DEBUG", "POPULATE", "400", "filler", "2000"});
  raw()->ask({"SAVE"});
  server_->kill();
  std::jthread starter{[&] { server_->start(); }};  // returns when all is loaded

  std::optional<Error> loading;
  const bool seen = eventually([&] {
    const auto outcome = submit(*hasty, "held", try_acquire(3));
    EXPECT_EQ(outcome.status, Status::failed);
    loading = outcome.error;
    return loading && loading->text.find("loading") != std::string::npos;
  });
  EXPECT_TRUE(seen);
  EXPECT_EQ(loading->code, ErrorCode::unavailable) << *loading;
  const auto value = hasty->load_value("v");
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().code, ErrorCode::unavailable) << value.error();
  const auto write =
      hasty->write_value({.name = "v", .expected = {}, .bytes = "1", .writer = id(1)});
  ASSERT_FALSE(write);
  EXPECT_EQ(write.error().code, ErrorCode::unavailable) << write.error();

  std::jthread hurry{[&] { raw()->ask({"CONFIG", "SET", "key-load-delay", "0"}); }};
  EXPECT_EQ(submit(*patient, "held", try_acquire(2)).status, Status::busy) << "asks again";
  EXPECT_TRUE(patient->load_value("v"));
  hurry.join();
  starter.join();
  EXPECT_EQ(submit(*hasty, "held", renew(1)).status, Status::renewed);
}

TEST_F(RedisFaults, TheLateAnswerOfASlowServerIsNobodysAnswer) {
  start();
  const auto engine = open_engine(url("timeout=200ms"));
  std::jthread sleeper{[&] { raw()->ask({"DEBUG", "SLEEP", "2"}); }};
  std::uint32_t number = 1;
  std::optional<Error> error;
  EXPECT_TRUE(eventually([&] {
    error = submit(*engine, "x", try_acquire(++number)).error;
    if (!error) error = submit(*engine, "x", release(number)).error;
    return error.has_value();
  }));
  EXPECT_EQ(error->code, ErrorCode::outcome_unknown) << *error;
  sleeper.join();
  ASSERT_TRUE(
      eventually([&] { return submit(*engine, "y", acquire(100)).status == Status::granted; }));
  // It was carried out late, or never; everybody is told the same.
  const bool late = submit(*engine, "x", poll(number)).status == Status::granted;
  EXPECT_EQ(submit(*engine, "x", try_acquire(101)).status, late ? Status::busy : Status::granted);
}

}  // namespace
}  // namespace holdfast
