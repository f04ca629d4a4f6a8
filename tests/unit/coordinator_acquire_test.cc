// How an acquire ends: granted, turned away, cancelled, or nobody knows.
#include <gmock/gmock.h>

#include "unit/coordinator_desk.h"

namespace holdfast::test {
namespace {

using core::Status;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CoordinatorAcquire : public Desk {
 protected:
  const core::Acquire& acquire_sent() const {
    return std::get<core::Acquire>(commands().at(0).operation);
  }
  static client::Wish attempt() {
    client::Wish made = wish();
    made.terms.queue = false;
    return made;
  }
};

TEST_F(CoordinatorAcquire, GrantsWithTheStoresTokenFromBeforeTheSend) {
  const auto caller = acquire();
  EXPECT_THAT(send(), ElementsAre("acquire x"));
  const core::Time sent_at = now;
  now += 3s;
  reply();
  ASSERT_TRUE(caller->holds());
  EXPECT_EQ(caller->lease().name, "x");
  EXPECT_EQ(caller->lease().token(), record().holders().at(0).token);
  EXPECT_EQ(caller->lease().deadline(), core::LeaseKeeper::deadline(sent_at, 30s));
  release(caller);
}

TEST_F(CoordinatorAcquire, TheLineHasAnEnd) {
  const auto holder = acquire();
  send();
  reply();
  std::vector<std::shared_ptr<Caller>> waiting;
  while (waiting.size() < kMaxWaiters) {
    waiting.push_back(acquire());
  }
  EXPECT_TRUE(waiting.back()->waits());
  EXPECT_EQ(acquire()->error(), ErrorCode::busy);
  waiting.push_back(acquire("y"));
  EXPECT_TRUE(waiting.back()->waits()) << "other locks have lines of their own";
  EXPECT_TRUE(cancel(waiting.front()));
  waiting.front() = acquire();
  EXPECT_TRUE(waiting.front()->waits());
  for (const auto& caller : waiting) {
    cancel(caller);
  }
  release(holder);
}

TEST_F(CoordinatorAcquire, SendsWhatWasWished) {
  client::Wish made = wish();
  made.terms.shape = permits(2, 3);
  made.terms.barge = true;
  const auto caller = acquire(made);
  send();
  EXPECT_EQ(acquire_sent().shape, permits(2, 3));
  EXPECT_EQ(acquire_sent().ttl, 30s);
  EXPECT_EQ(acquire_sent().window, 20s);
  EXPECT_TRUE(acquire_sent().queue);
  EXPECT_TRUE(acquire_sent().barge);
  reply();
  release(caller);
}

TEST_F(CoordinatorAcquire, ALostReplyIsResolvedByAskingAgainWithTheSameId) {
  const auto caller = acquire();
  send();
  const core::RequestId first = acquire_sent().id;
  const core::Time first_sent = now;
  lose_reply();
  EXPECT_TRUE(caller->waits());
  EXPECT_THAT(send(), IsEmpty());  // not at once: the store has trouble
  now += 1s;
  tick();
  EXPECT_THAT(send(), ElementsAre("acquire x"));
  EXPECT_EQ(acquire_sent().id, first);
  reply();
  ASSERT_TRUE(caller->holds());
  EXPECT_EQ(record().holders().size(), 1U);
  EXPECT_EQ(caller->lease().token(), record().holders().at(0).token);
  // What is left of the first grant, not a new ttl.
  EXPECT_LE(caller->lease().deadline(), first_sent + 30s);
  release(caller);
}

TEST_F(CoordinatorAcquire, AnUnreachableStoreIsReportedAtOnce) {
  const auto caller = acquire();
  send();
  reply_failed(ErrorCode::unavailable);
  EXPECT_EQ(caller->error(), ErrorCode::unavailable);
  EXPECT_TRUE(coordinator.idle());
}

// Once a send may have been applied, "unavailable" would be a lie.
TEST_F(CoordinatorAcquire, AfterALostReplyUnavailableIsRetriedToo) {
  const auto caller = acquire();
  send();
  reply_failed(ErrorCode::outcome_unknown);
  pass_alone(1s);
  send();
  reply_failed(ErrorCode::unavailable);
  EXPECT_TRUE(caller->waits());
  pass_alone(1s);
  send();
  reply();
  EXPECT_TRUE(caller->holds());
  release(caller);
}

TEST_F(CoordinatorAcquire, PatienceEndsInOutcomeUnknownAndARelease) {
  const auto caller = acquire();
  const core::Time start = now;
  int sends = 0;
  while (caller->waits()) {
    if (!send().empty()) {
      ++sends;
      reply_failed(ErrorCode::outcome_unknown);
    }
    pass_alone(10ms);
    ASSERT_LT(now - start, 1min);
  }
  EXPECT_EQ(caller->error(), ErrorCode::outcome_unknown);
  EXPECT_GE(now - start, 5s);
  EXPECT_GT(sends, 3);
  EXPECT_LT(sends, 60);  // a store in trouble is not hammered
  EXPECT_FALSE(coordinator.drained());
  EXPECT_THAT(send(), ElementsAre("release x"));
  reply();
  EXPECT_TRUE(coordinator.idle());
}

TEST_F(CoordinatorAcquire, ATryIsBusyAtOnce) {
  other(core::Operation{test::acquire(2)});
  const auto caller = acquire(attempt());
  run();
  EXPECT_EQ(caller->error(), ErrorCode::busy);
  EXPECT_TRUE(coordinator.idle());
}

TEST_F(CoordinatorAcquire, ATryAgainstOurOwnLockCostsNoCommand) {
  const auto holder = hold();
  const auto caller = acquire(attempt());
  EXPECT_EQ(caller->error(), ErrorCode::busy);
  EXPECT_THAT(send(), IsEmpty());
  release(holder);
}

TEST_F(CoordinatorAcquire, AnotherTotalIsRefusedWithAReason) {
  other(core::Operation{test::acquire(2, permits(1, 5))});
  client::Wish made = wish();
  made.terms.shape = permits(1, 3);
  const auto semaphore = acquire(made);
  const auto mutex = acquire();
  run();
  ASSERT_EQ(semaphore->error(), ErrorCode::invalid_argument);
  EXPECT_NE(semaphore->grants[0].error().text.find("total of 5"), std::string::npos);
  ASSERT_EQ(mutex->error(), ErrorCode::invalid_argument);
  EXPECT_NE(mutex->grants[0].error().text.find("semaphore of 5"), std::string::npos);
}

TEST_F(CoordinatorAcquire, OneFailureIsNotTheOthersOfTheBatch) {
  const auto a = acquire("a");
  const auto b = acquire("b");
  EXPECT_THAT(send(), ElementsAre("acquire a", "acquire b"));
  core::Outcome failed;
  failed.error = Error{ErrorCode::unauthorized, "no", 42};
  reply_with({failed, {.status = Status::granted, .token = 7, .lease_for = 30s}});
  EXPECT_EQ(a->error(), ErrorCode::unauthorized);
  EXPECT_EQ(a->grants[0].error().native, 42);
  EXPECT_EQ(b->lease().token(), 7U);
  release(b);
}

// --- cancel

TEST_F(CoordinatorAcquire, CancelledBeforeTheSendTheStoreNeverHears) {
  const auto caller = acquire();
  EXPECT_TRUE(cancel(caller, ErrorCode::cancelled));
  EXPECT_EQ(caller->error(), ErrorCode::cancelled);
  EXPECT_THAT(send(), IsEmpty());
  EXPECT_TRUE(coordinator.idle());
}

TEST_F(CoordinatorAcquire, CancelledInFlightTheReleaseFollows) {
  const auto caller = acquire();
  send();
  EXPECT_TRUE(cancel(caller));
  EXPECT_EQ(caller->error(), ErrorCode::timed_out);
  EXPECT_THAT(caller->grants.at(0).error().text, HasSubstr("the store did not answer"));
  EXPECT_FALSE(coordinator.drained());
  reply();  // granted, too late
  EXPECT_THAT(run(), ElementsAre("release x"));
  EXPECT_TRUE(record().idle());
  EXPECT_TRUE(coordinator.idle());
  EXPECT_EQ(caller->grants.size(), 1U);
}

TEST_F(CoordinatorAcquire, CancelledWhileARetryIsPendingTheReleaseFollows) {
  const auto caller = acquire();
  send();
  lose_reply();
  cancel(caller);
  EXPECT_THAT(run(), ElementsAre("release x"));
  EXPECT_TRUE(record().idle());
  EXPECT_TRUE(coordinator.idle());
}

TEST_F(CoordinatorAcquire, CancelledInTheQueueItsPlaceIsGivenUp) {
  other(core::Operation{test::acquire(2)});
  const auto caller = acquire();
  run();
  EXPECT_EQ(record().queue().size(), 1U);
  EXPECT_TRUE(cancel(caller));
  EXPECT_THAT(caller->grants.at(0).error().text, HasSubstr("not free"));
  EXPECT_THAT(run(), ElementsAre("release x"));
  EXPECT_TRUE(record().queue().empty());
  EXPECT_TRUE(coordinator.idle());
}

TEST_F(CoordinatorAcquire, ACancelThatComesAfterTheGrantIsTooLate) {
  other(core::Operation{test::acquire(2)});
  const auto caller = acquire();
  run();
  other(core::Operation{test::release(2)});
  ring();
  EXPECT_TRUE(caller->holds());
  EXPECT_FALSE(cancel(caller));
  EXPECT_EQ(caller->grants.size(), 1U);
  release(caller);
}

TEST_F(CoordinatorAcquire, AGrantThatComesAfterTheCancelIsGivenBack) {
  other(core::Operation{test::acquire(2)});
  const auto caller = acquire();
  run();
  other(core::Operation{test::release(2)});  // granted, and we have not heard
  EXPECT_TRUE(cancel(caller));
  ring();
  EXPECT_EQ(caller->error(), ErrorCode::timed_out);
  EXPECT_EQ(caller->grants.size(), 1U);
  run();
  EXPECT_TRUE(record().idle());
}

TEST_F(CoordinatorAcquire, TheNextInLineTakesOverTheCancelledOnesPlace) {
  other(core::Operation{test::acquire(2)});
  const auto a = acquire();
  const auto b = acquire();
  run();
  EXPECT_EQ(record().queue().size(), 1U);
  cancel(a);
  EXPECT_THAT(run(), IsEmpty());
  other(core::Operation{test::release(2)});
  run();
  EXPECT_TRUE(b->holds());
  release(b);
}

TEST_F(CoordinatorAcquire, NobodyIsCancelledTwice) {
  const auto caller = acquire();
  EXPECT_TRUE(cancel(caller));
  EXPECT_FALSE(cancel(caller));
  EXPECT_FALSE(coordinator.cancel(4711, ErrorCode::timed_out, now));
}

// --- owners

TEST_F(CoordinatorAcquire, TheSameOwnerNests) {
  client::Wish owned = wish();
  owned.owner = 7;
  const auto outer = hold(owned);
  const auto inner = acquire(owned);
  ASSERT_TRUE(inner->holds());
  EXPECT_THAT(send(), IsEmpty());
  EXPECT_EQ(&inner->lease(), &outer->lease());
  EXPECT_EQ(inner->claim, outer->claim);
  const auto stranger = acquire();
  release(inner);
  EXPECT_TRUE(inner->released());
  EXPECT_TRUE(stranger->waits());
  release(outer);
  run();
  EXPECT_TRUE(outer->released());
  EXPECT_TRUE(stranger->holds());
  release(stranger);
  run();
  EXPECT_TRUE(coordinator.idle());
}

TEST_F(CoordinatorAcquire, AnOwnerThatWaitsTwiceDoesNotWaitForItself) {
  const auto stranger = hold();
  auto owned = wish();
  owned.owner = 7;
  auto strictly = owned;
  strictly.terms.hand_over = 0;
  const auto first = acquire(owned);
  const auto second = acquire(owned);
  const auto third = acquire(strictly);
  const auto next = acquire();
  release(stranger);
  run();
  ASSERT_TRUE(first->holds());
  ASSERT_TRUE(second->holds());
  ASSERT_TRUE(third->holds());
  EXPECT_EQ(first->lease().token(), second->lease().token());
  EXPECT_EQ(first->lease().token(), third->lease().token());
  EXPECT_TRUE(next->waits());
  for (const auto& caller : {first, second, third}) {
    EXPECT_TRUE(next->waits());
    coordinator.release(first->lease().claim, caller, now);
    run();
    EXPECT_TRUE(caller->released());
  }
  ASSERT_TRUE(next->holds());
  release(next);
}

TEST_F(CoordinatorAcquire, AnOwnerCannotHaveTwoModesAtOnce) {
  client::Wish owned = wish();
  owned.owner = 7;
  const auto writer = hold(owned);
  owned.terms.shape = kShared;
  EXPECT_EQ(acquire(owned)->error(), ErrorCode::invalid_argument);
  release(writer);
}

TEST_F(CoordinatorAcquire, AnOwnerWhoseLeaseIsLostLinesUpAnew) {
  client::Wish owned = wish();
  owned.owner = 7;
  const auto lost = hold(owned);
  other(core::Revoke{.now = true});
  ring();
  run();
  ASSERT_EQ(lost->lease().loss(), LossReason::expired);
  const auto again = hold(owned);
  EXPECT_NE(again->claim, lost->claim);
  release(lost);
  EXPECT_EQ(lost->answered()->error().code, ErrorCode::lease_lost);
  const auto nested = acquire(owned);  // in the new one, which the old did not end
  EXPECT_EQ(nested->claim, again->claim);
  release(nested);
  release(again);
}

}  // namespace
}  // namespace holdfast::test
