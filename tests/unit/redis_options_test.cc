#include "engines/redis/redis_options.h"

#include <gtest/gtest.h>

#include <string>

namespace holdfast::engines {
namespace {

Result<RedisOptions> from(const std::string& text) {
  return engine::Url::parse(text).and_then(
      [](const engine::Url& url) { return RedisOptions::from(url); });
}

TEST(RedisOptions, AServerIsAHostOrASocket) {
  const auto tcp = from("redis://u:p%40w@localhost:7000/3?timeout=2s&wait_replicas=1");
  ASSERT_TRUE(tcp) << tcp.error();
  EXPECT_EQ(tcp->server.host, "localhost");
  EXPECT_EQ(tcp->server.port, 7000);
  EXPECT_EQ(tcp->access.database, 3U);
  EXPECT_EQ(tcp->access.user, "u");
  EXPECT_EQ(tcp->access.password, "p@w");
  EXPECT_EQ(tcp->access.timeout, std::chrono::seconds{2});
  EXPECT_EQ(tcp->wait_replicas, 1U);
  EXPECT_FALSE(tcp->access.tls);
  const auto socket = from("redis:///run/redis.sock?database=2");
  ASSERT_TRUE(socket) << socket.error();
  EXPECT_EQ(socket->server.socket, "/run/redis.sock");
  EXPECT_EQ(socket->access.database, 2U);
  EXPECT_EQ(from("redis://localhost")->server.port, 6379);
}

TEST(RedisOptions, SentinelsNameTheMaster) {
  const auto options = from("redis+sentinel://localhost:1,127.0.0.1/mymaster/4");
  ASSERT_TRUE(options) << options.error();
  ASSERT_EQ(options->sentinels.size(), 2U);
  EXPECT_EQ(options->sentinels[1].port, 26379);
  EXPECT_EQ(options->master, "mymaster");
  EXPECT_EQ(options->access.database, 4U);
  EXPECT_FALSE(from("redis+sentinel://localhost"));
}

TEST(RedisOptions, AnotherMachineNeedsTlsOrALoudWord) {
  EXPECT_FALSE(from("redis://redis.example"));
  EXPECT_TRUE(from("redis://redis.example?insecure=true"));
  const auto secure = from("rediss://redis.example");
  ASSERT_TRUE(secure) << secure.error();
  EXPECT_TRUE(secure->access.tls);
  EXPECT_FALSE(secure->access.insecure);
}

TEST(RedisOptions, MistakesAreRefusedWithoutRepeatingAPassword) {
  for (const char* text :
       {"redis://a:s3cret@localhost/x", "redis://:s3cret@localhost,other/0",
        "redis://:s3cret@localhost/0?strategy=quick", "redis://:s3cret@localhost/0?colour=red",
        "redis://:s3cret@localhost/0?timeout=0s", "redis://:s3cret@localhost/0?prefix={a}",
        "redis://:s3cret@localhost/99999999"}) {
    const auto refused = from(text);
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(refused.error().text.find("s3cret"), std::string::npos) << refused.error().text;
  }
}

TEST(RedisOptions, NamesAndKeysBelongTogether) {
  const auto options = *from("redis://localhost");
  EXPECT_EQ(options.key("shop/1"), "holdfast:{shop/1}");
  for (const std::string& name :
       {std::string{"plain"}, std::string{"{a}"}, std::string{"%7B"}, std::string{"\0\r\n\xff", 4},
        std::string{"}"}, std::string{"a}b{c%"}}) {
    std::string back;
    ASSERT_TRUE(options.name_of(options.key(name), back));
    EXPECT_EQ(back, name);
  }
  std::string name;
  EXPECT_FALSE(options.name_of("other:{x}", name));
  EXPECT_FALSE(options.name_of("holdfast:x", name));
  EXPECT_FALSE(options.name_of("holdfast:{%7}", name));
  EXPECT_EQ(options.pattern("a*{"), "holdfast:{a\\*%7B*");
}

}  // namespace
}  // namespace holdfast::engines
