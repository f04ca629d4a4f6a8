#include "engine/query.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <string>

namespace holdfast::engine {
namespace {

using namespace std::chrono_literals;

Url url(const std::string& query) {
  return *Url::parse("x:y?" + query);
}

TEST(Query, ReadsDurationsAndFlags) {
  const Url given = url("a=500ms&b=30s&c=2m&d=1h&e=0s&f=true&g=false&h");
  Query query{given};
  EXPECT_EQ(query.duration("a", 9s), 500ms);
  EXPECT_EQ(query.duration("b", 9s), 30s);
  EXPECT_EQ(query.duration("c", 9s), 2min);
  EXPECT_EQ(query.duration("d", 9s), 1h);
  EXPECT_EQ(query.duration("e", 9s), 0s);
  EXPECT_EQ(query.duration("absent", 9s), 9s);
  EXPECT_TRUE(query.flag("f", false));
  EXPECT_FALSE(query.flag("g", true));
  EXPECT_TRUE(query.flag("h", false));
  EXPECT_TRUE(query.flag("missing", true));
  EXPECT_TRUE(query.finish());
}

TEST(Query, ReadsTextsNumbersAndChoices) {
  const Url given = url("a=words&b=7&c=two");
  Query query{given};
  EXPECT_EQ(query.text("a"), "words");
  EXPECT_EQ(query.text("absent", "otherwise"), "otherwise");
  EXPECT_EQ(query.number("b", 1, 0, 7), 7U);
  EXPECT_EQ(query.number("none", 5, 0, 3), 5U);
  const std::array<std::string_view, 2> choices{"one", "two"};
  EXPECT_EQ(query.choice("c", choices), 1U);
  EXPECT_EQ(query.choice("unsaid", choices), 0U);
  EXPECT_TRUE(query.finish());
}

TEST(Query, ComplainsAboutNumbersAndChoicesOutOfRange) {
  for (const char* text : {"a=", "a=8", "a=0", "a=-1", "a=7x", "b=three", "b="}) {
    const Url given = url(text);
    Query query{given};
    const std::array<std::string_view, 2> choices{"one", "two"};
    query.number("a", 1, 1, 7);
    query.choice("b", choices);
    const auto wrong = query.finish();
    ASSERT_FALSE(wrong) << text;
    EXPECT_EQ(wrong.error().code, ErrorCode::invalid_argument);
  }
}

TEST(Query, ComplainsAboutTheFirstMalformedValue) {
  for (const char* text :
       {"a=", "a=5", "a=-5s", "a=5 s", "a=s", "a=1.5s", "a=99999999999999999h"}) {
    const Url given = url(text);
    Query query{given};
    query.duration("a", 1s);
    const auto wrong = query.finish();
    ASSERT_FALSE(wrong) << text;
    EXPECT_EQ(wrong.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(wrong.error().text.find("'a'"), std::string::npos);
  }
  const Url given = url("b=perhaps");
  Query query{given};
  query.flag("b", false);
  EXPECT_FALSE(query.finish());
}

TEST(Query, NamesTheUnknownOptionAndTheKnownOnes) {
  const Url given = url("colour=red");
  Query query{given};
  query.flag("a", false);
  query.duration("b", 1s);
  const auto wrong = query.finish();
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().text, "a x store has no option 'colour'; it knows: a, b");
}

}  // namespace
}  // namespace holdfast::engine
