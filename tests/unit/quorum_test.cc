#include "core/quorum.h"

#include <gtest/gtest.h>

namespace holdfast::core {
namespace {

using namespace std::chrono_literals;
using Kind = NodeAnswer::Kind;
using Verdict = Quorum::Verdict;

constexpr Time kStart{1h};

Quorum asked(std::initializer_list<std::optional<NodeAnswer>> answers) {
  Quorum quorum{answers.size(), kStart};
  std::size_t node = 0;
  for (const auto& each : answers) {
    if (each) {
      quorum.answer(node, *each);
    }
    ++node;
  }
  return quorum;
}

constexpr NodeAnswer ours(std::uint64_t token = 0, Duration left = 1s) {
  return {.kind = Kind::ours, .token = token, .left = left};
}
constexpr NodeAnswer others(std::uint64_t token, Duration left) {
  return {.kind = Kind::others, .token = token, .left = left};
}
constexpr NodeAnswer took(std::uint64_t proposal) {
  return {.kind = Kind::ours, .token = proposal, .left = 1s, .took_proposal = true};
}
constexpr NodeAnswer kOthers = others(0, 2s);
constexpr NodeAnswer kNobodys{.kind = Kind::nobodys};
constexpr NodeAnswer kYoung{.kind = Kind::young};
constexpr NodeAnswer kSilent{.kind = Kind::silent};
constexpr std::nullopt_t kNone = std::nullopt;

TEST(Quorum, AMajorityDecidesAndIsNotKeptWaitingBySlowNodes) {
  EXPECT_EQ(asked({ours(), ours(), kNone, kNone, kNone}).verdict(), Verdict::open);
  EXPECT_EQ(asked({ours(), ours(), ours(), kNone, kNone}).verdict(), Verdict::ours);
  EXPECT_EQ(asked({ours(), ours(), kOthers, kOthers, kOthers}).verdict(), Verdict::not_ours);
  EXPECT_EQ(asked({ours(), kOthers, kOthers, kOthers, kNone}).verdict(), Verdict::not_ours);
  EXPECT_EQ(asked({kOthers, kOthers, kNone, kNone, kNone}).verdict(), Verdict::open);
}

TEST(Quorum, HalfIsNoMajority) {
  EXPECT_EQ(asked({ours(), ours(), kOthers, kOthers}).verdict(), Verdict::not_ours);
  EXPECT_EQ(asked({ours(), ours(), ours(), kOthers}).verdict(), Verdict::ours);
  EXPECT_EQ(asked({ours()}).verdict(), Verdict::ours);
}

TEST(Quorum, YoungAndSilentNodesDoNotCount) {
  EXPECT_EQ(asked({ours(), ours(), kYoung, kYoung, kYoung}).verdict(), Verdict::unreachable);
  EXPECT_EQ(asked({ours(), ours(), ours(), kYoung, kSilent}).verdict(), Verdict::ours);
  EXPECT_EQ(asked({ours(), ours(), kSilent, kSilent, kSilent}).verdict(), Verdict::unreachable);
  EXPECT_EQ(asked({kOthers, kOthers, kOthers, kSilent, kSilent}).verdict(), Verdict::not_ours);
  EXPECT_EQ(asked({kNobodys, kNobodys, kNobodys, ours(), ours()}).verdict(), Verdict::not_ours);
}

TEST(Quorum, TheFirstAnswerOfANodeCounts) {
  Quorum quorum{3, kStart};
  quorum.answer(0, kOthers);
  quorum.answer(0, ours());
  EXPECT_EQ(quorum.count(Kind::ours), 0U);
  EXPECT_EQ(quorum.open(), 2U);
}

TEST(Quorum, TheTokenIsTheLargestOfThoseWhoGranted) {
  EXPECT_EQ(asked({ours(7), ours(900), ours(8), others(5000, 1s), kNone}).token(), 900U);
}

TEST(Quorum, AProposalIsTakenWhenAMajorityOfVotesComesWithIt) {
  EXPECT_TRUE(asked({took(7), took(7), took(7), kNone, kNone}).took_proposal());
  EXPECT_TRUE(asked({took(7), ours(9), took(7), kSilent, took(7)}).took_proposal());
  EXPECT_FALSE(asked({took(7), took(7), ours(9), kNone, kNone}).took_proposal());
  EXPECT_FALSE(asked({took(7), took(7), kOthers, kOthers, kOthers}).took_proposal());
  NodeAnswer lost = took(7);
  lost.kind = Kind::others;
  EXPECT_FALSE(asked({took(7), took(7), lost, kNone, kNone}).took_proposal());
  EXPECT_EQ(asked({took(7), took(7), ours(9), kNone, kNone}).token(), 9U);
  EXPECT_EQ(asked({took(7), ours(9), others(11, 1s), kYoung, kNone}).largest(), 11U);
}

TEST(Quorum, AMajorityKeepsItAsLongAsItsWeakestMember) {
  EXPECT_EQ(asked({ours(0, 5s), ours(0, 1s), ours(0, 3s)}).left(), 3s);
  EXPECT_EQ(asked({ours(0, 5s), ours(0, 1s), kOthers}).left(), 1s);
  EXPECT_EQ(asked({ours(0, 5s), kOthers, kOthers}).left(), 0s);
  EXPECT_EQ(asked({kOthers, others(0, 1s), kSilent}).look_again(), 1s);
}

TEST(Quorum, WhatIsLeftOfOldVotesBoundsTheValidity) {
  EXPECT_EQ(asked({ours(0, 10s), ours(0, 10s), kNone}).validity(10s, kStart + 1s),
            quorum_validity(10s, kStart, kStart + 1s));
  const Quorum old = asked({ours(0, 10s), ours(0, 2s), kOthers});
  EXPECT_EQ(old.validity(10s, kStart + 1s), quorum_validity(2s, kStart, kStart + 1s));
  EXPECT_FALSE(old.validity(10s, kStart + 3s));
}

TEST(Quorum, ValidityEndsBeforeTheNodesDo) {
  EXPECT_LT(*quorum_validity(10s, kStart, kStart), 10s - 10s / 100);
  EXPECT_TRUE(quorum_validity(10s, kStart, kStart + 9s));
  EXPECT_FALSE(quorum_validity(10s, kStart, kStart + 9899ms));
}

// Nodes' clocks show about these microseconds when ours shows kStart.
constexpr std::uint64_t kThen = 1'800'000'000'000'000;

class ProposalsTest : public ::testing::Test {
 protected:
  void note_majority(std::uint64_t clock, Time asked, Time heard) {
    for (std::size_t node = 0; node < 3; ++node) {
      proposals_.note(node, clock, asked, heard);
    }
  }
  Proposals proposals_{5};
};

TEST_F(ProposalsTest, WithoutTheClocksOfAMajorityNothingIsProposed) {
  EXPECT_EQ(proposals_.next(kStart, 0), 0U);
  proposals_.note(0, kThen, kStart, kStart);
  proposals_.note(1, kThen, kStart, kStart);
  EXPECT_EQ(proposals_.next(kStart, 0), 0U);
  proposals_.note(4, kThen, kStart, kStart);
  EXPECT_GT(proposals_.next(kStart, 0), kThen);
}

TEST_F(ProposalsTest, AProposalIsAheadOfEveryClockButNotFar) {
  note_majority(kThen, kStart, kStart);
  proposals_.note(3, kThen + 5'000'000, kStart, kStart);
  const std::uint64_t second = proposals_.next(kStart + 1s, 0);
  EXPECT_GT(second, kThen + 6'000'000);
  EXPECT_LT(second, kThen + 6'100'000) << "after a loss of data tokens start at the clocks";
}

TEST_F(ProposalsTest, WhenTheClockWasReadIsNotKnown) {
  note_majority(kThen, kStart, kStart + 5ms);  // perhaps at once
  EXPECT_GT(proposals_.next(kStart + 5ms, 0), kThen + 5'000);
}

TEST_F(ProposalsTest, ASlowAnswerMovesThemNeitherFarAheadNorBack) {
  note_majority(kThen, kStart, kStart);
  note_majority(kThen + 1'000'000, kStart, kStart + 1s);  // read at the end
  EXPECT_LT(proposals_.next(kStart + 1s, 0), kThen + 1'100'000);
  note_majority(kThen + 1'000'000, kStart + 1s, kStart + 2s);  // read at the beginning
  EXPECT_GT(proposals_.next(kStart + 2s, 0), kThen + 2'000'000 - 100'000);
}

TEST_F(ProposalsTest, AClockThatIsSetBackIsBelievedInTheEnd) {
  note_majority(kThen, kStart, kStart);
  std::uint64_t proposal = 0;
  for (int second = 1; second <= 1000; ++second) {
    const Time now = kStart + std::chrono::seconds{second};
    note_majority(kThen - 5'000'000 + static_cast<std::uint64_t>(second) * 1'000'000, now, now);
    EXPECT_GT(proposals_.next(now, 0), proposal) << "they rise all the same";
    proposal = proposals_.next(now, 0);
  }
  EXPECT_LT(proposal, kThen - 4'900'000 + 1'000'000'000);
}

// All others would refuse to hand out what is less, for as long as it is believed.
TEST_F(ProposalsTest, OneClockThatJumpedIsNotBelievedOnceItIsRightAgain) {
  note_majority(kThen, kStart, kStart);
  proposals_.note(4, kThen + 3'600'000'000, kStart, kStart);
  EXPECT_GT(proposals_.next(kStart, 0), kThen + 3'600'000'000) << "that node would refuse it";
  proposals_.note(4, kThen + 1'000'000, kStart + 1s - 200us, kStart + 1s);
  EXPECT_LT(proposals_.next(kStart + 1s, 0), kThen + 1'100'000);
}

TEST_F(ProposalsTest, ANodeThatIsNotHeardAnyMoreIsForgotten) {
  note_majority(kThen, kStart, kStart);
  proposals_.note(4, kThen + 3'600'000'000, kStart, kStart);
  note_majority(kThen + 600'000'000, kStart + 10min, kStart + 10min);
  EXPECT_LT(proposals_.next(kStart + 10min, 0), kThen + 601'000'000);
}

TEST_F(ProposalsTest, AfterAnIdleTimeTheClocksAreStillKnown) {
  note_majority(kThen, kStart, kStart);
  EXPECT_GT(proposals_.next(kStart + 24h, 0), kThen);
}

TEST_F(ProposalsTest, WhatNodesSpokeOfIsSurpassed) {
  note_majority(kThen, kStart, kStart);
  EXPECT_EQ(proposals_.next(kStart, kThen + 1'000'000'000), kThen + 1'000'000'001);
  EXPECT_EQ(proposals_.next(kStart, kMaxToken - kTokenStride), 0U) << "there are no more";
}

}  // namespace
}  // namespace holdfast::core
