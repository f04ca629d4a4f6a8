#include "core/lock_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "support/commands.h"

namespace holdfast::core {
namespace {

using namespace test;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::uint64_t kFloor = 1'000'000;

class LockRecordTest : public ::testing::Test {
 protected:
  Outcome apply(const Operation& operation) {
    wakes_.clear();
    return record_.apply(operation, {.now = now_, .token_floor = floor_}, wakes_);
  }
  Status status(const Operation& operation) { return apply(operation).status; }

  std::vector<std::pair<RequestId, std::uint64_t>> woken() const {
    std::vector<std::pair<RequestId, std::uint64_t>> all;
    for (const Wake& wake : wakes_) {
      EXPECT_EQ(wake.session, wake.id);  // as support/commands.h makes them
      all.emplace_back(wake.id, wake.token);
    }
    return all;
  }

  LockRecord record_;
  std::vector<Wake> wakes_;
  Time now_ = at(0s);
  std::uint64_t floor_ = kFloor;
};

TEST_F(LockRecordTest, GrantsAFreeLockForTheWholeTtl) {
  const Outcome first = apply(acquire(1));
  EXPECT_EQ(first.status, Status::granted);
  EXPECT_EQ(first.token, kFloor);
  EXPECT_EQ(first.lease_for, 30s);
  EXPECT_THAT(wakes_, IsEmpty());
  EXPECT_EQ(record_.next_change(), now_ + 30s);
  EXPECT_EQ(record_.last_token(), kFloor + kTokenStride - 1);
}

TEST_F(LockRecordTest, AReleaseWakesOneOfTenThousand) {
  constexpr std::uint32_t kWaiters = 10'000;
  for (std::uint32_t i = 1; i <= kWaiters; ++i) {
    apply(acquire(i));
    EXPECT_THAT(wakes_, IsEmpty());
  }
  for (std::uint32_t i = 1; i <= 50; ++i) {
    EXPECT_EQ(status(release(i)), Status::released);
    ASSERT_EQ(wakes_.size(), 1U);
    EXPECT_EQ(wakes_[0].id, id(i + 1));
  }
  EXPECT_EQ(record_.queue().size(), kWaiters - 51);
}

TEST_F(LockRecordTest, QueuesInOrderAndPushesTheLockToTheFirst) {
  apply(acquire(1));
  now_ += 1s;
  const Outcome second = apply(acquire(2));
  EXPECT_EQ(second.status, Status::queued);
  EXPECT_EQ(second.ahead, 0U);
  EXPECT_EQ(second.look_again, 29s);
  now_ += 1s;
  const Outcome third = apply(acquire(3));
  EXPECT_EQ(third.ahead, 1U);
  EXPECT_EQ(third.look_again, 19s);  // the waiter ahead ends before the holder

  EXPECT_EQ(status(release(1)), Status::released);
  EXPECT_THAT(woken(), ElementsAre(std::pair{id(2), kFloor + kTokenStride}));
  const Outcome granted = apply(poll(2));
  EXPECT_EQ(granted.status, Status::granted);
  EXPECT_EQ(granted.lease_for, 20s);  // the window, until its first renewal
  EXPECT_EQ(apply(renew(2)).lease_for, 30s);
}

TEST_F(LockRecordTest, APushedGrantNeverOutlastsItsTtl) {
  apply(acquire(1));
  Acquire short_lived = acquire(2);
  short_lived.ttl = 5s;
  apply(short_lived);
  apply(release(1));
  EXPECT_EQ(apply(poll(2)).lease_for, 5s);
}

TEST_F(LockRecordTest, BusyInsteadOfWaitingLeavesNothingBehind) {
  apply(acquire(1));
  const LockRecord before = record_;
  EXPECT_EQ(status(try_acquire(2)), Status::busy);
  EXPECT_EQ(record_, before);
}

TEST_F(LockRecordTest, AskingAgainAnswersWithWhatTheIdHas) {
  const Outcome first = apply(acquire(1));
  now_ += 10s;
  const Outcome again = apply(acquire(1));
  EXPECT_EQ(again.status, Status::granted);
  EXPECT_EQ(again.token, first.token);
  EXPECT_EQ(again.lease_for, 20s);

  apply(acquire(2));
  now_ += 15s;
  EXPECT_EQ(status(acquire(2)), Status::queued);  // and a heartbeat
  EXPECT_EQ(record_.queue().size(), 1U);
  EXPECT_EQ(record_.queue().front().expires, now_ + 20s);
}

TEST_F(LockRecordTest, AnExpiredHolderIsGoneExactlyAtItsExpiry) {
  apply(acquire(1));
  now_ += 30s - 1ns;
  EXPECT_EQ(status(try_acquire(2)), Status::busy);
  now_ += 1ns;
  EXPECT_EQ(status(renew(1)), Status::not_held);  // never revived
  EXPECT_EQ(apply(try_acquire(2)).token, kFloor + kTokenStride);
  EXPECT_EQ(status(release(1)), Status::not_held);
  EXPECT_EQ(record_.holders().front().id, id(2));
}

TEST_F(LockRecordTest, ADeadWaiterIsSkipped) {
  apply(acquire(1));
  apply(acquire(2));
  apply(acquire(3));
  now_ += 15s;
  apply(heartbeat(3));
  apply(poll(2));  // a look without a heartbeat keeps nobody alive
  now_ += 5s;
  apply(release(1));
  EXPECT_THAT(woken(), ElementsAre(std::pair{id(3), kFloor + kTokenStride}));
  EXPECT_EQ(status(poll(2)), Status::not_held);
}

TEST_F(LockRecordTest, AWaiterThatLooksAfterTheExpiryGrantsItself) {
  apply(acquire(1));
  now_ += 20s;
  apply(acquire(2));
  now_ += 10s;
  const Outcome granted = apply(poll(2));
  EXPECT_EQ(granted.status, Status::granted);
  EXPECT_EQ(granted.token, kFloor + kTokenStride);
  EXPECT_EQ(granted.lease_for, 20s);
  EXPECT_THAT(wakes_, IsEmpty());  // its own request is never in the wakes
}

TEST_F(LockRecordTest, ReadersShareAndAWriterIsNotOvertaken) {
  EXPECT_EQ(status(acquire(1, kShared)), Status::granted);
  EXPECT_EQ(status(acquire(2, kShared)), Status::granted);
  EXPECT_EQ(status(acquire(3)), Status::queued);
  EXPECT_EQ(status(acquire(4, kShared)), Status::queued);
  EXPECT_EQ(status(acquire(5, kShared)), Status::queued);
  EXPECT_EQ(status(barge(6, kShared)), Status::granted);

  apply(release(1));
  apply(release(6));
  EXPECT_THAT(wakes_, IsEmpty());
  apply(release(2));
  EXPECT_THAT(woken(), ElementsAre(std::pair{id(3), kFloor + 3 * kTokenStride}));
  apply(release(3));
  EXPECT_THAT(woken(), ElementsAre(std::pair{id(4), kFloor + 4 * kTokenStride},
                                   std::pair{id(5), kFloor + 5 * kTokenStride}));
}

TEST_F(LockRecordTest, PermitsNeverExceedTheTotal) {
  EXPECT_EQ(status(acquire(1, permits(2, 3))), Status::granted);
  EXPECT_EQ(status(acquire(2, permits(2, 3))), Status::queued);
  EXPECT_EQ(status(acquire(3, permits(1, 3))), Status::queued);  // would fit, must not overtake
  EXPECT_EQ(record_.limit(), 3U);
  apply(release(1));
  EXPECT_EQ(wakes_.size(), 2U);
  EXPECT_EQ(status(try_acquire(4, permits(1, 3))), Status::busy);
}

TEST_F(LockRecordTest, AnotherKindOrTotalIsRefusedUntilIdle) {
  apply(acquire(1, permits(1, 3)));
  const Outcome other = apply(acquire(2, permits(1, 4)));
  EXPECT_EQ(other.status, Status::refused);
  EXPECT_EQ(other.count, 3U);
  EXPECT_EQ(status(acquire(2)), Status::refused);
  apply(release(1));
  EXPECT_EQ(record_.limit(), 0U);
  EXPECT_EQ(status(acquire(2)), Status::granted);
  const Outcome semaphore = apply(acquire(3, permits(1, 3)));
  EXPECT_EQ(semaphore.status, Status::refused);
  EXPECT_EQ(semaphore.count, 0U);
}

TEST_F(LockRecordTest, NonsenseFailsAndChangesNothing) {
  const LockRecord before = record_;
  Acquire no_ttl = acquire(1);
  no_ttl.ttl = 0s;
  Acquire endless = acquire(1);
  endless.window = kMaxTtl + 1ns;
  for (const Operation& wrong : std::vector<Operation>{
           acquire(1, permits(4, 3)), acquire(1, permits(0, 3)), acquire(1, permits(1, 0)),
           acquire(1, permits(1, kMaxPermits + 1)), acquire(1, Shape{.permits = 2}),
           acquire(1, Shape{.limit = 2}), no_ttl, endless, Requeue{.id = id(1), .next = acquire(1)},
           Resize{.limit = 0}}) {
    const Outcome outcome = apply(wrong);
    EXPECT_EQ(outcome.status, Status::failed);
    ASSERT_TRUE(outcome.error);
    EXPECT_EQ(outcome.error->code, ErrorCode::invalid_argument);
    EXPECT_EQ(record_, before);
  }
}

TEST_F(LockRecordTest, RequeueLinesUpBehindThoseWhoWaited) {
  apply(acquire(1));
  apply(acquire(2));
  const Requeue requeue{.id = id(1), .next = acquire(3)};
  const Outcome outcome = apply(requeue);
  EXPECT_EQ(outcome.status, Status::queued);
  EXPECT_EQ(outcome.ahead, 0U);
  EXPECT_THAT(woken(), ElementsAre(std::pair{id(2), kFloor + kTokenStride}));
  const LockRecord after = record_;
  EXPECT_EQ(status(requeue), Status::queued);  // a repetition changes nothing
  EXPECT_EQ(record_, after);
  apply(release(2));
  EXPECT_EQ(status(requeue), Status::granted);
  EXPECT_THAT(wakes_, IsEmpty());
}

TEST_F(LockRecordTest, RequeueWithNobodyWaitingIsANewGrant) {
  apply(acquire(1));
  const Outcome outcome = apply(Requeue{.id = id(1), .next = acquire(2)});
  EXPECT_EQ(outcome.status, Status::granted);
  EXPECT_EQ(outcome.token, kFloor + kTokenStride);
  EXPECT_EQ(outcome.lease_for, 30s);
}

TEST_F(LockRecordTest, RevokedMayOnlyBeReleased) {
  apply(acquire(1));
  apply(acquire(2));
  now_ += 1s;
  const Outcome outcome = apply(Revoke{});
  EXPECT_EQ(outcome.status, Status::done);
  EXPECT_EQ(outcome.count, 1U);
  EXPECT_THAT(woken(), ElementsAre(std::pair{id(1), std::uint64_t{0}}));
  EXPECT_EQ(status(renew(1)), Status::revoked);
  EXPECT_EQ(status(acquire(1)), Status::revoked);
  EXPECT_EQ(apply(poll(1)).lease_for, 29s);
  EXPECT_EQ(status(poll(2)), Status::queued);
  EXPECT_EQ(status(release(1)), Status::released);
  EXPECT_EQ(wakes_.size(), 1U);
}

TEST_F(LockRecordTest, NobodyJoinsRevokedReaders) {
  apply(acquire(1, kShared));
  apply(Revoke{});
  EXPECT_EQ(status(acquire(2, kShared)), Status::queued);
  apply(release(1));
  EXPECT_EQ(status(poll(2)), Status::granted);
}

TEST_F(LockRecordTest, RevokeNowFreesAtOnce) {
  apply(acquire(1, kShared));
  apply(acquire(2, kShared));
  apply(acquire(3));
  EXPECT_EQ(apply(Revoke{.now = true}).count, 2U);
  EXPECT_THAT(woken(),
              ElementsAre(std::pair{id(1), std::uint64_t{0}}, std::pair{id(2), std::uint64_t{0}},
                          std::pair{id(3), kFloor + 2 * kTokenStride}));
  EXPECT_EQ(status(renew(1)), Status::not_held);
  EXPECT_EQ(apply(Revoke{.now = true}).count, 1U);
  EXPECT_EQ(apply(Revoke{.now = true}).count, 0U);
}

TEST_F(LockRecordTest, ResizeGrowsAndShrinksWithoutTakingBack) {
  EXPECT_EQ(status(Resize{.limit = 2}), Status::not_held);
  apply(acquire(1, permits(2, 2)));
  apply(acquire(2, permits(2, 2)));
  EXPECT_EQ(status(Resize{.limit = 4}), Status::done);
  EXPECT_THAT(woken(), ElementsAre(std::pair{id(2), kFloor + kTokenStride}));
  EXPECT_EQ(status(acquire(3, permits(1, 2))), Status::refused);
  EXPECT_EQ(status(Resize{.limit = 3}), Status::done);
  EXPECT_EQ(record_.holders().size(), 2U);
  EXPECT_EQ(status(acquire(3, permits(1, 3))), Status::queued);
  apply(release(1));
  EXPECT_EQ(wakes_.size(), 1U);
}

TEST_F(LockRecordTest, ResizePutsOutWhoWantsMoreThanThereIs) {
  apply(acquire(1, permits(3, 4)));
  apply(acquire(2, permits(4, 4)));
  apply(acquire(3, permits(1, 4)));
  EXPECT_EQ(status(Resize{.limit = 3}), Status::done);
  EXPECT_THAT(woken(), ElementsAre(std::pair{id(2), std::uint64_t{0}}));
  EXPECT_EQ(status(poll(2)), Status::not_held);
  const Outcome again = apply(acquire(2, permits(4, 4)));
  EXPECT_EQ(again.status, Status::refused);
  EXPECT_EQ(again.count, 3U);
  EXPECT_EQ(status(poll(3)), Status::queued);
}

TEST_F(LockRecordTest, ResizeOfAMutexIsRefused) {
  apply(acquire(1));
  EXPECT_EQ(status(Resize{.limit = 2}), Status::refused);
}

TEST_F(LockRecordTest, TokensNeverWrap) {
  floor_ = kMaxToken - kTokenStride + 1;
  EXPECT_EQ(apply(acquire(1)).token, floor_);
  EXPECT_EQ(record_.last_token(), kMaxToken);
  apply(acquire(2));
  apply(release(1));
  EXPECT_THAT(wakes_, IsEmpty());
  EXPECT_EQ(status(poll(2)), Status::queued);
  apply(release(2));
  const LockRecord before = record_;
  EXPECT_EQ(status(acquire(3)), Status::failed);
  EXPECT_EQ(record_, before);
}

TEST_F(LockRecordTest, AWakeOfAnEarlierCommandGivesWayToTheOutcome) {
  apply(acquire(1));
  apply(acquire(2));
  std::vector<Wake> batch;
  record_.apply(release(1), {.now = now_, .token_floor = floor_}, batch);
  EXPECT_EQ(batch.size(), 1U);
  EXPECT_EQ(record_.apply(poll(2), {.now = now_, .token_floor = floor_}, batch).status,
            Status::granted);
  EXPECT_THAT(batch, IsEmpty());
}

}  // namespace
}  // namespace holdfast::core
