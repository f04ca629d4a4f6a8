#include "core/local_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/commands.h"
#include "unit/local_queue_checker.h"

namespace holdfast::test {
namespace {

using core::ClaimId;
using core::TenancyId;
using core::Terms;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Fate = CheckedQueue::Fate;

Terms terms(core::Shape shape = {}) {
  return {.shape = shape, .ttl = 30s, .hand_over = kDefaultHandOver};
}
Terms strict() {
  return {.shape = {}, .ttl = 30s, .hand_over = 0};
}
Terms attempt() {
  Terms made = terms();
  made.queue = false;
  return made;
}

class LocalQueue : public ::testing::Test {
 protected:
  void TearDown() override {
    queue.go_home();
    EXPECT_THAT(queue.complaints(), IsEmpty()) << queue.story();
  }
  // The only request that stands in the store's queue.
  TenancyId standing() const { return queue.asked().at(0); }
  void grant() { queue.grant(standing()); }

  CheckedQueue queue;
};

TEST_F(LocalQueue, TheFirstStandsForAll) {
  const ClaimId a = queue.join(terms());
  const ClaimId b = queue.join(terms());
  EXPECT_EQ(queue.stands(), 1U);
  grant();
  EXPECT_EQ(queue.fate(a), Fate::admitted);
  EXPECT_EQ(queue.fate(b), Fate::waiting);
  EXPECT_THAT(queue.asked(), IsEmpty());  // b hopes for the hand-over
  queue.let_go(a);
  EXPECT_EQ(queue.fate(b), Fate::admitted);
  EXPECT_EQ(queue.offset_of(b), 1U);
  EXPECT_EQ(queue.tenancy_of(a), queue.tenancy_of(b));
}

TEST_F(LocalQueue, PassesOnAtMostHandOverTimes) {
  Terms twice = terms();
  twice.hand_over = 2;
  std::vector<ClaimId> claims;
  for (int i = 0; i < 5; ++i) {
    claims.push_back(queue.join(twice));
  }
  grant();
  for (int i = 0; i < 2; ++i) {
    queue.let_go(claims[static_cast<std::size_t>(i)]);
  }
  EXPECT_THAT(queue.admitted(), ElementsAre(claims[2]));
  // The bound is reached: the next one has lined up with the others already.
  EXPECT_THAT(queue.asked(), SizeIs(1));
  queue.let_go(claims[2]);
  EXPECT_THAT(queue.admitted(), IsEmpty());
  grant();
  EXPECT_THAT(queue.admitted(), ElementsAre(claims[3]));
  EXPECT_EQ(queue.offset_of(claims[3]), 0U);
}

TEST_F(LocalQueue, GivesBackAndLinesUpAgainInOneStep) {
  const ClaimId a = queue.join(terms());
  grant();
  const ClaimId b = queue.join(terms());
  const ClaimId c = queue.join(terms());
  queue.pass_unnoticed(kHandOverTime);
  queue.let_go(a);
  EXPECT_EQ(queue.requeues(), 1U);
  grant();
  EXPECT_EQ(queue.fate(b), Fate::admitted);
  EXPECT_EQ(queue.fate(c), Fate::waiting);
}

// Others line up in the store's queue meanwhile: hoping too long loses places.
TEST_F(LocalQueue, TheHeadStandsAsSoonAsNoHandOverCanCome) {
  const ClaimId a = queue.join(terms());
  grant();
  const ClaimId b = queue.join(terms());
  queue.join(terms());
  EXPECT_THAT(queue.asked(), IsEmpty());
  queue.pass(kHandOverTime);
  ASSERT_THAT(queue.asked(), SizeIs(1));
  EXPECT_EQ(queue.queue().stands_for(standing()), b);
  EXPECT_EQ(queue.queue().hopes_until(), base::kNever);
  queue.let_go(a);
  EXPECT_EQ(queue.fate(b), Fate::waiting);
}

TEST_F(LocalQueue, TheHeadStandsAtOnceIfTheLockCannotPassToIt) {
  Terms longer = terms();
  longer.ttl = 60s;
  Terms once = terms();
  once.renew = false;
  Terms graceful = terms();
  graceful.grace = 30s;  // more than is left
  for (const Terms& other : {longer, once, graceful, terms(kShared)}) {
    CheckedQueue each;
    each.join(terms());
    each.grant(each.asked().at(0));
    each.join(other);
    EXPECT_THAT(each.asked(), SizeIs(1));
    each.go_home();
    EXPECT_THAT(each.complaints(), IsEmpty()) << each.story();
  }
}

TEST_F(LocalQueue, ATenancyPassesOnOnlyWhileItIsTrusted) {
  const ClaimId a = queue.join(terms());
  queue.grant(standing(), 10ms);
  const ClaimId b = queue.join(terms());
  queue.pass(10ms);
  queue.let_go(a);
  EXPECT_EQ(queue.fate(b), Fate::waiting);
}

TEST_F(LocalQueue, NothingPassesOnAfterALoss) {
  const ClaimId a = queue.join(terms());
  grant();
  const ClaimId b = queue.join(terms());
  queue.close(queue.tenancy_of(a));
  EXPECT_THAT(queue.asked(), SizeIs(1));  // b stands now
  queue.let_go(a);
  EXPECT_EQ(queue.fate(b), Fate::waiting);
  grant();
  EXPECT_EQ(queue.fate(b), Fate::admitted);
}

TEST_F(LocalQueue, WhatTheStoreForgotIsNotGivenBack) {
  const ClaimId a = queue.join(terms());
  grant();
  queue.gone(queue.tenancy_of(a));
  EXPECT_FALSE(queue.queue().idle());  // a has not let go yet
  queue.let_go(a);
  EXPECT_TRUE(queue.queue().idle());
}

TEST_F(LocalQueue, ATryIsTurnedAwayByALockOfThisProcess) {
  queue.join(terms());
  grant();
  const ClaimId b = queue.join(attempt());
  EXPECT_EQ(queue.fate(b), Fate::turned_away);
  EXPECT_EQ(queue.stands(), 1U);
}

// The holder may never come back, and the store may have freed the lock.
TEST_F(LocalQueue, ATryAsksTheStoreWhenTheLockHereMayBeLost) {
  const ClaimId a = queue.join(terms());
  grant();
  queue.close(queue.tenancy_of(a));
  const ClaimId b = queue.join(attempt());
  EXPECT_EQ(queue.fate(b), Fate::waiting);
  queue.deny(standing());
  EXPECT_EQ(queue.fate(b), Fate::denied);
}

TEST_F(LocalQueue, ATryNeverLinesUp) {
  queue.join(terms());
  const ClaimId b = queue.join(attempt());
  EXPECT_EQ(queue.fate(b), Fate::turned_away);
}

TEST_F(LocalQueue, WhoComesAfterATryStandsByItself) {
  const ClaimId a = queue.join(attempt());
  const ClaimId b = queue.join(terms());
  EXPECT_EQ(queue.stands(), 1U);
  queue.deny(standing());
  EXPECT_EQ(queue.fate(a), Fate::denied);
  EXPECT_EQ(queue.fate(b), Fate::waiting);
  EXPECT_EQ(queue.stands(), 2U);
}

TEST_F(LocalQueue, ReadersEnterTogether) {
  std::vector<ClaimId> readers;
  for (int i = 0; i < 4; ++i) {
    readers.push_back(queue.join(terms(kShared)));
  }
  grant();
  EXPECT_EQ(queue.admitted(), readers);
  EXPECT_THAT(queue.held(), SizeIs(1));
  readers.push_back(queue.join(terms(kShared)));
  EXPECT_EQ(queue.admitted(), readers);
  EXPECT_EQ(queue.stands(), 1U);
}

TEST_F(LocalQueue, AWriterIsNotOvertakenByReaders) {
  const ClaimId reader = queue.join(terms(kShared));
  grant();
  const ClaimId writer = queue.join(terms());
  const ClaimId late = queue.join(terms(kShared));
  EXPECT_THAT(queue.admitted(), ElementsAre(reader));
  EXPECT_EQ(queue.queue().stands_for(standing()), writer);
  queue.let_go(reader);
  grant();
  EXPECT_THAT(queue.admitted(), ElementsAre(writer));
  EXPECT_EQ(queue.fate(late), Fate::waiting);
}

// So that a writer elsewhere gets its turn.
TEST_F(LocalQueue, FurtherReadersAskTheStoreOnceTheBoundIsReached) {
  queue.join(terms(kShared));
  grant();
  queue.pass(kHandOverTime);
  const ClaimId late = queue.join(terms(kShared));
  EXPECT_EQ(queue.fate(late), Fate::waiting);
  EXPECT_THAT(queue.asked(), SizeIs(1));
  grant();
  EXPECT_THAT(queue.held(), SizeIs(2));
}

TEST_F(LocalQueue, PermitsAreOneUserATenancy) {
  queue.join(terms(permits(1, 3)));
  queue.join(terms(permits(1, 3)));
  grant();
  ASSERT_THAT(queue.asked(), SizeIs(1));  // there may be more permits
  grant();
  EXPECT_THAT(queue.held(), SizeIs(2));
}

TEST_F(LocalQueue, APermitPassesOnLikeALock) {
  const ClaimId a = queue.join(terms(permits(1, 1)));
  const ClaimId b = queue.join(terms(permits(1, 1)));
  grant();
  queue.let_go(a);
  EXPECT_EQ(queue.fate(b), Fate::admitted);
  EXPECT_THAT(queue.asked(), IsEmpty());  // what stood for b is given back
}

TEST_F(LocalQueue, StrictClaimsStandAloneAndPassToNobody) {
  const ClaimId a = queue.join(strict());
  const ClaimId b = queue.join(strict());
  EXPECT_THAT(queue.asked(), SizeIs(2));
  grant();
  EXPECT_EQ(queue.fate(a), Fate::admitted);
  const ClaimId c = queue.join(terms());
  EXPECT_THAT(queue.asked(), SizeIs(2));
  queue.let_go(a);
  EXPECT_EQ(queue.fate(b), Fate::waiting);
  EXPECT_EQ(queue.fate(c), Fate::waiting);
}

TEST_F(LocalQueue, NobodyEntersAStrictReadersTenancy) {
  Terms strict_reader = strict();
  strict_reader.shape = kShared;
  queue.join(strict_reader);
  grant();
  const ClaimId b = queue.join(terms(kShared));
  EXPECT_EQ(queue.fate(b), Fate::waiting);
}

TEST_F(LocalQueue, ARequestPassesToTheNextWhenItsClaimLeaves) {
  const ClaimId a = queue.join(terms());
  const ClaimId b = queue.join(terms());
  const TenancyId asked = standing();
  queue.leave(a);
  EXPECT_EQ(standing(), asked);  // the place in the store's queue is kept
  EXPECT_EQ(queue.queue().stands_for(asked), b);
  queue.leave(b);
  EXPECT_TRUE(queue.queue().idle());
}

TEST_F(LocalQueue, ARequestThatDoesNotSuitTheNextIsGivenBack) {
  const ClaimId a = queue.join(terms());
  const ClaimId b = queue.join(terms(kShared));
  const TenancyId asked = standing();
  queue.leave(a);
  EXPECT_NE(standing(), asked);
  EXPECT_EQ(queue.queue().stands_for(standing()), b);
}

TEST_F(LocalQueue, TheTokensOfATenancyFitItsBlock) {
  Terms most = terms();
  most.hand_over = kMaxHandOver;
  std::vector<ClaimId> claims;
  for (std::uint32_t i = 0; i < kMaxHandOver + 2; ++i) {
    claims.push_back(queue.join(most));
  }
  grant();
  for (std::uint32_t i = 0; i <= kMaxHandOver; ++i) {
    EXPECT_EQ(queue.offset_of(claims[i]), i);
    EXPECT_LT(i, core::kTokenStride);
    queue.let_go(claims[i]);
  }
  EXPECT_THAT(queue.admitted(), IsEmpty());
}

TEST_F(LocalQueue, StrangersAreIgnored) {
  core::TenancyId next = 1;
  core::LocalQueue bare{&next};
  core::LocalQueue::Steps steps;
  EXPECT_FALSE(bare.leave(7, at(0s), steps));
  bare.granted(7, at(1s), at(0s), steps);
  bare.renewed(7, at(1s));
  EXPECT_EQ(bare.denied(7, at(0s), steps), std::nullopt);
  bare.let_go(7, at(0s), steps);
  bare.close(7, at(0s), steps);
  bare.gone(7, at(0s), steps);
  EXPECT_THAT(steps, IsEmpty());
  EXPECT_THAT(bare.users(7), IsEmpty());
  EXPECT_EQ(bare.stands_for(7), std::nullopt);
  EXPECT_TRUE(bare.idle());
}

}  // namespace
}  // namespace holdfast::test
