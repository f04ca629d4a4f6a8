// Letting go: to the next thread, to the store, and what is said of it.
#include <gmock/gmock.h>

#include "unit/coordinator_desk.h"

namespace holdfast::test {
namespace {

using core::Status;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class CoordinatorRelease : public Desk {
 protected:
  // A holder whose time for hand-overs ended unnoticed, so that its release
  // gives back and lines up for the next in one step.
  std::pair<std::shared_ptr<Caller>, std::shared_ptr<Caller>> before_requeue() {
    auto holder = hold();
    auto next = acquire();
    now += kHandOverTime;
    return {holder, next};
  }
};

TEST_F(CoordinatorRelease, IsToldTheStoresAnswer) {
  const auto caller = hold();
  release(caller);
  EXPECT_FALSE(coordinator.drained());
  EXPECT_THAT(send(), ElementsAre("release x"));
  EXPECT_FALSE(caller->answered());
  reply();
  EXPECT_TRUE(caller->released());
  EXPECT_TRUE(coordinator.drained());
  EXPECT_TRUE(coordinator.idle());
}

TEST_F(CoordinatorRelease, InTheBackgroundNobodyIsTold) {
  const auto caller = hold();
  coordinator.release(caller->claim, nullptr, now);
  EXPECT_THAT(run(), ElementsAre("release x"));
  EXPECT_TRUE(coordinator.idle());
}

TEST_F(CoordinatorRelease, ASecondReleaseIsHarmless) {
  const auto caller = hold();
  release(caller);
  run();
  const auto next = hold();
  coordinator.release(caller->claim, caller, now);
  EXPECT_THAT(send(), IsEmpty());
  EXPECT_EQ(record().holders().size(), 1U);
  release(next);
}

TEST_F(CoordinatorRelease, OfALockThatWasTakenAwaySaysLost) {
  const auto caller = hold();
  other(core::Revoke{.now = true});
  lose_rings();
  other(core::Operation{test::acquire(2)});
  release(caller);
  run();
  ASSERT_FALSE(*caller->answered());
  EXPECT_EQ(caller->answered()->error().code, ErrorCode::lease_lost);
  EXPECT_EQ(record().holders().at(0).id, id(2));  // and touches nobody else's
}

TEST_F(CoordinatorRelease, ALostReplyIsResolvedByAskingAgain) {
  const auto caller = hold();
  release(caller);
  send();
  lose_reply();
  EXPECT_FALSE(caller->answered());
  pass(1s);
  EXPECT_TRUE(caller->released());  // "not held" is what we wanted
}

TEST_F(CoordinatorRelease, ThatFailedGoesBeforeTheNextAcquire) {
  const auto caller = hold();
  release(caller);
  send();
  reply_failed(ErrorCode::unavailable);
  auto once = wish();
  once.terms.queue = false;
  const auto next = acquire(once);
  EXPECT_THAT(send(), ElementsAre("release x", "acquire x"));
  reply();
  EXPECT_TRUE(next->holds());
  release(next);
}

TEST_F(CoordinatorRelease, WithoutAnAnswerTheOutcomeIsUnknownButTheTryingGoesOn) {
  const auto caller = hold();
  const core::Time start = now;
  release(caller);
  int sends = 0;
  while (!caller->answered()) {
    if (!send().empty()) {
      ++sends;
      reply_failed(ErrorCode::outcome_unknown);
    }
    pass_alone(10ms);
    ASSERT_LT(now - start, 1min);
  }
  EXPECT_EQ(caller->answered()->error().code, ErrorCode::outcome_unknown);
  EXPECT_GE(now - start, 5s);
  EXPECT_FALSE(coordinator.drained());
  EXPECT_LT(sends, 60);
  while (!coordinator.drained()) {
    if (!send().empty()) {
      ++sends;
      reply_failed(ErrorCode::unavailable);
    }
    pass_alone(10ms);
    ASSERT_LT(now - start, 1min);
  }
  EXPECT_GE(now - start, 30s);  // by then it has ended by itself
  EXPECT_LT(sends, 120);
  EXPECT_EQ(caller->answers.size(), 1U);
  EXPECT_TRUE(coordinator.idle());
}

TEST_F(CoordinatorRelease, WithoutContactItIsUnavailable) {
  const auto caller = hold();
  release(caller);
  for (int i = 0; !caller->answered() && i < 1000; ++i) {
    if (!send().empty()) {
      reply_failed(ErrorCode::unavailable);
    }
    pass_alone(10ms);
  }
  EXPECT_EQ(caller->answered()->error().code, ErrorCode::unavailable);
  pass(1s);
  EXPECT_TRUE(record().idle());
}

TEST_F(CoordinatorRelease, BeforeTheNextAcquireOfTheSameName) {
  const auto caller = hold();
  release(caller);
  const auto again = acquire();
  EXPECT_THAT(send(), ElementsAre("release x", "acquire x"));
  reply();
  EXPECT_TRUE(again->holds());
  release(again);
}

// --- to the next thread

TEST_F(CoordinatorRelease, PassesTheLockOnWithoutTheStore) {
  const auto a = hold();
  const auto b = acquire();
  release(a);
  EXPECT_TRUE(a->released());
  ASSERT_TRUE(b->holds());
  EXPECT_EQ(b->lease().token(), *a->lease().token() + 1);
  EXPECT_EQ(b->lease().deadline(), a->lease().deadline());
  EXPECT_THAT(send(), IsEmpty());
  release(b);
  EXPECT_THAT(run(), ElementsAre("release x"));
}

TEST_F(CoordinatorRelease, NothingStaleIsPassedOn) {
  client::Wish brief = wish();
  brief.terms.ttl = 60ms;
  brief.terms.grace = 12ms;
  const auto a = hold(brief);
  const auto b = acquire(brief);
  now += 46ms;  // the watchdog has not noticed
  release(a);
  EXPECT_TRUE(b->waits());
  EXPECT_EQ(a->lease().loss(), LossReason::not_renewed);
  run();
  ASSERT_TRUE(b->holds());
  EXPECT_GT(*b->lease().token(), *a->lease().token() + 1);
  release(b);
}

TEST_F(CoordinatorRelease, TheNextStandsInTheStoresQueueWhenNoHandOverCanCome) {
  const auto a = hold();
  const auto b = acquire();
  pass_alone(kHandOverTime - 1ns);
  EXPECT_THAT(send(), IsEmpty());
  pass_alone(1ns);
  EXPECT_THAT(run(), ElementsAre("acquire x"));
  EXPECT_EQ(record().queue().size(), 1U);
  release(a);
  // It looks at once instead of waiting for the bell.
  EXPECT_THAT(send(), ElementsAre("release x", "poll x"));
  reply();
  EXPECT_TRUE(b->holds());
  release(b);
}

TEST_F(CoordinatorRelease, GivesBackAndLinesUpInOneCommand) {
  const auto [a, b] = before_requeue();
  other(core::Operation{test::acquire(2)});
  release(a);
  EXPECT_THAT(send(), ElementsAre("requeue x"));
  EXPECT_FALSE(a->answered());
  EXPECT_FALSE(coordinator.drained());
  reply();
  EXPECT_TRUE(a->released());
  EXPECT_TRUE(coordinator.drained());
  EXPECT_EQ(record().holders().at(0).id, id(2));
  EXPECT_EQ(record().queue().size(), 1U);
  other(core::Operation{test::release(2)});
  run();
  EXPECT_TRUE(b->holds());
  release(b);
}

TEST_F(CoordinatorRelease, ARequeueThatFailsStillReleases) {
  const auto [a, b] = before_requeue();
  release(a);
  send();
  reply_failed(ErrorCode::unavailable);
  EXPECT_EQ(b->error(), ErrorCode::unavailable);
  EXPECT_FALSE(a->answered());
  EXPECT_THAT(run(), ElementsAre("release x"));
  EXPECT_TRUE(a->released());
  EXPECT_TRUE(record().idle());
  EXPECT_TRUE(coordinator.idle());
}

TEST_F(CoordinatorRelease, ARequeueWhoseReplyIsLostIsAskedAgain) {
  const auto [a, b] = before_requeue();
  release(a);
  send();
  lose_reply();
  pass(1s);
  EXPECT_TRUE(a->released());
  EXPECT_TRUE(b->holds());
  EXPECT_EQ(record().holders().size(), 1U);
  release(b);
}

// The store may have done it: then the release finds nothing, and that is fine.
TEST_F(CoordinatorRelease, ARequeueThatNobodyAnswersReleasesBothWithoutFalseAlarm) {
  const auto [a, b] = before_requeue();
  release(a);
  send();
  lose_reply();
  for (int i = 0; b->waits() && i < 1000; ++i) {
    if (!send().empty()) {
      reply_failed(ErrorCode::outcome_unknown);
    }
    pass_alone(10ms);
  }
  EXPECT_EQ(b->error(), ErrorCode::outcome_unknown);
  EXPECT_THAT(run(), ElementsAre("release x", "release x"));
  EXPECT_TRUE(a->released());
  EXPECT_TRUE(record().idle());
  EXPECT_TRUE(coordinator.idle());
}

TEST_F(CoordinatorRelease, ARequeueIsTakenApartWhenTheNextGivesUpBeforeTheSend) {
  const auto [a, b] = before_requeue();
  release(a);
  cancel(b);
  EXPECT_THAT(run(), ElementsAre("release x"));
  EXPECT_TRUE(a->released());
  EXPECT_TRUE(coordinator.idle());
}

TEST_F(CoordinatorRelease, ARequeueIsTakenApartWhenTheNextGivesUpBetweenTwoSends) {
  const auto [a, b] = before_requeue();
  release(a);
  send();
  lose_reply();
  cancel(b);
  EXPECT_THAT(run(), ElementsAre("release x", "release x"));
  EXPECT_TRUE(a->released());
  EXPECT_TRUE(record().idle());
  EXPECT_TRUE(coordinator.idle());
}

TEST_F(CoordinatorRelease, ACancelWhileTheRequeueIsOnItsWayReleasesBoth) {
  const auto [a, b] = before_requeue();
  release(a);
  send();
  cancel(b);
  reply();
  run();
  EXPECT_TRUE(a->released());
  EXPECT_TRUE(record().idle());
  EXPECT_TRUE(coordinator.idle());
}

// --- nested and lost

TEST_F(CoordinatorRelease, ANestedLeaseThatIsLostSaysSoToo) {
  client::Wish owned = wish();
  owned.owner = 7;
  const auto outer = hold(owned);
  const auto inner = acquire(owned);
  other(core::Revoke{.now = true});
  ring();
  run();
  release(inner);
  ASSERT_FALSE(*inner->answered());
  EXPECT_EQ(inner->answered()->error().code, ErrorCode::lease_lost);
  release(outer);
  EXPECT_EQ(outer->answered()->error().code, ErrorCode::lease_lost);
  EXPECT_TRUE(coordinator.idle());
}

// --- questions of no request

TEST_F(CoordinatorRelease, AQuestionIsAnsweredOnce) {
  const auto holder = hold();
  const auto revoke = ask(core::Revoke{});
  const auto resize = ask(core::Resize{3});
  const auto nobody = ask(core::Resize{3}, "y");
  EXPECT_THAT(send(), ElementsAre("revoke x", "resize x", "resize y"));
  reply();
  EXPECT_EQ(**revoke->answered(), 1U);
  EXPECT_EQ(resize->answered()->error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(nobody->answered()->error().code, ErrorCode::invalid_argument);
  const auto unlucky = ask(core::Revoke{});
  send();
  reply_failed(ErrorCode::outcome_unknown);  // not ours to repeat
  EXPECT_EQ(unlucky->answered()->error().code, ErrorCode::outcome_unknown);
  release(holder);
}

}  // namespace
}  // namespace holdfast::test
