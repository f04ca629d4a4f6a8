// Random writes of values, on an engine and on core::ValueRecord: the same
// outcomes, versions and times, command by command.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "support/engine_driver.h"
#include "support/stores.h"

namespace holdfast {
namespace {

using namespace test;

class ValuesModel : public ::testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<engine::Engine> open(std::uint32_t session) {
    return open_engine(url_, session, [this] { return now_; });
  }
  core::Micros micros() const {
    return static_cast<core::Micros>(
        std::chrono::duration_cast<std::chrono::microseconds>(now_.time_since_epoch()).count());
  }

  TempDir dir_;
  const std::string url_ = store_url(GetParam(), dir_);
  base::Time now_ = at(24h);
};
INSTANTIATE_TEST_SUITE_P(, ValuesModel, ::testing::ValuesIn(engines_of_the_record()),
                         [](const auto& engine) { return engine.param; });

struct Dice {
  std::mt19937 random;
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); }
};

TEST_P(ValuesModel, RandomWritesHaveTheSameOutcomes) {
  const auto one = open(1);
  const auto other = open(2);
  ASSERT_TRUE(one && other);
  Dice dice{std::mt19937{7}};
  std::map<std::string, std::optional<core::ValueRecord>> model;
  core::ValueWrite last;
  std::string last_name;
  for (std::uint32_t i = 1; i <= 300; ++i) {
    engine::Engine& engine = dice.below(2) == 0 ? *one : *other;
    now_ += std::chrono::milliseconds{dice.below(3)};
    const std::string name = "v" + std::to_string(dice.below(3));
    auto& record = model[name];
    const std::uint64_t current = record ? record->version : 0;
    core::ValueWrite write{.name = name,
                           .expected = std::nullopt,
                           .bytes = "abc",
                           .writer = id(i),
                           .hold_off = std::chrono::milliseconds{dice.below(4)}};
    if (dice.below(4) != 0 && current != 0) write.expected = current - dice.below(4) / 3;
    if (write.expected && dice.below(3) == 0) write.bytes.reset();
    if (dice.below(5) == 0 && !last_name.empty()) write.writer = last.writer;  // sent again
    SCOPED_TRACE(std::to_string(i) + " " + name);
    const auto expected = core::apply(record, write, micros());
    const auto outcome = engine.write_value(write);
    ASSERT_TRUE(outcome) << outcome.error();
    ASSERT_EQ(outcome->applied, expected.applied);
    ASSERT_EQ(outcome->version, expected.version);
    if (expected.applied) {
      ASSERT_EQ(outcome->written, expected.written);
    }
    const auto seen = engine.load_value(name);
    ASSERT_TRUE(seen) << seen.error();
    ASSERT_EQ(seen->has_value(), record.has_value());
    if (record) {
      const auto wanted = record->seen(micros());
      EXPECT_EQ((*seen)->bytes, wanted.bytes);
      EXPECT_EQ((*seen)->version, wanted.version);
      EXPECT_EQ((*seen)->written, wanted.written);
      EXPECT_EQ((*seen)->hold_off, wanted.hold_off);
    }
    last = write;
    last_name = name;
  }
}

TEST_P(ValuesModel, AnErasedValueIsForgottenInTimeAndItsVersionsAreNot) {
  const auto engine = open(1);
  ASSERT_TRUE(engine);
  const auto made =
      engine->write_value({.name = "x", .expected = std::nullopt, .bytes = "a", .writer = id(1)});
  ASSERT_TRUE(made);
  const auto erased = engine->write_value(
      {.name = "x", .expected = made->version, .bytes = std::nullopt, .writer = id(2)});
  ASSERT_TRUE(erased);
  engine->tidy();
  ASSERT_TRUE(engine->load_value("x")->has_value());  // remembered
  now_ += core::kEraseMemory + 1s;
  engine->tidy();
  EXPECT_FALSE(engine->load_value("x")->has_value());
  const auto again =
      engine->write_value({.name = "x", .expected = std::nullopt, .bytes = "a", .writer = id(3)});
  ASSERT_TRUE(again);
  EXPECT_GT(again->version, erased->version);
}

TEST_P(ValuesModel, ListsByPrefixWhatWasNotErased) {
  const auto engine = open(1);
  ASSERT_TRUE(engine);
  std::uint32_t writer = 0;
  for (const std::string name : {"a", "a%", "a_b", "b", "a/c"}) {
    ASSERT_TRUE(engine->write_value(
        {.name = name, .expected = std::nullopt, .bytes = name, .writer = id(++writer)}));
  }
  const auto gone = engine->load_value("a_b");
  ASSERT_TRUE(gone && *gone);
  ASSERT_TRUE(engine->write_value({.name = "a_b",
                                   .expected = (*gone)->version,
                                   .bytes = std::nullopt,
                                   .writer = id(++writer)}));
  const auto listed = engine->list_values("a");
  ASSERT_TRUE(listed) << listed.error();
  std::vector<std::string> names;
  for (const core::NamedValue& each : *listed) {
    names.push_back(each.name);
    EXPECT_EQ(each.value.bytes, each.name);
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"a", "a%", "a/c"}));
}

}  // namespace
}  // namespace holdfast
