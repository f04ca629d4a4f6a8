#include "client/outbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "support/commands.h"

namespace holdfast::client {
namespace {

using test::at;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

Errand errand(const std::string& name, core::TenancyId tenancy,
              core::Operation operation = core::Operation{test::acquire(1)}) {
  return {.command = {name, std::move(operation)}, .tenancy = tenancy};
}

std::vector<core::TenancyId> tenancies(const std::vector<Errand>& errands) {
  std::vector<core::TenancyId> ids;
  for (const Errand& one : errands) {
    ids.push_back(one.tenancy);
  }
  return ids;
}

TEST(Outbox, SendsInOrderAndOneBatchAtATime) {
  Outbox outbox{1};
  EXPECT_TRUE(outbox.empty());
  EXPECT_FALSE(outbox.can_start());
  outbox.push(errand("a", 1));
  outbox.push(errand("b", 2));
  EXPECT_TRUE(outbox.can_start());
  const auto batch = outbox.start(0, at(1s));
  ASSERT_EQ(batch.size(), 2U);
  EXPECT_EQ(batch[0].name, "a");
  EXPECT_EQ(batch[1].name, "b");
  outbox.push(errand("c", 3));
  EXPECT_FALSE(outbox.can_start());
  EXPECT_THAT(outbox.start(0, at(1s)), IsEmpty());
  const auto finished = outbox.finish(0);
  EXPECT_THAT(tenancies(finished), ElementsAre(1, 2));
  EXPECT_EQ(finished[0].command.name, "a");
  EXPECT_EQ(finished[0].sent, at(1s));
  EXPECT_EQ(outbox.start(0, at(2s)).size(), 1U);
  outbox.finish(0);
  EXPECT_TRUE(outbox.empty());
}

TEST(Outbox, ANameKeepsItsLaneWhileACommandIsThere) {
  Outbox outbox{4};
  outbox.push(errand("a", 1));
  const std::size_t lane = outbox.lane_of("a");
  EXPECT_EQ(outbox.start(lane, at(0s)).size(), 1U);
  outbox.push(errand("b", 2));
  EXPECT_NE(outbox.lane_of("b"), lane) << "this lane is busy";
  outbox.push(errand("a", 3, core::Release{}));
  outbox.finish(lane);
  EXPECT_EQ(outbox.lane_of("a"), lane);
  outbox.push(errand("a", 4));
  EXPECT_EQ(outbox.start(lane, at(0s)).size(), 2U);
  EXPECT_THAT(tenancies(outbox.finish(lane)), ElementsAre(3, 4));
}

TEST(Outbox, AFreeLaneWithSomethingToSendComesFirst) {
  Outbox outbox{3};
  for (int i = 0; i < 10; ++i) {
    outbox.push(errand("name " + std::to_string(i), 1));
  }
  const std::size_t lane = outbox.lane_of("name 0");
  EXPECT_EQ(outbox.start(lane, at(0s)).size(), 10U);
  outbox.finish(lane);
  EXPECT_TRUE(outbox.empty());
}

TEST(Outbox, ManyAreServedBesideEachOther) {
  Outbox outbox{2};
  for (int i = 0; i < 100; ++i) {
    outbox.push(errand("name " + std::to_string(i), 1));
  }
  EXPECT_EQ(outbox.start(0, at(0s)).size(), 50U);
  EXPECT_EQ(outbox.start(1, at(0s)).size(), 50U);
}

// A second connection may not be there for it.
TEST(Outbox, UpkeepBeginsOnTheFirstLane) {
  Outbox outbox{2};
  outbox.push(errand("a", 1));
  ASSERT_EQ(outbox.start(0, at(0s)).size(), 1U);
  EXPECT_EQ(outbox.lane_of("b"), 1U) << "the first lane is busy";
  outbox.push(errand("b", 2, core::Renew{}));
  EXPECT_FALSE(outbox.can_start());
  outbox.finish(0);
  EXPECT_EQ(outbox.start(0, at(0s)).size(), 1U);
  EXPECT_THAT(tenancies(outbox.finish(0)), ElementsAre(2));
  EXPECT_TRUE(outbox.empty());
}

// Two lanes would answer a release and a renewal in any order.
TEST(Outbox, UpkeepFollowsTheOtherCommandsOfItsName) {
  Outbox outbox{2};
  outbox.push(errand("a", 1));
  ASSERT_EQ(outbox.start(0, at(0s)).size(), 1U);
  outbox.push(errand("b", 2));
  ASSERT_EQ(outbox.start(1, at(0s)).size(), 1U);
  outbox.push(errand("b", 2, core::Renew{}));
  outbox.finish(0);
  EXPECT_FALSE(outbox.can_start());
  outbox.finish(1);
  EXPECT_EQ(outbox.start(1, at(0s)).size(), 1U);
  outbox.finish(1);
  EXPECT_TRUE(outbox.empty());
}

TEST(Outbox, BusyLanesShareWhatComes) {
  Outbox outbox{2};
  outbox.push(errand("a", 1));
  outbox.start(outbox.lane_of("a"), at(0s));
  outbox.push(errand("b", 1));
  outbox.start(outbox.lane_of("b"), at(0s));
  for (int i = 0; i < 10; ++i) {
    outbox.push(errand("name " + std::to_string(i), 2));
  }
  outbox.finish(0);
  outbox.finish(1);
  EXPECT_EQ(outbox.start(0, at(0s)).size(), 5U);
  EXPECT_EQ(outbox.start(1, at(0s)).size(), 5U);
}

TEST(Outbox, LanesAreIndependent) {
  Outbox outbox{2};
  std::size_t busy = 0;
  outbox.push(errand("first", 1));
  if (outbox.start(0, at(0s)).empty()) {
    busy = 1;
    outbox.start(1, at(0s));
  }
  for (int i = 0; i < 20; ++i) {
    outbox.push(errand(std::to_string(i), 2));
  }
  EXPECT_THAT(outbox.start(busy, at(0s)), IsEmpty());
  EXPECT_THAT(outbox.start(1 - busy, at(0s)), ::testing::Not(IsEmpty()));
}

TEST(Outbox, ABatchIsBounded) {
  Outbox outbox{1};
  for (core::TenancyId i = 0; i < 3000; ++i) {
    outbox.push(errand("x", i));
  }
  core::TenancyId next = 0;
  int batches = 0;
  while (!outbox.empty()) {
    EXPECT_LE(outbox.start(0, at(0s)).size(), 1024U);
    for (const Errand& one : outbox.finish(0)) {
      EXPECT_EQ(one.tenancy, next++);
    }
    ++batches;
  }
  EXPECT_EQ(next, 3000U);
  EXPECT_EQ(batches, 3);
}

TEST(Outbox, UpkeepAndCallersDoNotHoldUpEachOther) {
  Outbox outbox{1};
  for (core::TenancyId i = 0; i < 5000; ++i) {
    outbox.push(errand("held", i, core::Renew{}));
    outbox.push(errand("wanted", 10'000 + i));
  }
  outbox.start(0, at(0s));
  std::size_t upkeep = 0;
  std::size_t wanted = 0;
  for (const Errand& one : outbox.finish(0)) {
    ++(one.tenancy < 10'000 ? upkeep : wanted);
  }
  EXPECT_GE(upkeep, 100U);
  EXPECT_GE(wanted, 100U);
}

TEST(Outbox, RetriesWaitForTheirTime) {
  Outbox outbox{1};
  EXPECT_EQ(outbox.next_retry(), base::kNever);
  outbox.push_later(errand("x", 2), at(2s));
  outbox.push_later(errand("x", 1), at(1s));
  EXPECT_FALSE(outbox.empty());
  EXPECT_FALSE(outbox.can_start());
  EXPECT_EQ(outbox.next_retry(), at(1s));
  outbox.wake(at(1s) - 1ns);
  EXPECT_THAT(outbox.start(0, at(1s)), IsEmpty());
  outbox.wake(at(2s));
  EXPECT_EQ(outbox.next_retry(), base::kNever);
  outbox.start(0, at(2s));
  EXPECT_THAT(tenancies(outbox.finish(0)), ElementsAre(1, 2));
}

TEST(Outbox, TakesBackWhatIsNotSent) {
  Outbox outbox{1};
  outbox.push(errand("x", 7, core::Renew{}));
  outbox.push(errand("x", 7));
  outbox.push_later(errand("x", 8, core::Requeue{}), at(1s));
  EXPECT_EQ(outbox.take_back(9), std::nullopt);
  const auto acquire = outbox.take_back(7);
  ASSERT_TRUE(acquire);
  EXPECT_TRUE(std::holds_alternative<core::Acquire>(acquire->command.operation));
  EXPECT_EQ(outbox.take_back(7), std::nullopt);  // a Renew is not a request
  ASSERT_TRUE(outbox.take_back(8));
  EXPECT_EQ(outbox.next_retry(), base::kNever);
  outbox.push(errand("x", 10));
  outbox.start(0, at(0s));
  EXPECT_EQ(outbox.take_back(10), std::nullopt);  // it is on its way
}

}  // namespace
}  // namespace holdfast::client
