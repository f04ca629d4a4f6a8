#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <holdfast/redis_fence.h>

#include <string>

#include "base/ids.h"
#include "support/needs.h"
#include "support/raw_redis.h"
#include "support/server.h"

namespace holdfast {
namespace {

using namespace test;

TEST(RedisFence, ALateWriteIsRefusedWhateverTheCommand) {
  HOLDFAST_SKIP_IF_MISSING(missing_program("redis-server"));
  RawRedis redis{shared_server_port("redis")};
  const std::string key = "{fence-" + base::Id::random().hex() + "}";
  const std::string fence = key + ":fence";
  const auto write = [&](std::string_view token, std::string_view value) {
    return redis.ask({"EVAL", kRedisFence, "2", key, fence, token, "SET", value});
  };
  EXPECT_EQ(write("9007199254740000", "first").text, "OK");
  EXPECT_EQ(write("9007199254740000", "again").text, "OK") << "the same holder";
  EXPECT_EQ(redis.ask({"EVAL", kRedisFence, "2", key, fence, "9007199254740064"}).text, "OK");
  EXPECT_EQ(redis.ask({"GET", key}).text, "again") << "only the fence was raised";
  EXPECT_THROW(write("9007199254740063", "late"), std::runtime_error);
  EXPECT_EQ(redis.ask({"GET", key}).text, "again");
  EXPECT_EQ(
      redis.ask({"EVAL", kRedisFence, "2", key, fence, "9007199254740064", "APPEND", "!"}).integer,
      6);
  redis.ask({"DEL", key, fence});
}

}  // namespace
}  // namespace holdfast
