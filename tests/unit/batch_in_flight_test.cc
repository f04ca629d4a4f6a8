#include "engine/batch_in_flight.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <vector>

#include "support/commands.h"
#include "support/eventually.h"

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using core::Status;

class BatchInFlightTest : public ::testing::Test {
 protected:
  static core::Outcome outcome(Status status) { return {.status = status}; }

  const std::vector<core::Command> commands_{{"x", acquire(1)}, {"y", acquire(2)}};
};

TEST_F(BatchInFlightTest, TellsOnceAllIsKnown) {
  std::vector<Status> told;
  engine::BatchInFlight batch{commands_, [&](const engine::Outcomes& outcomes) {
                                for (const core::Outcome& each : outcomes) {
                                  told.push_back(each.status);
                                }
                              }};
  batch.put(1, outcome(Status::busy));
  EXPECT_TRUE(told.empty());
  batch.put(0, outcome(Status::granted));
  EXPECT_EQ(told, (std::vector{Status::granted, Status::busy}));
  batch.abandon(outcome(Status::failed));
  EXPECT_EQ(told.size(), 2U);
}

TEST_F(BatchInFlightTest, WhatIsAbandonedIsToldOnce) {
  int told = 0;
  engine::BatchInFlight batch{commands_, [&](const engine::Outcomes&) { ++told; }};
  batch.put(0, outcome(Status::granted));
  batch.abandon(outcome(Status::failed));
  batch.put(1, outcome(Status::granted));
  EXPECT_EQ(told, 1);
}

// Whoever is told may be gone once the engine is.
TEST_F(BatchInFlightTest, AbandoningWaitsForTheOneWhoTells) {
  std::promise<void> inside;
  std::promise<void> go_on;
  const auto batch =
      std::make_shared<engine::BatchInFlight>(commands_, [&](const engine::Outcomes&) {
        inside.set_value();
        go_on.get_future().wait();
      });
  std::thread store{[&] {
    batch->put(0, outcome(Status::granted));
    batch->put(1, outcome(Status::granted));
  }};
  inside.get_future().wait();
  auto end = std::async(std::launch::async, [&] { batch->abandon(outcome(Status::failed)); });
  EXPECT_EQ(end.wait_for(50ms), std::future_status::timeout);
  go_on.set_value();
  EXPECT_EQ(end.wait_for(kPatience), std::future_status::ready);
  store.join();
}

TEST_F(BatchInFlightTest, WhoIsToldMayEndTheEngine) {
  std::shared_ptr<engine::BatchInFlight> batch;
  bool told = false;
  batch = std::make_shared<engine::BatchInFlight>(commands_, [&](const engine::Outcomes&) {
    batch->abandon(outcome(Status::failed));
    told = true;
  });
  batch->put(0, outcome(Status::granted));
  batch->put(1, outcome(Status::granted));
  EXPECT_TRUE(told);
}

}  // namespace
}  // namespace holdfast::test
