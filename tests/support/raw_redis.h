#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "engines/redis/redis_connector.h"

namespace holdfast::test {

// Talks to a Redis as any other program would.
class RawRedis {
 public:
  explicit RawRedis(const std::string& port, const std::string& password = "");

  // Throws if it cannot be asked, or answers with an error.
  engines::RespValue ask(std::initializer_list<std::string_view> words);

 private:
  engines::RedisConnector connector_;
};

}  // namespace holdfast::test
