#include "holdfast/duration.h"

#include <gtest/gtest.h>

namespace holdfast::command {
namespace {

using namespace std::chrono_literals;

TEST(Duration, ReadsNumbersWithUnits) {
  EXPECT_EQ(parse_duration("500ms"), 500ms);
  EXPECT_EQ(parse_duration("30s"), 30s);
  EXPECT_EQ(parse_duration("2m"), 2min);
  EXPECT_EQ(parse_duration("1h30m"), 90min);
  EXPECT_EQ(parse_duration("1.5s"), 1500ms);
  EXPECT_EQ(parse_duration("7d"), 168h);
  EXPECT_EQ(parse_duration("250us"), 250us);
  EXPECT_EQ(parse_duration("0"), 0s);
  EXPECT_EQ(parse_duration("0s"), 0s);
}

struct Mistake {
  const char* text;
  const char* advice;
};

class MistakenDuration : public testing::TestWithParam<Mistake> {};

TEST_P(MistakenDuration, SaysWhatToWriteInstead) {
  const auto parsed = parse_duration(GetParam().text);
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(parsed.error().text.find(GetParam().advice), std::string::npos) << parsed.error().text;
}

INSTANTIATE_TEST_SUITE_P(All, MistakenDuration,
                         testing::Values(Mistake{"", "missing"}, Mistake{"5", "e.g. 5s"},
                                         Mistake{"-5s", "negative"}, Mistake{"5x", "unit 'x'"},
                                         Mistake{"5 s", "unit ' s'"}, Mistake{"s", "500ms"},
                                         Mistake{".s", "500ms"}, Mistake{"1..5s", "500ms"},
                                         Mistake{"1h30", "e.g. 30s"}, Mistake{"inf", "500ms"},
                                         Mistake{"99999999999d", "too long"},
                                         Mistake{"30000d9999999h", "too long"}));

TEST(Duration, SpellsWhatItReads) {
  for (const char* text : {"20ms", "30s", "2m", "1h30m", "7d", "1d2h3m4s5ms", "0"}) {
    EXPECT_EQ(spell_duration(*parse_duration(text)), text);
  }
}

TEST(Duration, SpeaksToPeopleInFewWords) {
  EXPECT_EQ(human_duration(0s), "0 s");
  EXPECT_EQ(human_duration(450ms), "450 ms");
  EXPECT_EQ(human_duration(3900ms), "3 s");
  EXPECT_EQ(human_duration(59s), "59 s");
  EXPECT_EQ(human_duration(2min), "2 min");
  EXPECT_EQ(human_duration(2min + 5s), "2 min 5 s");
  EXPECT_EQ(human_duration(12min + 5s), "12 min");
  EXPECT_EQ(human_duration(65min), "1 h 5 min");
  EXPECT_EQ(human_duration(50h), "2 d 2 h");
}

}  // namespace
}  // namespace holdfast::command
