// Waiting: heartbeats, the doorbell, the backstop poll; and batches.
#include <gmock/gmock.h>

#include "unit/coordinator_desk.h"

namespace holdfast::test {
namespace {

using core::Status;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class CoordinatorWake : public Desk {
 protected:
  // Waits in the store's queue behind another process, request 2.
  std::shared_ptr<Caller> queued(const std::string& name = "x") {
    other(core::Operation{test::acquire(2)}, name);
    auto caller = acquire(name);
    run();
    EXPECT_TRUE(caller->waits());
    return caller;
  }
  void free_silently(const std::string& name = "x") {
    other(core::Operation{test::release(2)}, name);
    EXPECT_EQ(lose_rings(), 1U);
  }
};

TEST_F(CoordinatorWake, AWaiterLivesByItsHeartbeats) {
  const auto caller = queued();
  for (int i = 0; i < 20; ++i) {
    other(core::Operation{test::renew(2)});
    pass(5s);
    ASSERT_EQ(record().queue().size(), 1U);
  }
  other(core::Operation{test::release(2)});
  run();
  EXPECT_TRUE(caller->holds());
  release(caller);
}

TEST_F(CoordinatorWake, HeartbeatsAreAThirdOfTheTtlApart) {
  const auto caller = queued();
  pass_alone(8s);
  EXPECT_THAT(send(), IsEmpty());
  pass_alone(2s);
  EXPECT_THAT(send(), ElementsAre("heartbeat x"));
  reply();
  cancel(caller);
}

TEST_F(CoordinatorWake, LooksWhenWhatIsAheadEnds) {
  auto brief = test::acquire(2);
  brief.ttl = 3s;
  other(core::Operation{brief});
  const auto caller = acquire();
  run();
  pass_alone(3s + 1ms);
  EXPECT_THAT(run(), ElementsAre("heartbeat x"));
  EXPECT_TRUE(caller->holds());
  release(caller);
}

TEST_F(CoordinatorWake, AFailedHeartbeatIsTriedAgain) {
  const auto caller = queued();
  other(core::Operation{test::renew(2)});
  pass_alone(10s);
  send();
  reply_failed(ErrorCode::unavailable);
  pass_alone(2s);
  EXPECT_THAT(send(), ElementsAre("heartbeat x"));
  reply();
  EXPECT_TRUE(caller->waits());
  cancel(caller);
}

TEST_F(CoordinatorWake, WhoWasPutOutOfTheQueueLinesUpAgainWithANewId) {
  const auto caller = queued();
  const core::RequestId before = record().queue().at(0).id;
  now += 25s;  // too long a pause
  tick();
  EXPECT_THAT(send(), ElementsAre("heartbeat x"));
  reply();
  EXPECT_THAT(send(), ElementsAre("acquire x"));
  reply();
  ASSERT_EQ(record().queue().size(), 1U);
  EXPECT_NE(record().queue().at(0).id, before);
  cancel(caller);
}

TEST_F(CoordinatorWake, AGrantThatWasRevokedBeforeWeHeardLinesUpAgain) {
  const auto caller = queued();
  free_silently();
  other(core::Revoke{});
  ring();
  run();
  EXPECT_TRUE(caller->holds());  // the revoked grant was released and asked for anew
  EXPECT_EQ(caller->lease().loss(), std::nullopt);
  EXPECT_EQ(record().holders().size(), 1U);
  release(caller);
}

TEST_F(CoordinatorWake, RingsOfStrangersAreIgnored) {
  const auto caller = queued();
  coordinator.rang(std::vector<engine::Ring>{{.id = id(4711), .token = 99}, {.id = id(4712)}}, now);
  EXPECT_THAT(send(), IsEmpty());
  EXPECT_TRUE(caller->waits());
  cancel(caller);
}

TEST_F(CoordinatorWake, ARingWithoutATokenLooks) {
  const auto caller = queued();
  free_silently();
  coordinator.rang(std::vector<engine::Ring>{{.id = record().holders().at(0).id}}, now);
  EXPECT_THAT(run(), ElementsAre("poll x"));
  EXPECT_TRUE(caller->holds());
  release(caller);
}

TEST_F(CoordinatorWake, ARingThatOvertakesTheAnswerIsNotLost) {
  other(core::Operation{test::acquire(2)});
  const auto caller = acquire();
  send();
  apply();  // queued
  other(core::Operation{test::release(2)});
  ring();
  EXPECT_TRUE(caller->waits());
  reply();
  EXPECT_THAT(run(), ElementsAre("poll x"));
  EXPECT_TRUE(caller->holds());
  release(caller);
}

TEST_F(CoordinatorWake, ARingWhileAPollIsOnItsWayLooksAgain) {
  const auto caller = queued();
  look();
  EXPECT_THAT(send(), ElementsAre("poll x"));
  apply();  // still queued
  free_silently();
  coordinator.rang(std::vector<engine::Ring>{{.id = record().holders().at(0).id}}, now);
  reply();
  EXPECT_THAT(send(), ElementsAre("poll x"));
  reply();
  EXPECT_TRUE(caller->holds());
  release(caller);
}

TEST_F(CoordinatorWake, ASecondRingForTheSameGrantIsHarmless) {
  const auto caller = queued();
  other(core::Operation{test::release(2)});
  ring();
  ASSERT_TRUE(caller->holds());
  const auto& holder = record().holders().at(0);
  coordinator.rang(std::vector<engine::Ring>{{.id = holder.id, .token = holder.token}}, now);
  run();
  EXPECT_EQ(caller->grants.size(), 1U);
  EXPECT_THAT(losses, IsEmpty());
  release(caller);
}

// --- the backstop

TEST_F(CoordinatorWake, ALostRingIsFoundByTheBackstop) {
  const auto caller = queued();
  free_silently();
  EXPECT_LE(coordinator.next_due(), now + 1s);
  pass(1s);
  EXPECT_TRUE(caller->holds());
  release(caller);
}

TEST_F(CoordinatorWake, AStoreThatDidNotChangeIsNotPolled) {
  const auto caller = queued();
  pass_alone(5s);  // five looks, nothing new
  EXPECT_THAT(send(), IsEmpty());
  cancel(caller);
}

TEST_F(CoordinatorWake, NobodyLooksForNothing) {
  const auto caller = queued();
  cancel(caller);
  run();
  pass(2s);
  EXPECT_EQ(coordinator.next_due(), base::kNever);
}

// Engines say "changed" once. Whoever looks must not forget it when its poll
// fails, or was on its way before the change.
TEST_F(CoordinatorWake, AChangeIsNotForgottenWhenThePollFails) {
  const auto caller = queued();
  free_silently();
  look(true);
  send();
  reply_failed(ErrorCode::unavailable);
  pass_alone(2s);
  run();
  EXPECT_TRUE(caller->holds());
  release(caller);
}

TEST_F(CoordinatorWake, AChangeIsNotForgottenWhileAPollIsOnItsWay) {
  const auto caller = queued();
  look(true);
  send();
  apply();
  free_silently();
  look(true);
  reply();
  run();
  EXPECT_TRUE(caller->holds());
  release(caller);
}

TEST_F(CoordinatorWake, AChangeIsNotForgottenWhileTheAcquireIsOnItsWay) {
  other(core::Operation{test::acquire(2)});
  const auto caller = acquire();
  send();
  apply();
  free_silently();
  now += 1ms;
  look(true);
  now += 1ms;
  reply();
  run();
  EXPECT_TRUE(caller->holds());
  release(caller);
}

// --- batches

TEST_F(CoordinatorWake, AThousandNamesAreOneBatch) {
  std::vector<std::shared_ptr<Caller>> callers;
  for (int i = 0; i < 1000; ++i) {
    callers.push_back(acquire("name " + std::to_string(i)));
  }
  EXPECT_THAT(send(), SizeIs(1000));
  reply();
  for (const auto& caller : callers) {
    ASSERT_TRUE(caller->holds());
  }
  pass_alone(10s);
  EXPECT_THAT(send(), SizeIs(1000));  // so are their renewals
  EXPECT_THAT(sent(), Each(::testing::StartsWith("renew ")));
  reply();
  for (const auto& caller : callers) {
    release(caller);
  }
  EXPECT_THAT(send(), SizeIs(1000));
  reply();
  EXPECT_TRUE(coordinator.idle());
}

TEST_F(CoordinatorWake, AThousandWaitersOfOneLockStandOnce) {
  std::vector<std::shared_ptr<Caller>> callers;
  other(core::Operation{test::acquire(2)});
  for (int i = 0; i < 1000; ++i) {
    callers.push_back(acquire());
  }
  EXPECT_THAT(run(), ElementsAre("acquire x"));
  pass_alone(10s);
  EXPECT_THAT(run(), ElementsAre("heartbeat x"));
  for (const auto& caller : callers) {
    cancel(caller);
  }
  EXPECT_THAT(run(), ElementsAre("release x"));
  EXPECT_TRUE(coordinator.idle());
}

TEST_F(CoordinatorWake, WhatGathersDuringABatchRidesInTheNext) {
  const auto a = acquire("a");
  send();
  const auto b = acquire("b");
  const auto c = acquire("c");
  EXPECT_THAT(send(), IsEmpty());
  reply();
  EXPECT_THAT(send(), ElementsAre("acquire b", "acquire c"));
  reply();
  for (const auto& caller : {a, b, c}) {
    release(caller);
  }
}

}  // namespace
}  // namespace holdfast::test
