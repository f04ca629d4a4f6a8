#include "client/wish.h"

#include <gtest/gtest.h>

#include <functional>

#include "support/commands.h"

namespace holdfast::client {
namespace {

using namespace std::chrono_literals;

AcquireOptions with(const std::function<void(AcquireOptions&)>& change) {
  AcquireOptions options;
  change(options);
  return options;
}

Capabilities everything() {
  Capabilities all;
  all.engine = "test";
  return all;
}

TEST(Wish, TakesTheCallersOptions) {
  const auto owner = Owner::make();
  const auto wish = make_wish("seat", with([&](auto& options) {
                                options.ttl = 10s;
                                options.mode = Mode::permits;
                                options.permits = 2;
                                options.of = 5;
                                options.renew = false;
                                options.fair = false;
                                options.hand_over = 7;
                                options.wait = 0s;
                                options.max_hold = 1min;
                                options.owner = owner;
                                options.health_check = [] { return true; };
                                options.health_timeout = 3s;
                              }),
                              everything());
  ASSERT_TRUE(wish) << wish.error();
  EXPECT_EQ(wish->name, "seat");
  EXPECT_EQ(wish->terms.shape, test::permits(2, 5));
  EXPECT_EQ(wish->terms.ttl, 10s);
  EXPECT_EQ(wish->terms.grace, 2s);
  EXPECT_FALSE(wish->terms.renew);
  EXPECT_FALSE(wish->terms.queue);
  EXPECT_TRUE(wish->terms.barge);
  EXPECT_EQ(wish->terms.hand_over, 7U);
  EXPECT_EQ(wish->max_hold, 1min);
  EXPECT_EQ(wish->owner, owner.id());
  ASSERT_NE(wish->health, nullptr);
  EXPECT_TRUE(wish->health->ask());
  EXPECT_EQ(wish->health->timeout, 3s);
}

TEST(Wish, TheDefaultsAreThoseOfTheDocumentation) {
  const auto wish = make_wish("x", {}, everything());
  ASSERT_TRUE(wish) << wish.error();
  EXPECT_EQ(wish->terms.ttl, 30s);
  EXPECT_EQ(wish->terms.grace, 6s);
  EXPECT_EQ(wish->terms.hand_over, 32U);
  EXPECT_TRUE(wish->terms.renew && wish->terms.queue && !wish->terms.barge);
  EXPECT_EQ(wish->max_hold, std::nullopt);
  EXPECT_EQ(wish->health, nullptr);
  EXPECT_EQ(wish->owner, std::nullopt);
}

// Nobody can add these to a clock.
TEST(Wish, WhatIsLongerThanALifeIsForEver) {
  const auto wish = make_wish("x", with([](auto& options) {
                                options.max_hold = Duration::max();
                                options.wait = Duration::max();
                                options.health_check = [] { return true; };
                                options.health_timeout = Duration::max();
                              }),
                              everything());
  ASSERT_TRUE(wish) << wish.error();
  EXPECT_EQ(wish->max_hold, std::nullopt);
  EXPECT_TRUE(wish->terms.queue);
  EXPECT_LE(wish->health->timeout, kLongestWait);
}

TEST(Wish, NamesAreOneTo255Bytes) {
  EXPECT_TRUE(make_wish(std::string(255, '\0'), {}, everything()));
  for (const std::string& name : {std::string{}, std::string(256, 'x')}) {
    const auto wish = make_wish(name, {}, everything());
    ASSERT_FALSE(wish);
    EXPECT_EQ(wish.error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(check_name(name).error().code, ErrorCode::invalid_argument);
  }
}

struct Mistake {
  const char* field;  // what the message must name
  std::function<void(AcquireOptions&)> make;
};

TEST(Wish, MistakesAreNamed) {
  const std::vector<Mistake> mistakes{
      {"ttl", [](auto& options) { options.ttl = 0s; }},
      {"ttl", [](auto& options) { options.ttl = -1s; }},
      {"ttl", [](auto& options) { options.ttl = kMinTtl - 1ns; }},
      {"ttl", [](auto& options) { options.ttl = kMaxTtl + 1ns; }},
      {"ttl", [](auto& options) { options.ttl = Duration::max(); }},
      {"ttl", [](auto& options) { options.ttl = Duration::min(); }},
      {"wait", [](auto& options) { options.wait = -1ns; }},
      {"max_hold", [](auto& options) { options.max_hold = 0s; }},
      {"max_hold", [](auto& options) { options.max_hold = -1s; }},
      {"grace", [](auto& options) { options.grace = -1ns; }},
      {"grace", [](auto& options) { options.grace = 15s + 1ns; }},
      {"health_timeout",
       [](auto& options) {
         options.health_check = [] { return true; };
         options.health_timeout = 0s;
       }},
      {"permits", [](auto& options) { options.permits = 2; }},
      {"of", [](auto& options) { options.of = 2; }},
      {"permits", [](auto& options) { options.mode = Mode::permits; }},
      {"permits",
       [](auto& options) {
         options.mode = Mode::permits;
         options.of = 3;
         options.permits = 0;
       }},
      {"permits",
       [](auto& options) {
         options.mode = Mode::permits;
         options.of = 3;
         options.permits = 4;
       }},
      {"of",
       [](auto& options) {
         options.mode = Mode::permits;
         options.of = kMaxPermits + 1;
       }},
      {"hand_over", [](auto& options) { options.hand_over = kMaxHandOver + 1; }},
  };
  for (std::size_t i = 0; i < mistakes.size(); ++i) {
    const auto wish = make_wish("x", with(mistakes[i].make), everything());
    ASSERT_FALSE(wish) << i;
    EXPECT_EQ(wish.error().code, ErrorCode::invalid_argument) << i;
    EXPECT_NE(wish.error().text.find(mistakes[i].field), std::string::npos) << wish.error();
  }
}

TEST(Wish, TheBoundsThemselvesAreAllowed) {
  for (const auto& change : std::vector<std::function<void(AcquireOptions&)>>{
           [](auto& options) { options.ttl = kMinTtl; },
           [](auto& options) { options.ttl = kMaxTtl; }, [](auto& options) { options.grace = 0s; },
           [](auto& options) { options.grace = 15s; },
           [](auto& options) { options.max_hold = 1ns; },
           [](auto& options) { options.hand_over = kMaxHandOver; },
           [](auto& options) {
             options.mode = Mode::permits;
             options.permits = kMaxPermits;
             options.of = kMaxPermits;
           }}) {
    const auto wish = make_wish("x", with(change), everything());
    EXPECT_TRUE(wish) << wish.error();
  }
}

TEST(Wish, WhatTheEngineCannotDoIsRefusedWithOneThatCan) {
  Capabilities poor = everything();
  poor.engine = "abacus";
  poor.shared = false;
  poor.permits = false;
  poor.token = TokenKind::none;
  poor.min_ttl = 1s;
  for (const auto& change : std::vector<std::function<void(AcquireOptions&)>>{
           [](auto& options) { options.mode = Mode::shared; },
           [](auto& options) { options.require_token = true; },
           [](auto& options) {
             options.mode = Mode::permits;
             options.of = 2;
           }}) {
    const auto wish = make_wish("x", with(change), poor);
    ASSERT_FALSE(wish);
    EXPECT_EQ(wish.error().code, ErrorCode::unsupported);
    EXPECT_NE(wish.error().text.find("abacus"), std::string::npos) << wish.error();
    EXPECT_NE(wish.error().text.find("sqlite"), std::string::npos) << wish.error();
  }
  EXPECT_EQ(make_wish("x", with([](auto& options) { options.ttl = 100ms; }), poor).error().code,
            ErrorCode::invalid_argument);
  EXPECT_TRUE(make_wish("x", {}, poor));
}

#ifndef HOLDFAST_WITHOUT_REDIS
TEST(Wish, AnotherStrategyOfTheSameStoreIsNamedFirst) {
  Capabilities simple = everything();
  simple.engine = "redis";
  simple.strategy = "simple";
  simple.shared = false;
  const auto wish =
      make_wish("x", with([](auto& options) { options.mode = Mode::shared; }), simple);
  ASSERT_FALSE(wish);
  EXPECT_EQ(wish.error().text,
            "mode = shared is not supported by redis with strategy=simple; strategy=fair or sqlite "
            "can do it");
}
#endif

}  // namespace
}  // namespace holdfast::client
