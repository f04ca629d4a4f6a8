#include "engines/relational/known_names.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace holdfast::engines::relational {
namespace {

TEST(KnownNames, KnowsWhatItWasTold) {
  const auto known = std::make_unique<KnownNames>();
  EXPECT_FALSE(known->contains("a"));
  EXPECT_FALSE(known->contains(""));
  known->add("a");
  EXPECT_TRUE(known->contains("a"));
  EXPECT_FALSE(known->contains("b"));
}

// As many as a busy process uses: hardly one of them may be driven out by another.
TEST(KnownNames, NamesInUseDoNotDriveEachOtherOut) {
  const auto known = std::make_unique<KnownNames>();
  constexpr int kNames = 3200;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < kNames; ++i) known->add("name " + std::to_string(i));
  }
  int kept = 0;
  for (int i = 0; i < kNames; ++i) kept += known->contains("name " + std::to_string(i)) ? 1 : 0;
  EXPECT_GT(kept, kNames * 98 / 100);
}

TEST(KnownNames, TheOneInConstantUseStays) {
  const auto known = std::make_unique<KnownNames>();
  for (int i = 0; i < 100'000; ++i) {
    known->add("always");
    known->add("once " + std::to_string(i));
  }
  EXPECT_TRUE(known->contains("always"));
}

}  // namespace
}  // namespace holdfast::engines::relational
