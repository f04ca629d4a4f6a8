#include "engine/ages.h"

#include <gtest/gtest.h>

namespace holdfast::engine {
namespace {

using namespace std::chrono_literals;

TEST(Ages, AreAsOfOneMoment) {
  const Ages ages{10'000ms};
  EXPECT_EQ(ages.since(4'000), 6s);
  EXPECT_EQ(ages.since(10'000), 0s);
  EXPECT_EQ(ages.since(10'001), 0s) << "it began later";
}

}  // namespace
}  // namespace holdfast::engine
