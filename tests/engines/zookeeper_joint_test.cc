// What several callers want of ZooKeeper at the same moment.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "support/engine_driver.h"
#include "support/eventually.h"
#include "support/zookeeper_test.h"

namespace holdfast::test {
namespace {

using core::Command;
using core::Outcome;
using core::Status;

constexpr std::uint32_t kLocks = 8;

std::string lock_name(std::uint32_t number) {
  return "x" + std::to_string(number);
}

class ZookeeperJoint : public ZookeeperTest {
 protected:
  static std::vector<Command> each(auto operation, std::uint32_t first) {
    std::vector<Command> batch;
    for (std::uint32_t i = 0; i < kLocks; ++i) {
      batch.push_back({lock_name(i), operation(first + i)});
    }
    return batch;
  }
  static std::vector<Command> acquires(std::uint32_t first, core::Shape shape = {}) {
    return each([&](std::uint32_t number) { return acquire(number, shape); }, first);
  }
  static std::vector<Command> releases(std::uint32_t first) { return each(release, first); }
  static std::vector<Command> heartbeats(std::uint32_t first) { return each(heartbeat, first); }

  static void expect_all(const engine::Outcomes& outcomes, Status status) {
    for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.status, status);
  }
  // So that they are there, and known to be.
  static void use_once(engine::Engine& engine, std::uint32_t first, core::Shape shape = {}) {
    expect_all(submit(engine, acquires(first, shape)), Status::granted);
    expect_all(submit(engine, releases(first)), Status::released);
  }
  // The token is the transaction's number: who shares the one shares the other.
  static bool in_one_transaction(const engine::Outcomes& outcomes) {
    return std::ranges::all_of(outcomes, [&](const Outcome& outcome) {
      return outcome.status == Status::granted && outcome.token == outcomes.front().token;
    });
  }
  static std::vector<std::uint64_t> tokens_of(engine::Engine& engine, const std::string& name) {
    std::vector<std::uint64_t> tokens;
    const auto info = engine.show(name);
    EXPECT_TRUE(info) << info.error();
    for (const HolderInfo& holder : info.value_or(LockInfo{}).holders) {
      tokens.push_back(holder.token.value_or(0));
    }
    return tokens;
  }
};

TEST_F(ZookeeperJoint, LocksThatAreTakenTogetherCostOneTransaction) {
  const auto engine = open_engine(url());
  const auto other = open_engine(url(), 2);
  std::uint32_t number = 100;
  const auto share = [&] {
    use_once(*engine, number += 100);
    const auto granted = submit(*engine, acquires(number += 100));
    for (std::uint32_t i = 0; i < kLocks; ++i) {
      EXPECT_THAT(tokens_of(*other, lock_name(i)), ::testing::ElementsAre(granted[i].token));
    }
    expect_all(submit(*engine, releases(number)), Status::released);
    return in_one_transaction(granted);
  };
  // The server removes what has become empty, and the library's thread may let some leave first.
  for (int round = 0; round < 3; ++round) EXPECT_TRUE(eventually(share));
}

// A thread that goes from lock to lock.
TEST_F(ZookeeperJoint, AReleaseSharesTheTransactionOfTheNextAcquire) {
  const auto engine = open_engine(url());
  use_once(*engine, 100);
  const auto transactions_between = [&](std::uint32_t first) {
    const std::uint64_t before = submit(*engine, "y", acquire(first)).token >> 12U;
    EXPECT_EQ(submit(*engine, {{"y", release(first)}, {"x2", acquire(first + 1)}})[1].status,
              Status::granted);
    EXPECT_EQ(submit(*engine, {{"x2", release(first + 1)}, {"x3", acquire(first + 2)}})[1].status,
              Status::granted);
    const auto last = submit(*engine, {{"x3", release(first + 2)}, {"x4", acquire(first + 3)}});
    EXPECT_EQ(submit(*engine, "x4", release(first + 3)).status, Status::released);
    return (last[1].token >> 12U) - before;
  };
  // Others may use the server too.
  std::uint32_t number = 1000;
  EXPECT_TRUE(eventually([&] { return transactions_between(number += 10) == 3; }));
}

// The transaction fails as a whole, and nothing of it counts.
TEST_F(ZookeeperJoint, OneThatCannotBeDoesNotHinderTheOthers) {
  const auto engine = open_engine(url());
  const auto other = open_engine(url(), 2);
  use_once(*engine, 100);
  ASSERT_EQ(submit(*engine, "gone", acquire(1)).status, Status::granted);
  ASSERT_EQ(submit(*engine, "held", acquire(2)).status, Status::granted);
  ASSERT_EQ(submit(*other, "gone", core::Revoke{.now = true}).status, Status::done);
  auto batch = acquires(200);
  batch.push_back({"gone", release(1)});
  batch.push_back({"held", release(2)});
  const auto outcomes = submit(*engine, batch);
  for (std::uint32_t i = 0; i < kLocks; ++i) {
    EXPECT_EQ(outcomes[i].status, Status::granted);
    EXPECT_THAT(tokens_of(*other, lock_name(i)), ::testing::ElementsAre(outcomes[i].token));
  }
  EXPECT_EQ(outcomes[kLocks].status, Status::not_held);
  EXPECT_EQ(outcomes[kLocks + 1].status, Status::released);
  EXPECT_EQ(nodes_of(*other, "held"), 0U);
}

TEST_F(ZookeeperJoint, ALostReplyNeverMakesTwoNodesOfAnybody) {
  const auto line = proxy();
  const auto engine = open_engine(url_at(port_of(*line)));
  const auto other = open_engine(url(), 2);
  expect_all(submit(*other, acquires(100, kShared)), Status::granted);  // what is empty vanishes
  use_once(*engine, 200, kShared);
  std::uint32_t first = 200;
  const auto all_are_lost = [&] {
    first += 100;
    EXPECT_EQ(insist(*engine, "held", acquire(first)).status, Status::granted);
    line->swallow_reply({.pattern = "-__READ__", .then = Swallow::Then::cut});
    auto batch = acquires(first + 1, kShared);
    batch.push_back({"held", release(first)});
    const auto outcomes = submit(*engine, batch);
    line->stop_swallowing();
    const bool lost = std::ranges::all_of(outcomes, [](const Outcome& each) {
      return each.error && each.error->code == ErrorCode::outcome_unknown;
    });
    for (std::uint32_t i = 0; i < kLocks && !lost; ++i) {
      insist(*engine, lock_name(i), release(first + 1 + i));
    }
    return lost;
  };
  // The library's thread may let some leave before the others.
  ASSERT_TRUE(eventually(all_are_lost));
  for (std::uint32_t i = 0; i < kLocks; ++i) {
    const std::uint32_t number = first + 1 + i;
    const Outcome again = insist(*engine, lock_name(i), acquire(number, kShared));
    EXPECT_EQ(again.status, Status::granted);
    EXPECT_THAT(tokens_of(*other, lock_name(i)), ::testing::Contains(again.token));
    EXPECT_EQ(nodes_of(*other, lock_name(i)), 2U);
    EXPECT_EQ(insist(*engine, lock_name(i), release(number)).status, Status::released);
    EXPECT_EQ(nodes_of(*other, lock_name(i)), 1U);
  }
  EXPECT_EQ(insist(*engine, "held", release(first)).status, Status::not_held) << "it was done";
  EXPECT_EQ(nodes_of(*other, "held"), 0U);
}

// The token is told from the time of the last change in the lock's queue only if that was
// ours: somebody who comes and goes in between must not raise it.
TEST_F(ZookeeperJoint, ATokenIsThatOfTheNodeWhoeverElseComesAndGoes) {
  const auto engine = open_engine(url());
  const auto other = open_engine(url(), 2);
  const auto judge = open_engine(url(), 3);
  use_once(*engine, 100, kShared);
  const std::jthread crowd{[&](const std::stop_token& done) {
    for (std::uint32_t number = 100'000; !done.stop_requested(); number += kLocks) {
      expect_all(submit(*other, acquires(number, kShared)), Status::granted);
      expect_all(submit(*other, releases(number)), Status::released);
    }
  }};
  for (std::uint32_t round = 2; round < 60; ++round) {
    const auto granted = submit(*engine, acquires(round * 100, kShared));
    for (std::uint32_t i = 0; i < kLocks; ++i) {
      EXPECT_THAT(tokens_of(*judge, lock_name(i)), ::testing::Contains(granted[i].token));
    }
    expect_all(submit(*engine, releases(round * 100)), Status::released);
  }
}

// Whoever watches the one in front and has not heard from it need not ask.
TEST_F(ZookeeperJoint, AWaiterThatHeardNothingAsksNothing) {
  const auto line = proxy();
  const auto engine = open_engine(url_at(port_of(*line)));
  const auto other = open_engine(url(), 2);
  expect_all(submit(*other, acquires(100)), Status::granted);
  expect_all(submit(*engine, acquires(200)), Status::queued);
  const auto sent_by = [&](const auto& question) {
    const std::uint64_t before = line->bytes(Way::to_store);
    question();
    return line->bytes(Way::to_store) - before;
  };
  // Now and then the session says that it lives.
  EXPECT_TRUE(eventually([&] {
    return sent_by([&] { EXPECT_EQ(submit(*engine, "x0", poll(200)).status, Status::queued); }) ==
           0;
  }));
  EXPECT_TRUE(eventually(
      [&] {
        const auto all =
            sent_by([&] { expect_all(submit(*engine, heartbeats(200)), Status::queued); });
        const auto one = sent_by(
            [&] { EXPECT_EQ(submit(*engine, "x0", heartbeat(200)).status, Status::queued); });
        return all < kLocks * one;
      },
      5s))
      << "heartbeats share a transaction";
  // Once it has heard, it knows better.
  EXPECT_EQ(submit(*other, "x0", release(100)).status, Status::released);
  EXPECT_TRUE(
      eventually([&] { return submit(*engine, "x0", poll(200)).status == Status::granted; }));
  // And it learns that its own place is gone.
  ASSERT_EQ(submit(*engine, "x1", release(201)).status, Status::released);
  EXPECT_EQ(submit(*engine, "x1", heartbeat(201)).status, Status::not_held);
}

}  // namespace
}  // namespace holdfast::test
