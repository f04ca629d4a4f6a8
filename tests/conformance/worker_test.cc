// One of several workers leads; another takes over when it cannot.
#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "conformance/conformance.h"

namespace holdfast::test {
namespace {

class Election : public Conformance {
 protected:
  WorkerOptions options() {
    return {.lock = {.ttl = ttl(harness().renewable_ttl())}, .rest = 10ms, .look_every = 20ms};
  }
  // Leads until it is told to stop.
  Worker::Work stay() {
    return [this](const std::stop_token& stop, std::optional<std::uint64_t> token) {
      if (++leaders_ > 1) overlap_ = true;
      last_token_ = token.value_or(0);
      if (!eventually([&] { return stop.stop_requested(); }, 2 * kPatience)) overlap_ = true;
      --leaders_;
    };
  }

  std::atomic<int> leaders_ = 0;
  std::atomic<bool> overlap_ = false;
  std::atomic<std::uint64_t> last_token_ = 0;
};
HOLDFAST_RUN_ON(Election, harnesses());

TEST_P(Election, OneLeadsAndAnotherFollowsWhenItResigns) {
  auto one = open();
  auto other = open();
  auto bold = options();
  bold.rest = kPatience;  // does not stand again in this test
  Worker first{*one, name(), stay(), bold};
  ASSERT_TRUE(eventually([&] { return first.leads(); }));
  const std::uint64_t token = last_token_;
  Worker second{*other, name(), stay(), options()};
  auto leader = second.observe();
  ASSERT_THAT(leader, IsOk());
  EXPECT_TRUE(leader->has_value());
  EXPECT_FALSE(second.leads());

  first.resign();
  EXPECT_TRUE(eventually([&] { return second.leads(); }));
  EXPECT_FALSE(first.leads());
  if (claims().token) {
    EXPECT_GT(last_token_, token);
  }
  EXPECT_EQ(first.statistics().terms, 1U);
  EXPECT_EQ(first.statistics().losses, 0U);
  EXPECT_GT(first.statistics().led, 0s);
  second.stop();
  second.join();
  EXPECT_FALSE(second.leads());
  EXPECT_FALSE(overlap_);
  auto nobody = second.observe();
  ASSERT_THAT(nobody, IsOk());
  EXPECT_FALSE(nobody->has_value());
}

TEST_P(Election, ALeaderThatLosesTheLockIsToldAndStandsAgain) {
  auto client = open();
  Worker worker{*client, name(), stay(), options()};
  ASSERT_TRUE(eventually([&] { return worker.leads(); }));
  ASSERT_THAT(bystander().force_release(name()), IsOk());
  EXPECT_TRUE(eventually([&] { return worker.statistics().losses == 1; }));
  EXPECT_TRUE(eventually([&] { return worker.leads() && worker.statistics().terms == 2; }));
  EXPECT_FALSE(overlap_);
}

TEST_P(Election, WorkThatReturnsOrThrowsEndsATerm) {
  auto client = open();
  std::atomic<int> runs = 0;
  Worker worker{*client, name(),
                [&](const std::stop_token&, std::optional<std::uint64_t>) {
                  if (++runs == 2) throw std::runtime_error{"oops"};
                },
                options()};
  EXPECT_TRUE(eventually([&] { return worker.statistics().terms >= 3; }));
  EXPECT_EQ(worker.statistics().failures, 1U);
  EXPECT_EQ(worker.statistics().last_failure, "oops");
  EXPECT_EQ(worker.last_error().has_value(), false);
}

TEST_P(Election, TimeWithoutALeaderIsCounted) {
  auto client = open();
  auto lazy = options();
  lazy.rest = 30ms;
  const auto start = std::chrono::steady_clock::now();
  Worker worker{*client, name(), [](const std::stop_token&, std::optional<std::uint64_t>) {}, lazy};
  ASSERT_TRUE(eventually([&] { return worker.statistics().terms >= 4; }));
  worker.stop();
  worker.join();
  const auto seen = worker.statistics();
  EXPECT_GE(seen.without_leader, 3 * lazy.rest) << "nobody else stands: it rests three times";
  EXPECT_LE(seen.without_leader + seen.unknown + seen.led,
            std::chrono::steady_clock::now() - start);
}

TEST_P(Election, AForeignLeaderIsNoTimeWithoutOne) {
  auto holder = open();
  auto lease = holder->acquire(name());
  ASSERT_THAT(lease, IsOk());
  auto client = open();
  Worker worker{*client, name(), stay(), options()};
  for (int looks = 0; looks < 5; ++looks) {
    auto leader = worker.observe();
    ASSERT_THAT(leader, IsOk());
    EXPECT_TRUE(leader->has_value());
  }
  EXPECT_EQ(worker.statistics().without_leader, 0s);
  ASSERT_THAT(lease->release(), IsOk());
  ASSERT_TRUE(eventually([&] { return worker.leads(); }));
  // It saw somebody who led, and then led itself: what was between the two, it
  // cannot know, unless a look fell into the gap.
  const auto seen = worker.statistics();
  EXPECT_GT(seen.unknown, 0s);
}

TEST_P(Election, TheWorkMayStopItsWorker) {
  auto client = open();
  std::atomic<Worker*> self = nullptr;
  Worker worker{*client, name(),
                [&](const std::stop_token& stop, std::optional<std::uint64_t>) {
                  ASSERT_TRUE(eventually([&] { return self.load() != nullptr; }));
                  self.load()->stop();
                  EXPECT_TRUE(stop.stop_requested());
                },
                options()};
  self = &worker;
  worker.join();
  EXPECT_EQ(worker.statistics().terms, 1U);
  EXPECT_TRUE(await_nothing_left());
}

TEST_P(Election, WaitingEndsWithStop) {
  auto holder = open();
  auto lease = holder->acquire(name());
  ASSERT_THAT(lease, IsOk());
  auto client = open();
  Worker worker{*client, name(), stay(), options()};
  EXPECT_TRUE(eventually([&] {
    auto leader = worker.observe();
    return leader && leader->has_value();
  }));
  worker.stop();
  worker.join();
  EXPECT_EQ(worker.statistics().terms, 0U);
}

TEST_P(Election, BadInputIsRefused) {
  auto client = open();
  const auto expect_refused = [&](const std::string& lock, Worker::Work work,
                                  const WorkerOptions& how, const char* field) {
    try {
      const Worker worker{*client, lock, std::move(work), how};
      ADD_FAILURE() << "accepted: " << field;
    } catch (const LockError& error) {
      EXPECT_EQ(error.error().code, ErrorCode::invalid_argument);
      EXPECT_THAT(error.what(), ::testing::HasSubstr(field));
    }
  };
  expect_refused("", stay(), options(), "name");
  expect_refused(name(), nullptr, options(), "work");
  expect_refused(name(), stay(), {.rest = -1s}, "rest");
  expect_refused(name(), stay(), {.look_every = 0s}, "look_every");
  expect_refused(name(), stay(), {.lock = {.ttl = -1s}}, "ttl");
  expect_refused(name(), stay(), {.lock = {.mode = Mode::shared}}, "mode");
}

}  // namespace
}  // namespace holdfast::test
