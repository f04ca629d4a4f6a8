#include "engines/redis/resp.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace holdfast::engines {
namespace {

using Kind = RespValue::Kind;

const std::string kAll = std::string{"+OK\r\n-ERR no\r\n:-42\r\n$3\r\na\0b\r\n$-1\r\n*-1\r\n", 39} +
                         "*3\r\n:1\r\n*2\r\n+x\r\n$0\r\n\r\n$1\r\ny\r\n";

void expect_all(RespReader& reader) {
  auto value = reader.next();
  ASSERT_TRUE(value);
  EXPECT_EQ(value->kind, Kind::status);
  EXPECT_EQ(value->text, "OK");
  value = reader.next();
  ASSERT_TRUE(value && value->is_error());
  EXPECT_EQ(value->text, "ERR no");
  value = reader.next();
  ASSERT_TRUE(value && value->is(Kind::integer));
  EXPECT_EQ(value->integer, -42);
  value = reader.next();
  ASSERT_TRUE(value && value->is(Kind::text));
  EXPECT_EQ(value->text, (std::string{"a\0b", 3}));
  for (int i = 0; i < 2; ++i) {
    value = reader.next();
    ASSERT_TRUE(value);
    EXPECT_EQ(value->kind, Kind::nil);
  }
  value = reader.next();
  ASSERT_TRUE(value && value->is(Kind::array));
  ASSERT_EQ(value->items.size(), 3U);
  EXPECT_EQ(value->items[1].items[0].text, "x");
  EXPECT_EQ(value->items[1].items[1].text, "");
  EXPECT_EQ(value->items[2].text, "y");
  EXPECT_FALSE(reader.next());
  EXPECT_FALSE(reader.broken());
}

TEST(Resp, ReadsEveryKindOfReply) {
  RespReader reader;
  reader.feed(kAll);
  expect_all(reader);
}

TEST(Resp, ReadsRepliesThatComeByteByByte) {
  RespReader reader;
  RespReader probe;
  for (const char byte : kAll) {
    reader.feed({&byte, 1});
    probe.feed({&byte, 1});
    while (probe.next()) {
    }
    ASSERT_FALSE(probe.broken());
  }
  expect_all(reader);
}

TEST(Resp, SaysWhenItIsNotTheProtocol) {
  for (const char* text : {"HTTP/1.1 400 Bad\r\n", "\r\n", ":12x\r\n", "$-2\r\n", "*-7\r\n",
                           "$99999999999999\r\n", "*99999999999\r\n", "$2\r\nabc\r\n"}) {
    RespReader reader;
    reader.feed(text);
    EXPECT_FALSE(reader.next()) << text;
    EXPECT_TRUE(reader.broken()) << text;
  }
  RespReader deep;
  for (int i = 0; i < 100; ++i) {
    deep.feed("*1\r\n");
  }
  EXPECT_FALSE(deep.next());
  EXPECT_TRUE(deep.broken());
}

TEST(Resp, SurvivesAnything) {
  std::mt19937 random{7};
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = kAll;
    for (int i = 0; i < 3; ++i) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    RespReader reader;
    for (std::size_t at = 0; at < bytes.size(); at += 7) {
      reader.feed(std::string_view{bytes}.substr(at, 7));
      while (reader.next()) {
      }
    }
  }
}

TEST(Resp, WritesCommands) {
  std::string out;
  append_resp_command(out, "SET", std::string{"k\r\n"}, "");
  EXPECT_EQ(out, "*3\r\n$3\r\nSET\r\n$3\r\nk\r\n\r\n$0\r\n\r\n");
}

}  // namespace
}  // namespace holdfast::engines
