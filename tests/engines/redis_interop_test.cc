// Locks that other libraries take, seen from both sides. The other side is
// played by the very commands those libraries send.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "support/engine_driver.h"
#include "support/eventually.h"
#include "support/needs.h"
#include "support/raw_redis.h"
#include "support/server.h"

namespace holdfast {
namespace {

using namespace test;
using core::Status;
using engines::RespValue;

class RedisInterop : public ::testing::Test {
 protected:
  explicit RedisInterop(std::string strategy) : strategy_{std::move(strategy)} {}
  void SetUp() override {
    HOLDFAST_SKIP_IF_MISSING(missing_program("redis-server"));
    peer_ = std::make_unique<RawRedis>(shared_server_port("redis"));
  }
  std::unique_ptr<engine::Engine> open(std::uint32_t session = 1) {
    return open_engine(
        "redis://127.0.0.1:" + shared_server_port("redis") + "/0?strategy=" + strategy_, session);
  }

  const std::string strategy_;
  const std::string name_ = "interop-" + base::Id::random().hex();
  std::unique_ptr<RawRedis> peer_;
};

class RedisSimple : public RedisInterop {
 protected:
  RedisSimple() : RedisInterop{"simple"} {}
  // What redis-py, redsync, node-redlock and redis++ do.
  bool peer_takes() {
    return peer_->ask({"SET", name_, "their-token", "NX", "PX", "30000"}).text == "OK";
  }
  bool peer_frees() {
    return peer_
               ->ask({"EVAL",
                      "if redis.call('get', KEYS[1]) == ARGV[1] then "
                      "return redis.call('del', KEYS[1]) else return 0 end",
                      "1", name_, "their-token"})
               .integer == 1;
  }
};

TEST_F(RedisSimple, TheirLockExcludesUs) {
  const auto engine = open();
  ASSERT_TRUE(peer_takes());
  EXPECT_EQ(submit(*engine, name_, try_acquire(1)).status, Status::busy);
  EXPECT_EQ(submit(*engine, name_, release(1)).status, Status::not_held);
  const auto seen = engine->show(name_);
  ASSERT_TRUE(seen) << seen.error();
  EXPECT_EQ(seen->holders.size(), 1U);
  EXPECT_TRUE(peer_frees());
  EXPECT_EQ(submit(*engine, name_, try_acquire(1)).status, Status::granted);
  submit(*engine, name_, release(1));
}

TEST_F(RedisSimple, OurLockExcludesThem) {
  const auto engine = open();
  ASSERT_EQ(submit(*engine, name_, acquire(1)).status, Status::granted);
  EXPECT_FALSE(peer_takes());
  EXPECT_FALSE(peer_frees());
  const std::int64_t left = peer_->ask({"PTTL", name_}).integer;
  EXPECT_GT(left, 0);
  EXPECT_LE(left, 30'000);
  EXPECT_EQ(submit(*engine, name_, renew(1)).status, Status::renewed);
  EXPECT_EQ(submit(*engine, name_, release(1)).status, Status::released);
  EXPECT_TRUE(peer_takes());
  EXPECT_TRUE(peer_frees());
}

TEST_F(RedisSimple, AForeignHolderCannotBeAskedToLeaveButCanBePutOut) {
  const auto engine = open();
  ASSERT_TRUE(peer_takes());
  const auto refused = submit(*engine, name_, core::Revoke{});
  ASSERT_TRUE(refused.error);
  EXPECT_EQ(refused.error->code, ErrorCode::unsupported);
  EXPECT_EQ(submit(*engine, name_, core::Revoke{.now = true}).status, Status::done);
  EXPECT_EQ(submit(*engine, name_, try_acquire(1)).status, Status::granted);
  submit(*engine, name_, release(1));
}

TEST_F(RedisSimple, AKeyOfAnotherKindIsNotTouched) {
  const auto engine = open();
  peer_->ask({"RPUSH", name_, "somebody's data"});
  const auto refused = submit(*engine, name_, acquire(1));
  ASSERT_TRUE(refused.error);
  EXPECT_EQ(refused.error->code, ErrorCode::invalid_argument);
  EXPECT_EQ(peer_->ask({"LLEN", name_}).integer, 1);
  peer_->ask({"DEL", name_});
}

class RedisRedisson : public RedisInterop {
 protected:
  RedisRedisson() : RedisInterop{"redisson"} {}

  const std::string field_ = "6f1b5d1e-0000-4000-8000-00000000abcd:77";
  const std::string channel_ = "redisson_lock__channel:{" + name_ + "}";

  // nil if it was taken, else how long it is still held.
  RespValue peer_takes() {
    return peer_->ask({"EVAL",
                       "if (redis.call('exists', KEYS[1]) == 0) or "
                       "(redis.call('hexists', KEYS[1], ARGV[2]) == 1) then "
                       "redis.call('hincrby', KEYS[1], ARGV[2], 1) "
                       "redis.call('pexpire', KEYS[1], ARGV[1]) return nil end "
                       "return redis.call('pttl', KEYS[1])",
                       "1", name_, "30000", field_});
  }
  // 1 if it is free now, 0 if it was held more than once.
  RespValue peer_frees() {
    return peer_->ask({"EVAL",
                       "if redis.call('hexists', KEYS[1], ARGV[3]) == 0 then return nil end "
                       "if redis.call('hincrby', KEYS[1], ARGV[3], -1) > 0 then "
                       "redis.call('pexpire', KEYS[1], ARGV[2]) return 0 end "
                       "redis.call('del', KEYS[1]) "
                       "redis.call('publish', KEYS[2], ARGV[1]) return 1",
                       "2", name_, channel_, "0", "30000", field_});
  }
};

TEST_F(RedisRedisson, TheirLockExcludesUsUntilTheLastHoldEndsAndThenWakesUs) {
  const auto engine = open();
  ASSERT_EQ(peer_takes().kind, RespValue::Kind::nil);
  ASSERT_EQ(peer_takes().kind, RespValue::Kind::nil);  // re-entered
  ASSERT_EQ(submit(*engine, name_, acquire(1)).status, Status::queued);
  // We hear that we listen now, and look again: what was said before is lost.
  EXPECT_EQ(wait_for_ring(*engine).size(), 1U);
  EXPECT_EQ(submit(*engine, name_, poll(1)).status, Status::queued);
  EXPECT_EQ(peer_frees().integer, 0);
  EXPECT_EQ(submit(*engine, name_, poll(1)).status, Status::queued);
  EXPECT_EQ(peer_frees().integer, 1);
  const auto rings = wait_for_ring(*engine);
  ASSERT_EQ(rings.size(), 1U);
  EXPECT_EQ(rings[0].id, id(1));
  EXPECT_EQ(submit(*engine, name_, poll(1)).status, Status::granted);
  EXPECT_GT(peer_takes().integer, 0);
  EXPECT_EQ(submit(*engine, name_, release(1)).status, Status::released);
}

// Nobody announces an expiry, so a waiter must know when to look, also one that
// asks in the holder's last millisecond.
TEST_F(RedisRedisson, AnExpiryIsLookedForToTheLast) {
  const auto engine = open();
  int queued = 0;
  for (std::uint32_t round = 1; round <= 300; ++round) {
    ASSERT_EQ(peer_takes().kind, RespValue::Kind::nil);
    peer_->ask({"PEXPIRE", name_, round % 2 == 0 ? "1" : "2"});
    const core::Outcome outcome = submit(*engine, name_, acquire(round));
    if (outcome.status == Status::queued) {
      ++queued;
      ASSERT_GT(outcome.look_again, core::Duration::zero()) << "round " << round;
      ASSERT_TRUE(eventually([&] { return peer_->ask({"EXISTS", name_}).integer == 0; }));
    }
    ASSERT_EQ(submit(*engine, name_, release(round)).status, Status::released);
  }
  EXPECT_GT(queued, 0);
}

TEST_F(RedisRedisson, OurLockLooksLikeTheirsAndItsReleaseIsAnnounced) {
  const auto engine = open(1);
  const auto other = open(2);
  ASSERT_EQ(submit(*engine, name_, acquire(1)).status, Status::granted);
  EXPECT_EQ(peer_->ask({"TYPE", name_}).text, "hash");
  const std::string hex = id(1).hex();
  const std::string field = hex.substr(0, 8) + "-" + hex.substr(8, 4) + "-" + hex.substr(12, 4) +
                            "-" + hex.substr(16, 4) + "-" + hex.substr(20) + ":1";
  EXPECT_EQ(peer_->ask({"HGET", name_, field}).text, "1");
  EXPECT_GT(peer_takes().integer, 0);
  EXPECT_EQ(peer_frees().kind, RespValue::Kind::nil);
  // Whoever subscribes as Redisson does, as our own engine, hears of it.
  ASSERT_EQ(submit(*other, name_, acquire(2)).status, Status::queued);
  EXPECT_EQ(wait_for_ring(*other).size(), 1U);
  EXPECT_EQ(peer_->ask({"PUBSUB", "NUMSUB", channel_}).items[1].integer, 1);
  EXPECT_EQ(submit(*engine, name_, release(1)).status, Status::released);
  EXPECT_EQ(wait_for_ring(*other).size(), 1U);
  EXPECT_EQ(submit(*other, name_, poll(2)).status, Status::granted);
  EXPECT_EQ(submit(*other, name_, release(2)).status, Status::released);
  EXPECT_EQ(peer_->ask({"EXISTS", name_}).integer, 0);
  EXPECT_TRUE(eventually([&] {
    return peer_->ask({"PUBSUB", "NUMSUB", channel_}).items[1].integer == 0;
  }));
}

}  // namespace
}  // namespace holdfast
