// Small versions of what the simulation found: faults that must meet.
#include <gmock/gmock.h>

#include "unit/coordinator_desk.h"

namespace holdfast::test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

class CoordinatorFaults : public Desk {
 protected:
  static client::Wish shared_wish() {
    client::Wish made = wish();
    made.terms.shape = kShared;
    return made;
  }
  static client::Wish owned_wish() {
    client::Wish made = wish();
    made.owner = 7;
    return made;
  }
  static bool says_lost(const Caller& caller) {
    return caller.answers.size() == 1 && !caller.answers[0] &&
           caller.answers[0].error().code == ErrorCode::lease_lost;
  }
};

TEST_F(CoordinatorFaults, AReleaseThatRidesInARequeueSaysLostToo) {
  const auto holder = hold();
  const auto next = acquire();
  now += kHandOverTime;
  other(core::Revoke{.now = true});
  lose_rings();
  release(holder);
  EXPECT_THAT(send(), ElementsAre("requeue x"));
  reply();
  EXPECT_TRUE(says_lost(*holder));
  EXPECT_TRUE(next->holds());
  release(next);
}

TEST_F(CoordinatorFaults, ALateReleaseThatMustBeRepeatedSaysLost) {
  const auto holder = hold();
  now += 31s;
  other(core::Acquire{.id = id(99), .session = id(98), .shape = {}, .ttl = 30s, .window = 20s});
  release(holder);
  send();
  lose_reply();
  pass(1s);
  EXPECT_TRUE(says_lost(*holder));
}

TEST_F(CoordinatorFaults, AReaderThatLeavesTooLateHearsOfItThoughOthersStay) {
  const auto first = hold(shared_wish());
  const auto second = hold(shared_wish());
  now += 31s;
  release(first);
  EXPECT_TRUE(says_lost(*first));
  release(second);
}

TEST_F(CoordinatorFaults, AnInnerReleaseAfterTheDeadlineSaysLost) {
  const auto outer = hold(owned_wish());
  const auto inner = hold(owned_wish());
  now += 31s;
  release(inner);
  EXPECT_TRUE(says_lost(*inner));
  release(outer);
}

// The process slept, and its watchdog has not run yet.
TEST_F(CoordinatorFaults, AnOwnerDoesNotEnterItsDeadLeaseAgain) {
  const auto outer = hold(owned_wish());
  now += 31s;
  const auto inner = acquire(owned_wish());
  EXPECT_TRUE(inner->waits());
  EXPECT_EQ(losses.size(), 1U);
  run();
  EXPECT_TRUE(inner->holds());
  EXPECT_GT(inner->lease().token(), outer->lease().token());
  release(outer);
  release(inner);
}

// Entered at once, the warning of loss would overtake the first renewal.
TEST_F(CoordinatorFaults, ALatePushedGrantIsRenewedBeforeEntry) {
  other(test::acquire(2));
  const auto waiter = acquire();
  run();
  now += 13s;  // the warning is due at 13.8 s
  other(test::release(2));
  ring();
  EXPECT_TRUE(waiter->waits());
  EXPECT_THAT(send(), ElementsAre("renew x"));
  reply();
  EXPECT_TRUE(waiter->holds());
  release(waiter);
}

// Queued, granted, expired; queued again by the retry. The first grant's ring
// comes only now.
TEST_F(CoordinatorFaults, ARingAboutAnEarlierGrantOfTheSameRequestIsNotBelieved) {
  other(test::acquire(2));
  const auto waiter = acquire();
  send();
  lose_reply();
  other(test::release(2));
  now += 21s;
  other(test::acquire(3));
  tick();
  EXPECT_THAT(send(), ElementsAre("acquire x"));
  reply();
  ring();
  EXPECT_TRUE(waiter->waits());
  EXPECT_EQ(record().holders().at(0).id, id(3));
  other(test::release(3));
  run();
  EXPECT_TRUE(waiter->holds());
  release(waiter);
}

// The first send of a repeated acquire arrives when the grant is long over: the
// request holds again, but not what its caller was given.
TEST_F(CoordinatorFaults, ARenewalOfAnotherGrantIsALoss) {
  const auto caller = acquire();
  send();
  const core::Operation ghost = commands().at(0).operation;
  reply_failed(ErrorCode::outcome_unknown);
  pass_alone(100ms);
  send();
  reply();
  ASSERT_TRUE(caller->holds());
  pass_alone(11s);
  EXPECT_THAT(send(), ElementsAre("renew x"));
  now += 31s;
  other(ghost);
  reply();
  EXPECT_EQ(caller->lease().loss(), LossReason::expired);
  EXPECT_THAT(run(), Contains("release x"));
  EXPECT_TRUE(record().idle());
  release(caller);
}

}  // namespace
}  // namespace holdfast::test
