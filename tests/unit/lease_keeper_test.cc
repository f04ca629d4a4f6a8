#include "core/lease_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "support/commands.h"

namespace holdfast::core {
namespace {

using test::at;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

TEST(LeaseKeeper, TheDeadlineLeavesRoomForClocksThatRunAtDifferentSpeeds) {
  EXPECT_EQ(LeaseKeeper::deadline(at(0s), 30s), at(30s - 300ms - 2ms));
  EXPECT_EQ(LeaseKeeper::deadline(at(5s), 100ms), at(5s + 100ms - 1ms - 2ms));
  // Nothing is left of a lease that the drift eats up.
  EXPECT_LT(LeaseKeeper::deadline(at(0s), 1ms), at(0s));
  EXPECT_EQ(LeaseKeeper::deadline(at(0s), kMaxTtl), at(kMaxTtl - kMaxTtl / 100 - 2ms));
}

TEST(LeaseKeeper, RefreshesComeNeverLateAndAtMostASixthEarly) {
  std::mt19937_64 random{1};
  for (int i = 0; i < 20'000; ++i) {
    const auto interval = Duration{
        std::uniform_int_distribution<Duration::rep>{1, Duration{kMaxTtl / 3}.count()}(random)};
    const auto sent = at(
        Duration{std::uniform_int_distribution<Duration::rep>{0, Duration{24h}.count()}(random)});
    LeaseKeeper keeper;
    keeper.refresh_after(1, sent, interval);
    EXPECT_LE(keeper.next(), sent + interval);
    EXPECT_GE(keeper.next(), sent + interval - interval / 6);
    EXPECT_GE(keeper.next(), sent);
  }
}

TEST(LeaseKeeper, WhatIsDueAtAboutTheSameTimeIsDueAtTheSameTime) {
  LeaseKeeper keeper;
  for (TenancyId tenancy = 1; tenancy <= 1000; ++tenancy) {
    keeper.refresh_after(tenancy, at(1ms * static_cast<int>(tenancy)), 10s);
  }
  int batches = 0;
  while (keeper.refreshing() > 0) {
    ++batches;
    ASSERT_THAT(keeper.due(keeper.next()).refresh, ::testing::Not(IsEmpty()));
  }
  EXPECT_LE(batches, 3);  // one second's worth, on a grid of about one second
}

TEST(LeaseKeeper, WhatIsDueIsTakenOffTheCalendar) {
  LeaseKeeper keeper;
  keeper.refresh_at(1, at(1s));
  keeper.refresh_at(2, at(2s));
  keeper.warn(7, at(10s), 8s);
  EXPECT_EQ(keeper.next(), at(1s));
  EXPECT_THAT(keeper.due(at(1s) - 1ns).refresh, IsEmpty());
  EXPECT_THAT(keeper.due(at(1s)).refresh, ElementsAre(1));
  EXPECT_THAT(keeper.due(at(1s)).refresh, IsEmpty());
  EXPECT_EQ(keeper.next(), at(2s));
  const auto duties = keeper.due(at(2s));
  EXPECT_THAT(duties.refresh, ElementsAre(2));
  EXPECT_THAT(duties.warn, ElementsAre(7));
  EXPECT_EQ(keeper.next(), base::kNever);
  EXPECT_EQ(keeper.refreshing() + keeper.warning(), 0U);
}

TEST(LeaseKeeper, ANewDateReplacesTheOldOne) {
  LeaseKeeper keeper;
  keeper.refresh_at(1, at(1s));
  keeper.refresh_at(1, at(3s));
  keeper.warn(7, at(5s), 1s);
  keeper.warn(7, at(2s), 1s);
  EXPECT_EQ(keeper.refreshing(), 1U);
  EXPECT_EQ(keeper.next(), at(1s));
  EXPECT_THAT(keeper.due(at(2s)).refresh, IsEmpty());
  EXPECT_THAT(keeper.due(at(3s)).refresh, ElementsAre(1));
  EXPECT_EQ(keeper.warning(), 0U);
}

TEST(LeaseKeeper, WhatIsStoppedIsNeverDue) {
  LeaseKeeper keeper;
  keeper.refresh_at(1, at(1s));
  keeper.refresh_at(2, at(1s));
  keeper.warn(1, at(1s), 0s);
  keeper.stop_refreshing(1);
  keeper.stop_refreshing(9);
  keeper.stop_warning(1);
  keeper.stop_warning(9);
  const auto duties = keeper.due(at(1h));
  EXPECT_THAT(duties.refresh, ElementsAre(2));
  EXPECT_THAT(duties.warn, IsEmpty());
}

TEST(LeaseKeeper, AgreesWithAPlainListOfDates) {
  std::mt19937_64 random{7};
  LeaseKeeper keeper;
  std::map<std::uint64_t, Time> refreshes;
  std::map<std::uint64_t, Time> warnings;
  const auto take = [](auto& dates, Time now) {
    std::vector<std::uint64_t> taken;
    std::erase_if(dates, [&](const auto& entry) {
      if (entry.second <= now) {
        taken.push_back(entry.first);
      }
      return entry.second <= now;
    });
    return taken;
  };
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t key = random() % 50;
    const Time when = at(std::chrono::milliseconds{i + static_cast<int>(random() % 1000)});
    switch (random() % 6) {
      case 0:
      case 1:
        keeper.refresh_at(key, when);
        refreshes[key] = when;
        break;
      case 2:
        keeper.warn(key, when + 5ms, 5ms);
        warnings[key] = when;
        break;
      case 3:
        keeper.stop_refreshing(key);
        refreshes.erase(key);
        break;
      case 4:
        keeper.stop_warning(key);
        warnings.erase(key);
        break;
      default: {
        const auto duties = keeper.due(at(std::chrono::milliseconds{i}));
        EXPECT_THAT(duties.refresh, ::testing::UnorderedElementsAreArray(
                                        take(refreshes, at(std::chrono::milliseconds{i}))));
        EXPECT_THAT(duties.warn, ::testing::UnorderedElementsAreArray(
                                     take(warnings, at(std::chrono::milliseconds{i}))));
      }
    }
    ASSERT_EQ(keeper.refreshing(), refreshes.size());
    ASSERT_EQ(keeper.warning(), warnings.size());
    Time next = base::kNever;
    for (const auto* dates : {&refreshes, &warnings}) {
      for (const auto& entry : *dates) {
        next = std::min(next, entry.second);
      }
    }
    ASSERT_EQ(keeper.next(), next);
  }
}

}  // namespace
}  // namespace holdfast::core
