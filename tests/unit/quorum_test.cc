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
  return {Kind::ours, token, left};
}
constexpr NodeAnswer kOthers{Kind::others, 0, 2s};
constexpr NodeAnswer kNobodys{Kind::nobodys, 0, {}};
constexpr NodeAnswer kYoung{Kind::young, 0, {}};
constexpr NodeAnswer kSilent{Kind::silent, 0, {}};
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
  EXPECT_EQ(asked({ours(7), ours(900), ours(8), NodeAnswer{Kind::others, 5000, 1s}, kNone}).token(),
            900U);
}

TEST(Quorum, AMajorityKeepsItAsLongAsItsWeakestMember) {
  EXPECT_EQ(asked({ours(0, 5s), ours(0, 1s), ours(0, 3s)}).left(), 3s);
  EXPECT_EQ(asked({ours(0, 5s), ours(0, 1s), kOthers}).left(), 1s);
  EXPECT_EQ(asked({ours(0, 5s), kOthers, kOthers}).left(), 0s);
  EXPECT_EQ(asked({kOthers, NodeAnswer{Kind::others, 0, 1s}, kSilent}).look_again(), 1s);
}

TEST(Quorum, ValidityEndsBeforeTheNodesDo) {
  EXPECT_LT(*quorum_validity(10s, kStart, kStart), 10s - 10s / 100);
  EXPECT_TRUE(quorum_validity(10s, kStart, kStart + 9s));
  EXPECT_FALSE(quorum_validity(10s, kStart, kStart + 9899ms));
}

}  // namespace
}  // namespace holdfast::core
