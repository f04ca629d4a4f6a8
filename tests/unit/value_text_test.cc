#include "engine/value_text.h"

#include <gtest/gtest.h>

#include "support/commands.h"

namespace holdfast::engine {
namespace {

using namespace std::chrono_literals;
using test::id;

TEST(ValueText, ReadsWhatItWrites) {
  for (const auto& bytes :
       {std::optional<std::string>{"a\nb"}, std::optional<std::string>{""},
        std::optional<std::string>{std::string(3, '\0')}, std::optional<std::string>{}}) {
    const ValueText text{.writer = id(7), .written = 123, .hold_off = 5s, .bytes = bytes};
    const auto read = ValueText::parse(text.text());
    ASSERT_TRUE(read);
    EXPECT_EQ(read->writer, id(7));
    EXPECT_EQ(read->written, 123U);
    EXPECT_EQ(read->hold_off, 5s);
    EXPECT_EQ(read->bytes, bytes);
  }
}

TEST(ValueText, WhatOthersWroteIsNoValue) {
  const std::string good =
      ValueText{.writer = id(7), .written = 123, .hold_off = 0s, .bytes = "x"}.text();
  ASSERT_TRUE(ValueText::parse(good));
  for (std::size_t i = 0; i < good.find('\n'); ++i) {
    EXPECT_FALSE(ValueText::parse(good.substr(0, i)));
    EXPECT_FALSE(ValueText::parse(good.substr(i + 1)));
  }
  EXPECT_FALSE(ValueText::parse("hello\nworld"));
  EXPECT_FALSE(ValueText::parse(""));
}

}  // namespace
}  // namespace holdfast::engine
