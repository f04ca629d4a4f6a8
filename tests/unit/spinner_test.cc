#include "base/spinner.h"

#include <gtest/gtest.h>
#include <holdfast/testing.h>

#include <atomic>
#include <thread>
#include <utility>

namespace holdfast::base {
namespace {

using namespace std::chrono_literals;

constexpr int kTurns = 5;
constexpr Duration kMost = 1ms;

// How often it looks for what never comes.
int looks(Spinner& spinner, Duration most = kMost, int turns = kTurns) {
  int count = 0;
  EXPECT_FALSE(spinner.spin({.most = most, .turns = turns}, [&] {
    ++count;
    return false;
  }));
  return count;
}

void learn(Spinner& spinner, Duration took) {
  for (int i = 0; i < 100; ++i) spinner.learn(took);
}

TEST(Spinner, WhatIsThereIsNotWaitedFor) {
  Spinner spinner;
  learn(spinner, 1h);
  EXPECT_TRUE(spinner.spin({.most = {}}, [] { return true; }));
}

TEST(Spinner, FindsWhatAnotherThreadBrings) {
  Spinner spinner;
  learn(spinner, 1ms);
  std::atomic<bool> there = false;
  std::thread other{[&] { there = true; }};
  while (!spinner.spin({.most = 10ms}, [&] { return there.load(); })) {
  }
  other.join();
}

TEST(Spinner, GivesUpAfterSoManyTurns) {
  Spinner spinner;
  learn(spinner, kMost);
  EXPECT_LE(looks(spinner), 1 + kTurns);
  EXPECT_GT(looks(spinner), 1);
}

TEST(Spinner, DoesNotSpinForWhatTakesLongByExperience) {
  Spinner spinner;
  learn(spinner, 2 * kMost);
  EXPECT_EQ(looks(spinner), 1);
  learn(spinner, kMost / 2);
  EXPECT_GT(looks(spinner), 1) << "it has become quick";
}

TEST(Spinner, OneLongWaitAmongManyIsNoExperience) {
  Spinner spinner;
  learn(spinner, 10us);
  spinner.learn(4 * kMost);
  EXPECT_GT(looks(spinner), 1);
}

// What the sleeper measures is too long by the time to be woken.
TEST(Spinner, WhoSleepsFindsOutThatSpinningWouldDo) {
  Spinner spinner;
  learn(spinner, kMost * 11 / 10);
  int awake = 0;
  for (int wait = 0; wait < 10'000 && awake < 100; ++wait) {
    bool asked = false;
    const bool found =
        spinner.spin({.most = kMost}, [&] { return std::exchange(asked, true); });  // at once
    awake += found ? 1 : 0;
    spinner.learn(found ? kMost * 9 / 10 : kMost * 11 / 10);
  }
  EXPECT_EQ(awake, 100);
}

TEST(Spinner, WhatIsFarTooSlowIsNotTriedAgain) {
  Spinner spinner;
  learn(spinner, 3 * kMost);
  for (int wait = 0; wait < 200; ++wait) EXPECT_EQ(looks(spinner), 1);
}

// A trial that fails costs one wait of many, and changes nothing.
TEST(Spinner, TrialsAreRare) {
  Spinner spinner;
  learn(spinner, kMost * 3 / 2);
  int spun = 0;
  for (int wait = 0; wait < 200; ++wait) spun += looks(spinner) > 1 ? 1 : 0;
  EXPECT_GT(spun, 0);
  EXPECT_LT(spun, 20);
}

TEST(Spinner, NeverIfItMayNot) {
  Spinner spinner;
  EXPECT_EQ(looks(spinner, Duration::zero()), 1);
  EXPECT_EQ(looks(spinner, -1s), 1);
}

TEST(Spinner, NeverByAClockThatStandsStill) {
  const holdfast::testing::FakeClock clock;
  Spinner spinner;
  EXPECT_EQ(looks(spinner), 1);
}

}  // namespace
}  // namespace holdfast::base
