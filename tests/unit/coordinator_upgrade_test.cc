// Leases whose mode changes, when the answers come late, twice or not at all.
#include <gmock/gmock.h>

#include "unit/coordinator_desk.h"

namespace holdfast::client {
namespace {

using namespace test;
using ::testing::Contains;
using ::testing::ElementsAre;

class CoordinatorUpgrade : public Desk {
 protected:
  static Wish reader() {
    Wish made = wish();
    made.terms.shape = kShared;
    return made;
  }
  // Answers come to a caller of its own.
  std::shared_ptr<Caller> upgrade(const std::shared_ptr<Caller>& caller, bool queue = true) {
    auto waits = std::make_shared<Caller>();
    coordinator.upgrade(caller->claim, queue, waits, now);
    tick();
    return waits;
  }
  static ErrorCode code(const Caller& caller) { return caller.answered()->error().code; }
};

TEST_F(CoordinatorUpgrade, IsGrantedWhenTheOtherReaderLeaves) {
  const auto caller = hold(reader());
  other(test::acquire(7, kShared));
  const auto token = caller->lease().token();
  const auto answer = upgrade(caller);
  EXPECT_THAT(run(), ElementsAre("upgrade x"));
  EXPECT_FALSE(answer->answered());
  other(test::release(7));
  ring();
  run();
  ASSERT_TRUE(answer->released());
  EXPECT_GT(caller->lease().token(), token);
  EXPECT_EQ(record().holders().at(0).shape.mode, Mode::exclusive);
  pass(60s);
  EXPECT_EQ(caller->lease().loss(), std::nullopt);
  release(caller);
}

TEST_F(CoordinatorUpgrade, IsLearnedFromTheRenewalIfTheRingGotLost) {
  const auto caller = hold(reader());
  other(test::acquire(7, kShared));
  const auto answer = upgrade(caller);
  run();
  other(test::release(7));
  lose_rings();
  pass(10s);
  ASSERT_TRUE(answer->released());
  EXPECT_EQ(caller->lease().token(), record().holders().at(0).token);
  EXPECT_EQ(caller->lease().loss(), std::nullopt);
  release(caller);
}

TEST_F(CoordinatorUpgrade, ALostAnswerIsTakenBack) {
  const auto caller = hold(reader());
  const auto answer = upgrade(caller);
  send();
  lose_reply();
  run();
  ASSERT_TRUE(answer->answered());
  EXPECT_EQ(code(*answer), ErrorCode::outcome_unknown);
  pass(1s);
  EXPECT_EQ(record().holders().at(0).shape.mode, Mode::shared);
  EXPECT_EQ(caller->lease().token(), record().holders().at(0).token);
  pass(60s);
  EXPECT_EQ(caller->lease().loss(), std::nullopt);
  release(caller);
}

TEST_F(CoordinatorUpgrade, AWaitThatEndsWhileTheStoreGrantsItLeavesAReader) {
  const auto caller = hold(reader());
  other(test::acquire(7, kShared));
  const auto answer = upgrade(caller);
  run();
  other(test::release(7));  // granted in the store; nobody has told us
  coordinator.cancel_upgrade(caller->claim, ErrorCode::timed_out, now);
  EXPECT_THAT(run(), Contains("downgrade x"));
  ASSERT_TRUE(answer->answered());
  EXPECT_EQ(code(*answer), ErrorCode::timed_out);
  EXPECT_EQ(record().holders().at(0).shape.mode, Mode::shared);
  ring();
  pass(60s);
  EXPECT_EQ(caller->lease().loss(), std::nullopt);
  EXPECT_EQ(caller->lease().token(), record().holders().at(0).token);
  release(caller);
}

TEST_F(CoordinatorUpgrade, LocalReadersMustLeaveBeforeTheStoreIsAsked) {
  const auto one = hold(reader());
  const auto other_reader = hold(reader());
  ASSERT_TRUE(other_reader->holds());
  const auto answer = upgrade(one);
  EXPECT_THAT(run(), ElementsAre());
  EXPECT_EQ(code(*upgrade(other_reader)), ErrorCode::busy);
  release(other_reader);
  EXPECT_THAT(run(), ElementsAre("upgrade x"));
  EXPECT_TRUE(answer->released());
  release(one);
}

TEST_F(CoordinatorUpgrade, FailsWithTheLease) {
  const auto caller = hold(reader());
  other(test::acquire(7, kShared));
  const auto answer = upgrade(caller);
  run();
  other(core::Revoke{});
  ring();
  run();
  ASSERT_TRUE(answer->answered());
  EXPECT_EQ(code(*answer), ErrorCode::lease_lost);
  EXPECT_EQ(caller->lease().loss(), LossReason::revoked);
  release(caller);
}

TEST_F(CoordinatorUpgrade, TheLossOfAnotherReaderIsNotItsOwn) {
  const auto caller = hold(reader());
  Wish brief = reader();
  brief.max_hold = 1s;
  const auto another = hold(brief);
  const auto answer = upgrade(caller);
  pass(40s);
  ASSERT_TRUE(another->lease().loss());
  EXPECT_FALSE(caller->lease().loss());
  EXPECT_FALSE(answer->answered());
  release(another);
  run();
  EXPECT_TRUE(answer->released());
  release(caller);
}

TEST_F(CoordinatorUpgrade, IsLearnedAlsoIfItsAcquireWasSentTwice) {
  const auto caller = acquire(reader());
  send();
  lose_reply();
  pass(1s);
  ASSERT_TRUE(caller->holds());
  other(test::acquire(7, kShared));
  const auto answer = upgrade(caller);
  run();
  other(test::release(7));
  lose_rings();
  pass(10s);
  ASSERT_TRUE(answer->released());
  EXPECT_EQ(caller->lease().loss(), std::nullopt);
  release(caller);
}

TEST_F(CoordinatorUpgrade, IsRefusedWhileALostChangeMayStillArrive) {
  const auto caller = hold(reader());
  const auto lost = upgrade(caller);
  send();
  lose_reply();
  run();
  ASSERT_TRUE(lost->answered());
  pass(1s);
  const auto again = upgrade(caller);
  ASSERT_TRUE(again->answered());
  EXPECT_EQ(code(*again), ErrorCode::unavailable);
  // The Upgrade that got lost arrives at last: the reader stays a reader.
  other(core::Upgrade{record().holders().at(0).id});
  EXPECT_EQ(record().holders().at(0).shape.mode, Mode::exclusive);
  pass(20s);
  EXPECT_EQ(record().holders().at(0).shape.mode, Mode::shared);
  EXPECT_EQ(caller->lease().token(), record().holders().at(0).token);
  EXPECT_EQ(caller->lease().loss(), std::nullopt);
  release(caller);
}

TEST_F(CoordinatorUpgrade, WaitsForTheDowngradeBeforeIt) {
  const auto caller = hold(reader());
  other(test::acquire(7, kShared));
  const auto first = upgrade(caller);
  run();
  coordinator.cancel_upgrade(caller->claim, ErrorCode::timed_out, now);
  EXPECT_THAT(send(), Contains("downgrade x"));
  const auto second = upgrade(caller);
  reply_failed(ErrorCode::unavailable);  // to be sent again, later
  other(test::release(7));
  run();
  EXPECT_FALSE(second->answered()) << "or what comes late would undo it";
  pass(1s);
  EXPECT_TRUE(second->released());
  pass(60s);
  EXPECT_EQ(record().holders().at(0).shape.mode, Mode::exclusive);
  release(caller);
}

TEST_F(CoordinatorUpgrade, ADowngradeThatNobodyHearsIsAnsweredAfterAWhile) {
  Wish brief = wish();
  brief.terms.ttl = 1s;
  brief.terms.grace = 200ms;
  const auto caller = hold(brief);
  const auto waits = std::make_shared<Caller>();
  coordinator.downgrade(caller->claim, waits, now);
  for (int i = 0; i < 100 && !waits->answered(); ++i) {
    if (!send().empty()) reply_failed(ErrorCode::outcome_unknown);
    pass_alone(100ms);
  }
  ASSERT_TRUE(waits->answered());
  run();
  release(caller);
}

TEST_F(CoordinatorUpgrade, ADowngradeThatIsRefusedLeavesTheWriter) {
  const auto caller = hold();
  const auto waits = std::make_shared<Caller>();
  coordinator.downgrade(caller->claim, waits, now);
  for (int i = 0; i < 100 && !waits->answered(); ++i) {
    if (!send().empty()) reply_failed(ErrorCode::unavailable);
    pass_alone(100ms);
  }
  ASSERT_TRUE(waits->answered());
  EXPECT_EQ(code(*waits), ErrorCode::unavailable);
  pass(5s);
  EXPECT_EQ(record().holders().at(0).shape.mode, Mode::exclusive) << "as its caller was told";
  const auto answer = upgrade(caller);
  EXPECT_TRUE(answer->released());
  release(caller);
}

TEST_F(CoordinatorUpgrade, ReadersOfOneGrantKeepTokensOfTheirOwn) {
  const auto one = hold(reader());
  const auto another = hold(reader());
  ASSERT_NE(one->lease().token(), another->lease().token());
  release(one);
  const auto lost = upgrade(another);
  send();
  lose_reply();  // the writer now, with a new token, and does not know it
  const auto third = acquire(reader());
  run();
  pass(20s);
  ASSERT_TRUE(third->holds());
  EXPECT_NE(another->lease().token(), third->lease().token());
  EXPECT_EQ(record().holders().at(0).shape.mode, Mode::shared);
  release(another);
  release(third);
}

TEST_F(CoordinatorUpgrade, ALeaseThatIsGivenAwayIsForgotten) {
  const auto caller = hold();
  const auto given = coordinator.give_away(caller->claim, now);
  ASSERT_TRUE(given) << given.error();
  EXPECT_EQ(record().holders().at(0).id, given->request);
  Wish adopting = wish();
  adopting.adopts = given->request;
  const auto next = acquire(adopting);
  EXPECT_THAT(run(), ElementsAre("transfer x"));
  ASSERT_TRUE(next->holds());
  EXPECT_GT(next->lease().token(), caller->lease().token());
  const auto late = acquire(adopting);
  run();
  EXPECT_EQ(late->error(), ErrorCode::lease_lost);
  release(next);
}

TEST_F(CoordinatorUpgrade, ATransferWhoseAnswerGotLostIsAskedAgain) {
  const auto caller = hold();
  Wish adopting = wish();
  adopting.adopts = coordinator.give_away(caller->claim, now)->request;
  const auto next = acquire(adopting);
  send();
  lose_reply();
  pass(1s);
  ASSERT_TRUE(next->holds());
  EXPECT_EQ(next->lease().token(), record().holders().at(0).token);
  release(next);
}

}  // namespace
}  // namespace holdfast::client
