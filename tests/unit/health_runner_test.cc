#include "client/health_runner.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/eventually.h"

namespace holdfast::client {
namespace {

using namespace std::chrono_literals;
using base::BootClock;

std::shared_ptr<const HealthCheck> check(std::function<bool()> ask, Duration timeout = 1h) {
  return std::make_shared<HealthCheck>(HealthCheck{std::move(ask), timeout});
}

class HealthRunnerTest : public ::testing::Test {
 protected:
  HealthRunner::Answer answer() {
    std::vector<HealthRunner::Answer> answers;
    EXPECT_TRUE(test::eventually([&] {
      answers = runner.collect(BootClock::now());
      return !answers.empty();
    }));
    EXPECT_LE(answers.size(), 1U);
    return answers.empty() ? HealthRunner::Answer{} : answers.front();
  }

  std::atomic<int> nudges = 0;
  HealthRunner runner{[this] { ++nudges; }};
};

TEST_F(HealthRunnerTest, BringsTheAnswer) {
  for (const bool well : {true, false}) {
    runner.ask(7, check([well] { return well; }));
    const auto got = answer();
    EXPECT_EQ(got.claim, 7U);
    EXPECT_EQ(got.well, well);
    EXPECT_EQ(nudges.exchange(0), 2);  // to set the time-out, and to collect
  }
  EXPECT_EQ(runner.next_timeout(), base::kNever);
}

TEST_F(HealthRunnerTest, AsksOnAThreadOfItsOwn) {
  std::thread::id asked;
  runner.ask(1, check([&] {
               asked = std::this_thread::get_id();
               return true;
             }));
  answer();
  EXPECT_NE(asked, std::this_thread::get_id());
}

TEST_F(HealthRunnerTest, AnExceptionIsNotWell) {
  runner.ask(1, check([]() -> bool { throw std::runtime_error{"ill"}; }));
  EXPECT_FALSE(answer().well);
}

TEST_F(HealthRunnerTest, SilenceIsNotWellAndIsSaidOnce) {
  std::promise<void> end;
  std::atomic<bool> ended = false;
  runner.ask(1, check(
                    [&] {
                      end.get_future().wait();
                      ended = true;
                      return true;
                    },
                    20ms));
  const auto got = answer();
  EXPECT_EQ(got.claim, 1U);
  EXPECT_FALSE(got.well);
  runner.ask(2, check([] { return true; }));  // somebody else takes over
  EXPECT_EQ(answer().claim, 2U);
  end.set_value();
  EXPECT_TRUE(test::eventually([&] { return ended.load(); }));
  EXPECT_TRUE(test::throughout(20ms, [&] { return runner.collect(BootClock::now()).empty(); }));
}

// Each waits for the next one to be asked: one after the other would never end.
TEST_F(HealthRunnerTest, ASlowCheckDoesNotHoldUpTheOthers) {
  std::promise<void> asked;
  runner.ask(1, check([&] {
               asked.get_future().wait();
               return true;
             }));
  runner.ask(2, check([&] {
               asked.set_value();
               return true;
             }));
  std::size_t well = 0;
  EXPECT_TRUE(test::eventually([&] {
    for (const auto& one : runner.collect(BootClock::now())) {
      well += one.well ? 1 : 0;
    }
    return well == 2;
  }));
}

TEST_F(HealthRunnerTest, AThousandQuestionsAreAnsweredByAFewThreads) {
  std::atomic<int> at_once = 0;
  std::atomic<int> most = 0;
  for (core::ClaimId i = 0; i < 1000; ++i) {
    runner.ask(i, check([&] {
                 const int now = ++at_once;
                 int seen = most;
                 while (now > seen && !most.compare_exchange_weak(seen, now)) {
                 }
                 --at_once;
                 return true;
               }));
  }
  std::size_t answers = 0;
  EXPECT_TRUE(test::eventually([&] {
    answers += runner.collect(BootClock::now()).size();
    return answers == 1000;
  }));
  EXPECT_LE(most, 16);
}

TEST_F(HealthRunnerTest, StuckChecksMakeRoomAtTheirTimeOut) {
  constexpr core::ClaimId kStuck = 40;  // more than there are threads at once
  std::promise<void> end;
  const auto ended = end.get_future().share();
  for (core::ClaimId i = 0; i < kStuck; ++i) {
    runner.ask(i, check(
                      [ended] {
                        ended.wait();
                        return true;
                      },
                      5ms));
  }
  runner.ask(kStuck, check([] { return true; }));
  std::vector<HealthRunner::Answer> answers;
  EXPECT_TRUE(test::eventually([&] {
    for (const auto& one : runner.collect(BootClock::now())) {
      answers.push_back(one);
    }
    return answers.size() == kStuck + 1;
  }));
  for (const auto& one : answers) {
    EXPECT_EQ(one.well, one.claim == kStuck);
  }
  end.set_value();
}

TEST_F(HealthRunnerTest, EndsWithoutWaitingForARunningCheck) {
  std::promise<void> end;
  std::promise<void> begun;
  std::atomic<bool> over = false;
  {
    HealthRunner brief{[&] { ++nudges; }};
    brief.ask(1, check([&] {
                begun.set_value();
                end.get_future().wait();
                over = true;
                return true;
              }));
    brief.ask(2, check([] { return true; }));
    begun.get_future().wait();
  }
  const int nudges_before = nudges;
  end.set_value();
  EXPECT_TRUE(test::eventually([&] { return over.load(); }));
  EXPECT_TRUE(test::throughout(10ms, [&] { return nudges == nudges_before; }));
}

}  // namespace
}  // namespace holdfast::client
