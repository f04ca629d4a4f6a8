#include "support/raw_redis.h"

#include <stdexcept>

#include "support/eventually.h"

namespace holdfast::test {
namespace {

engines::RedisOptions options(const std::string& port, const std::string& password) {
  engines::RedisOptions made;
  made.server = {
      .host = "127.0.0.1", .port = static_cast<std::uint16_t>(std::stoul(port)), .socket = ""};
  made.access.password = password;
  return made;
}

}  // namespace

RawRedis::RawRedis(const std::string& port, const std::string& password)
    : connector_{options(port, password), nullptr} {}

engines::RespValue RawRedis::ask(std::initializer_list<std::string_view> words) {
  std::string command;
  engines::append_resp_head(command, words.size());
  for (const std::string_view word : words) {
    engines::append_resp_word(command, word);
  }
  const auto reply = connector_.ask_until(command, base::BootClock::now() + kPatience);
  if (!reply) {
    throw std::runtime_error{"Redis: " + reply.error().text};
  }
  return *reply;
}

}  // namespace holdfast::test
