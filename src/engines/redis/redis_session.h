#pragma once

#include <holdfast/error.h>
#include <memory>
#include <string>
#include <string_view>

#include "engines/redis/redis_options.h"

// What we need of OpenSSL. TLS is a filter of bytes: it never touches a socket,
// so that ours stays non-blocking and a broken one raises no signal.
namespace holdfast::engines {

// As Redis names scripts.
std::string sha1_in_hex(std::string_view text);

// What all connections of an engine share. Thread-safe.
class RedisTls {
 public:
  static Result<std::shared_ptr<RedisTls>> make(const RedisAccess& access);
  virtual ~RedisTls() = default;
  RedisTls() = default;
  RedisTls(const RedisTls&) = delete;
  RedisTls& operator=(const RedisTls&) = delete;

  // One connection's.
  class Session {
   public:
    virtual ~Session() = default;
    Session() = default;
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    // Appends to `out` what must go to the peer, and to `plain` what it said.
    virtual Result<void> receive(std::string_view from_peer, std::string& plain,
                                 std::string& out) = 0;
    // Takes `plain` away as soon as it can be sent.
    virtual Result<void> send(std::string& plain, std::string& out) = 0;
  };
  virtual Result<std::unique_ptr<Session>> connect(const std::string& host) = 0;
};

}  // namespace holdfast::engines
