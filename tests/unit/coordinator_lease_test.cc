// How a lease is kept, and how its loss is told.
#include <gmock/gmock.h>

#include "unit/coordinator_desk.h"

namespace holdfast::test {
namespace {

using core::LeaseKeeper;
using core::Status;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class CoordinatorLease : public Desk {
 protected:
  // Granted by a push, `late` after the last heartbeat was sent.
  std::shared_ptr<Caller> pushed(const client::Wish& wish, core::Duration late) {
    other(core::Operation{test::acquire(2)});
    const auto caller = acquire(wish);
    run();
    now += late;
    other(core::Operation{test::release(2)});
    ring();
    return caller;
  }
  void expire_at_store() {
    other(core::Revoke{.now = true});
    lose_rings();
  }
};

TEST_F(CoordinatorLease, IsRenewedUntilItIsReleased) {
  const auto caller = hold();
  const core::Time start = now;
  for (int i = 0; i < 100; ++i) {
    pass(3s);
    ASSERT_GT(caller->lease().deadline() - now, 18s);
  }
  EXPECT_GT(now - start, 4min);
  EXPECT_THAT(losses, IsEmpty());
  release(caller);
  run();
  pass(1min);
  EXPECT_TRUE(coordinator.idle());
  EXPECT_EQ(coordinator.next_due(), base::kNever);
}

TEST_F(CoordinatorLease, RenewalsAreAThirdOfTheTtlApart) {
  const auto caller = hold();
  for (int i = 0; i < 3; ++i) {
    pass_alone(8s);
    EXPECT_THAT(send(), IsEmpty());
    pass_alone(2s);
    EXPECT_THAT(send(), ElementsAre("renew x"));
    reply();
    EXPECT_EQ(caller->lease().deadline(), LeaseKeeper::deadline(now, 30s));
  }
  release(caller);
}

TEST_F(CoordinatorLease, ARenewalCountsFromItsSend) {
  const auto caller = hold();
  pass_alone(10s);
  send();
  const core::Time sent_at = now;
  apply();
  now += 5s;
  reply();
  EXPECT_EQ(caller->lease().deadline(), LeaseKeeper::deadline(sent_at, 30s));
  release(caller);
}

TEST_F(CoordinatorLease, AFailedRenewalIsTriedAgainInTime) {
  const auto caller = hold();
  const core::Time deadline = caller->lease().deadline();
  pass_alone(10s);
  int sends = 0;
  while (now < deadline - 10s) {
    if (!send().empty()) {
      ++sends;
      reply_failed(ErrorCode::unavailable);
      EXPECT_EQ(caller->lease().deadline(), deadline);
    }
    pass_alone(100ms);
  }
  EXPECT_GT(sends, 5);
  EXPECT_LT(sends, 20);
  pass(1s);
  EXPECT_GT(caller->lease().deadline(), deadline);
  EXPECT_THAT(losses, IsEmpty());
  release(caller);
}

TEST_F(CoordinatorLease, ARenewalWhoseReplyIsLostExtendsNothingHere) {
  const auto caller = hold();
  const core::Time deadline = caller->lease().deadline();
  pass_alone(10s);
  send();
  lose_reply();
  EXPECT_EQ(caller->lease().deadline(), deadline);
  release(caller);
}

TEST_F(CoordinatorLease, TheWarningComesOnceAtGraceBeforeTheDeadline) {
  const auto caller = hold();
  const core::Time deadline = caller->lease().deadline();
  pass_alone(deadline - 6s - now - 1ns);
  EXPECT_THAT(losses, IsEmpty());
  pass_alone(1ns);
  ASSERT_THAT(losses, ElementsAre(&caller->lease()));
  EXPECT_EQ(caller->lease().loss(), LossReason::not_renewed);
  EXPECT_TRUE(caller->lease().lost().stop_requested());
  EXPECT_EQ(caller->lease().deadline(), deadline);  // the rest is for cleaning up
  pass(1min);
  EXPECT_EQ(losses.size(), 1U);
  release(caller);
  run();
}

TEST_F(CoordinatorLease, WithoutRenewalItEndsAtItsTtl) {
  client::Wish once = wish();
  once.terms.renew = false;
  const auto caller = hold(once);
  const core::Time deadline = caller->lease().deadline();
  pass(1min);
  EXPECT_EQ(caller->lease().deadline(), deadline);
  EXPECT_EQ(losses.size(), 1U);
  EXPECT_TRUE(record().holders().empty() || record().next_change() < now);
  release(caller);
  run();
  EXPECT_EQ(caller->answered()->error().code, ErrorCode::lease_lost);
}

TEST_F(CoordinatorLease, MaxHoldEndsTheRenewalAndNothingElse) {
  client::Wish bounded = wish();
  bounded.max_hold = 25s;
  const auto caller = hold(bounded);
  const core::Time start = now;
  pass(25s);
  EXPECT_THAT(losses, IsEmpty());
  const core::Time deadline = caller->lease().deadline();
  EXPECT_LE(deadline, start + 25s + 30s);
  pass(1min);
  EXPECT_EQ(caller->lease().deadline(), deadline);
  EXPECT_EQ(losses.size(), 1U);
  release(caller);
  run();
}

TEST_F(CoordinatorLease, WhatTheStoreForgotIsLostAtOnce) {
  const auto caller = hold();
  expire_at_store();
  pass(10s);
  ASSERT_EQ(losses.size(), 1U);
  EXPECT_EQ(caller->lease().loss(), LossReason::expired);
  EXPECT_LE(caller->lease().deadline(), now);
  EXPECT_THAT(run(), IsEmpty());
  release(caller);
  EXPECT_EQ(caller->answered()->error().code, ErrorCode::lease_lost);
  EXPECT_THAT(send(), IsEmpty());  // nothing of ours to release
  EXPECT_TRUE(coordinator.idle());
}

// The second loss is no news to the holder, but to the release it is.
TEST_F(CoordinatorLease, AReleaseAfterTheWarningAndTheLossSaysLost) {
  const auto caller = hold();
  pass_alone(10s);
  send();
  apply();
  now += 14s;
  tick();
  EXPECT_EQ(caller->lease().loss(), LossReason::not_renewed);
  reply_with({{.status = Status::not_held}});
  EXPECT_EQ(losses.size(), 1U);
  release(caller);
  ASSERT_TRUE(caller->answered());
  ASSERT_FALSE(*caller->answered());
  EXPECT_EQ(caller->answered()->error().code, ErrorCode::lease_lost);
}

TEST_F(CoordinatorLease, ARevokedLeaseIsToldAndItsReleaseIsTheAcknowledgement) {
  const auto caller = hold();
  other(core::Revoke{});
  ring();
  EXPECT_THAT(run(), ElementsAre("poll x"));
  EXPECT_EQ(caller->lease().loss(), LossReason::revoked);
  EXPECT_EQ(losses.size(), 1U);
  EXPECT_GT(caller->lease().deadline(), now);
  EXPECT_FALSE(record().idle());
  release(caller);
  EXPECT_THAT(run(), ElementsAre("release x"));
  EXPECT_TRUE(caller->released());
  EXPECT_TRUE(record().idle());
}

TEST_F(CoordinatorLease, ARevocationIsAlsoLearnedFromTheRenewal) {
  const auto caller = hold();
  other(core::Revoke{});
  lose_rings();
  pass(10s);
  EXPECT_EQ(caller->lease().loss(), LossReason::revoked);
  const core::Time deadline = caller->lease().deadline();
  pass(5s);
  EXPECT_EQ(caller->lease().deadline(), deadline);
  release(caller);
}

// --- grants that were pushed to a waiter

TEST_F(CoordinatorLease, APushedGrantCountsFromTheLastHeartbeatAndIsProlongedAtOnce) {
  const core::Time heartbeat = now;
  const auto caller = pushed(wish(), 5s);
  ASSERT_TRUE(caller->holds());  // without delay
  EXPECT_EQ(caller->lease().deadline(), LeaseKeeper::deadline(heartbeat, 20s));
  tick();
  EXPECT_THAT(send(), ElementsAre("renew x"));
  reply();
  EXPECT_EQ(caller->lease().deadline(), LeaseKeeper::deadline(now, 30s));
  release(caller);
}

TEST_F(CoordinatorLease, APushedGrantThatIsNearlyOverIsRenewedBeforeEntry) {
  const auto caller = pushed(wish(), 14s);  // grace 6s: deadline at 19.798 s
  EXPECT_TRUE(caller->waits());
  EXPECT_THAT(send(), ElementsAre("renew x"));
  reply();
  ASSERT_TRUE(caller->holds());
  EXPECT_EQ(caller->lease().deadline(), LeaseKeeper::deadline(now, 30s));
  EXPECT_THAT(losses, IsEmpty());
  release(caller);
}

TEST_F(CoordinatorLease, AnArrivalThatTheStoreForgotLinesUpAgain) {
  const auto caller = pushed(wish(), 14s);
  expire_at_store();
  other(core::Operation{test::acquire(3)});
  run();
  EXPECT_TRUE(caller->waits());
  EXPECT_EQ(record().queue().size(), 1U);
  other(core::Operation{test::release(3)});
  run();
  EXPECT_TRUE(caller->holds());
  release(caller);
}

TEST_F(CoordinatorLease, AnArrivalCanBeCancelled) {
  const auto caller = pushed(wish(), 14s);
  send();
  EXPECT_TRUE(cancel(caller));
  reply();
  run();
  EXPECT_EQ(caller->error(), ErrorCode::timed_out);
  EXPECT_TRUE(record().idle());
  EXPECT_TRUE(coordinator.idle());
}

TEST_F(CoordinatorLease, AStoreTooSlowForTheTtlIsNamed) {
  const auto caller = acquire();
  for (int i = 0; caller->waits(); ++i) {
    ASSERT_LT(i, 20);
    if (send().empty()) {
      pass_alone(1s);
      continue;
    }
    apply();
    now += 25s;  // every answer takes longer than the lease is good for
    reply();
  }
  EXPECT_EQ(caller->error(), ErrorCode::unavailable);
  run();
  EXPECT_TRUE(coordinator.idle());
}

// A try ends with the store's answer; when none comes, with ours.
TEST_F(CoordinatorLease, ATryDoesNotArriveForEver) {
  client::Wish attempt = wish();
  attempt.terms.queue = false;
  const auto caller = acquire(attempt);
  send();
  apply();
  now += 25s;
  reply();
  EXPECT_TRUE(caller->waits());
  const core::Time start = now;
  while (caller->waits() && now - start < 1min) {
    if (!send().empty()) {
      reply_failed(ErrorCode::unavailable);
    }
    pass_alone(100ms);
  }
  EXPECT_EQ(caller->error(), ErrorCode::outcome_unknown);
  EXPECT_GE(now - start, 5s);
}

TEST_F(CoordinatorLease, WithoutRenewalAPushedGrantIsProlongedOnceAndNeverAgain) {
  client::Wish once = wish();
  once.terms.renew = false;
  const auto caller = pushed(once, 5s);
  tick();
  EXPECT_THAT(run(), ElementsAre("renew x"));
  const core::Time deadline = caller->lease().deadline();
  EXPECT_EQ(deadline, LeaseKeeper::deadline(now, 30s));
  pass(1min);
  EXPECT_EQ(caller->lease().deadline(), deadline);
  EXPECT_EQ(losses.size(), 1U);
  release(caller);
  run();
}

// --- health

class CoordinatorHealth : public CoordinatorLease {
 protected:
  static client::Wish checked() {
    client::Wish made = wish();
    made.health = std::make_shared<client::HealthCheck>(
        client::HealthCheck{.ask = [] { return true; }, .timeout = 1s});
    return made;
  }
};

TEST_F(CoordinatorHealth, IsAskedBeforeEachRenewal) {
  const auto caller = hold(checked());
  pass_alone(10s);
  EXPECT_THAT(questions, ElementsAre(caller->claim));
  EXPECT_THAT(send(), IsEmpty());
  healthy(caller, true);
  EXPECT_THAT(run(), ElementsAre("renew x"));
  questions.clear();
  pass_alone(10s);
  EXPECT_THAT(questions, ElementsAre(caller->claim));
  healthy(caller, true);
  release(caller);
}

TEST_F(CoordinatorHealth, OneThatIsUnwellIsNotRenewedAgain) {
  const auto caller = hold(checked());
  const core::Time deadline = caller->lease().deadline();
  pass_alone(10s);
  healthy(caller, false);
  EXPECT_THAT(losses, IsEmpty());  // the lease runs out by itself
  pass(1min);
  EXPECT_EQ(questions.size(), 1U);
  EXPECT_EQ(caller->lease().deadline(), deadline);
  EXPECT_EQ(losses.size(), 1U);
  release(caller);
  run();
}

TEST_F(CoordinatorHealth, AnAnswerAfterTheReleaseIsIgnored) {
  const auto caller = hold(checked());
  pass_alone(10s);
  release(caller);
  run();
  healthy(caller, true);
  EXPECT_THAT(send(), IsEmpty());
  EXPECT_TRUE(coordinator.idle());
}

TEST_F(CoordinatorHealth, OneReadersTroubleIsNotTheOthers) {
  client::Wish reader = wish();
  reader.terms.shape = kShared;
  client::Wish checked_reader = checked();
  checked_reader.terms.shape = kShared;
  const auto ill = acquire(checked_reader);
  const auto well = acquire(reader);
  run();
  ASSERT_TRUE(ill->holds() && well->holds());
  const core::Time deadline = ill->lease().deadline();
  pass_alone(10s);
  healthy(ill, false);
  run();
  EXPECT_EQ(ill->lease().deadline(), deadline);
  EXPECT_GT(well->lease().deadline(), deadline);
  pass(1min);
  EXPECT_THAT(losses, ElementsAre(&ill->lease()));
  release(ill);
  release(well);
}

// Its check may take longer than the lease lasts.
TEST_F(CoordinatorHealth, OneReadersSilenceIsNotTheOthers) {
  client::Wish reader = wish();
  reader.terms.shape = kShared;
  client::Wish checked_reader = checked();
  checked_reader.terms.shape = kShared;
  const auto silent = acquire(checked_reader);
  const auto well = acquire(reader);
  run();
  const core::Time deadline = silent->lease().deadline();
  pass(1min);
  EXPECT_THAT(questions, ElementsAre(silent->claim));
  EXPECT_THAT(losses, ElementsAre(&silent->lease()));
  EXPECT_EQ(silent->lease().deadline(), deadline);
  EXPECT_GT(well->lease().deadline(), now);
  release(silent);
  release(well);
}

// The renewal that waited for its answer must not wait for ever.
TEST_F(CoordinatorHealth, WhoLeavesWithoutAnAnswerDoesNotHoldUpTheRenewal) {
  client::Wish checked_reader = checked();
  checked_reader.terms.shape = kShared;
  client::Wish reader = wish();
  reader.terms.shape = kShared;
  const auto asked = acquire(checked_reader);
  const auto stays = acquire(reader);
  run();
  pass_alone(10s);
  ASSERT_EQ(questions.size(), 1U);
  release(asked);
  pass(1min);
  EXPECT_THAT(losses, IsEmpty());
  EXPECT_GT(stays->lease().deadline(), now);
  release(stays);
}

TEST_F(CoordinatorHealth, ALeaseThatWasHandedOnIsRenewedWhateverEndedBefore) {
  client::Wish short_lived = wish();
  short_lived.terms.ttl = 60ms;
  short_lived.terms.grace = 12ms;
  client::Wish bounded = short_lived;
  bounded.max_hold = 1ms;
  const auto first = hold(bounded);
  const auto second = acquire(short_lived);
  pass_alone(22ms);  // the renewal was due, and the first did not want it
  EXPECT_THAT(send(), IsEmpty());
  release(first);
  ASSERT_TRUE(second->holds());
  EXPECT_EQ(second->lease().token(), *first->lease().token() + 1);
  pass(1s);
  EXPECT_THAT(losses, Each(::testing::Ne(&second->lease())));
  EXPECT_GT(second->lease().deadline(), now);
  release(second);
}

}  // namespace
}  // namespace holdfast::test
