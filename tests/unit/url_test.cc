#include "engine/url.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace holdfast::engine {
namespace {

Url parsed(std::string_view text) {
  auto url = Url::parse(text);
  EXPECT_TRUE(url) << text << ": " << url.error();
  return url.value_or(Url{});
}

TEST(Url, PathsWithoutHosts) {
  const Url memory = parsed("memory:");
  EXPECT_EQ(memory.scheme, "memory");
  EXPECT_EQ(memory.path, "");
  EXPECT_EQ(parsed("memory:tests").path, "tests");
  EXPECT_EQ(parsed("sqlite:/var/lib/a b.db").path, "/var/lib/a b.db");
  EXPECT_EQ(parsed("sqlite:a/b.db").path, "a/b.db");
  EXPECT_EQ(parsed("sqlite:///var/a.db").path, "/var/a.db");
  EXPECT_EQ(parsed("SQLite:/a%3Fb%25.db").path, "/a?b%.db");
  EXPECT_EQ(parsed("SQLite:/a").scheme, "sqlite");
  EXPECT_EQ(parsed("sqlite:/a#b").path, "/a#b");
  EXPECT_EQ(parsed("sqlite:/100%25").path, "/100%");
}

TEST(Url, HostsUsersAndOptions) {
  const Url url = parsed("redis+sentinel://me:s%40cr:et@a:26379,b,[::1]:7/0?x=1&y=%26&z");
  EXPECT_EQ(url.scheme, "redis+sentinel");
  EXPECT_EQ(url.user, "me");
  EXPECT_EQ(url.password, "s@cr:et");
  ASSERT_EQ(url.hosts.size(), 3U);
  EXPECT_EQ(url.hosts[0].name, "a");
  EXPECT_EQ(url.hosts[0].port, 26379);
  EXPECT_EQ(url.hosts[1].port, 0);
  EXPECT_EQ(url.hosts[2].name, "::1");
  EXPECT_EQ(url.hosts[2].port, 7);
  EXPECT_EQ(url.path, "/0");
  EXPECT_EQ(url.query.at("y"), "&");
  EXPECT_EQ(url.query.at("z"), "");
}

TEST(Url, MalformedOnesAreRefusedWithoutQuotingThem) {
  for (const char* text : {"",
                           ":",
                           "/var/lib/hunter2.db",
                           "hunter2",
                           "1x:/a",
                           "a b:/c",
                           "sqlite:/a%",
                           "sqlite:/a%2",
                           "sqlite:/a%zz",
                           "redis://user:hunter2/x@host/0",
                           "redis://a:0",
                           "redis://a:99999",
                           "redis://a:",
                           "redis://a,,b",
                           "redis://a,",
                           "redis://,a",
                           "redis://[::1",
                           "redis://[::1]x",
                           "redis://::1",
                           "redis://u:%@a",
                           "sqlite:/a?=1",
                           "sqlite:/a?x=1&x=2",
                           "sqlite:/a?x=%",
                           "sqlite:/a\nb",
                           "sqlite:/a\x7f"}) {
    const auto url = Url::parse(text);
    ASSERT_FALSE(url) << text;
    EXPECT_EQ(url.error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(url.error().text.find("hunter2"), std::string::npos) << url.error();
  }
  EXPECT_FALSE(Url::parse("sqlite:/" + std::string(10'000, 'x')));
}

TEST(Url, RedactedHidesSecretsAndSurvivesParsing) {
  EXPECT_EQ(parsed("mysql://me:pw@h:1,[::2]/db?password=x&a=b%26").redacted(),
            "mysql://me:***@h:1,[::2]/db?a=b%26&password=***");
  for (const char* text : {"memory:", "sqlite:/a%3Fb%20%0A.db?k=v", "redis://u%40@h/1", "x:rel"}) {
    EXPECT_EQ(parsed(text).redacted(), text);
  }
}

TEST(Url, GarbageNeitherCrashesNorChangesMeaningWhenPrinted) {
  std::mt19937_64 random{7};
  constexpr std::string_view kAlphabet = "sq:/?&=%@,[]#a1.+ -";
  for (int round = 0; round < 20'000; ++round) {
    std::string text = round % 2 == 0 ? "s:" : "s://";
    for (auto length = random() % 24; length-- > 0;) {
      text.push_back(kAlphabet[random() % kAlphabet.size()]);
    }
    const auto url = Url::parse(text);
    if (!url || !url->password.empty()) {
      continue;
    }
    const auto again = Url::parse(url->redacted());
    ASSERT_TRUE(again) << text << " -> " << url->redacted() << ": " << again.error();
    EXPECT_EQ(again->redacted(), url->redacted()) << text;
    EXPECT_EQ(again->path, url->path) << text;
    EXPECT_EQ(again->query, url->query) << text;
    EXPECT_EQ(again->hosts.size(), url->hosts.size()) << text;
  }
}

}  // namespace
}  // namespace holdfast::engine
