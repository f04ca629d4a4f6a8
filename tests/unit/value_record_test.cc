#include <gtest/gtest.h>

#include "core/value_record.h"
#include "support/commands.h"

namespace holdfast::core {
namespace {

using namespace std::chrono_literals;
using test::id;

constexpr Micros kNow = 1'700'000'000'000'000;

ValueWrite write(std::uint32_t writer, std::optional<std::uint64_t> expected,
                 std::optional<std::string_view> bytes, Duration hold_off = {}) {
  return {.name = "x",
          .expected = expected,
          .bytes = bytes,
          .writer = id(writer),
          .hold_off = hold_off};
}

TEST(ValueRecord, StartsAtTheClockOrTheFloorAndCountsOn) {
  std::optional<ValueRecord> record;
  EXPECT_EQ(apply(record, write(1, std::nullopt, "a"), kNow).version, kNow);
  EXPECT_EQ(apply(record, write(2, kNow, "b"), kNow).version, kNow + 1);
  record.reset();
  EXPECT_EQ(apply(record, write(3, std::nullopt, "a"), kNow, kNow + 9).version, kNow + 9);
}

TEST(ValueRecord, AConflictChangesNothingAndTellsTheVersion) {
  std::optional<ValueRecord> record;
  EXPECT_FALSE(apply(record, write(1, 5, "a"), kNow).applied);
  EXPECT_FALSE(record);
  apply(record, write(1, std::nullopt, "a"), kNow);
  const auto outcome = apply(record, write(2, std::nullopt, "b"), kNow);
  EXPECT_FALSE(outcome.applied);
  EXPECT_EQ(outcome.version, kNow);
  EXPECT_EQ(record->bytes, "a");
}

TEST(ValueRecord, AWriteThatIsSentAgainFindsItself) {
  std::optional<ValueRecord> record;
  apply(record, write(1, std::nullopt, "a"), kNow);
  const auto again = apply(record, write(1, std::nullopt, "a"), kNow + 7);
  EXPECT_TRUE(again.applied);
  EXPECT_EQ(again.version, kNow);
  EXPECT_EQ(again.written, kNow);
  apply(record, write(2, kNow, std::nullopt), kNow + 8);
  EXPECT_TRUE(apply(record, write(2, kNow, std::nullopt), kNow + 9).applied);  // the erasure, too
  EXPECT_FALSE(apply(record, write(1, std::nullopt, "a"), kNow + 9).version == kNow);
}

TEST(ValueRecord, ErasureKeepsTheVersionForAWhile) {
  std::optional<ValueRecord> record;
  apply(record, write(1, std::nullopt, "a"), kNow);
  EXPECT_TRUE(apply(record, write(2, kNow, std::nullopt), kNow).applied);
  EXPECT_FALSE(record->bytes);
  EXPECT_EQ(apply(record, write(3, kNow + 1, "b"), kNow).version, 0U);  // there is nothing
  EXPECT_FALSE(record->forgettable(kNow + 3'599'000'000));
  EXPECT_TRUE(record->forgettable(kNow + 3'600'000'000));
  EXPECT_EQ(apply(record, write(4, std::nullopt, "c"), kNow - 10).version, kNow + 2);
  EXPECT_FALSE(record->forgettable(kNow + 3'600'000'000));
}

TEST(ValueRecord, AHoldOffRunsDownByTheStoresClock) {
  std::optional<ValueRecord> record;
  apply(record, write(1, std::nullopt, "a", 3s), kNow);
  EXPECT_EQ(record->seen(kNow).hold_off, 3s);
  EXPECT_EQ(record->seen(kNow + 1'000'000).hold_off, 2s);
  EXPECT_EQ(record->seen(kNow + 9'000'000).hold_off, 0s);
  apply(record, write(2, kNow, "b"), kNow);
  EXPECT_EQ(record->seen(kNow).hold_off, 0s);
}

}  // namespace
}  // namespace holdfast::core
