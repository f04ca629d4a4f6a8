#pragma once

#include <holdfast/error.h>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_descriptor.h"
#include "base/time.h"
#include "engine/driver.h"
#include "engines/redis/redis_options.h"
#include "engines/redis/redis_resolver.h"
#include "engines/redis/redis_session.h"
#include "engines/redis/resp.h"

namespace holdfast::engines {

// What the server said of itself when we connected.
struct RedisGreeting {
  std::string version;
  std::string role;  // "master" or "replica"; empty if it is too old to say
};

// One connection to one Redis server, never blocking. It connects, logs in and
// then carries commands and replies. Not thread-safe.
class RedisLink {
 public:
  enum class State : std::uint8_t { closed, connecting, greeting, ready };

  // `tls` only where access.tls.
  RedisLink(const RedisAccess& access, std::shared_ptr<RedisTls> tls);

  // Begins to connect anew. `last_words` are sent after the log-in and must
  // have `last_replies` replies that are no errors.
  void open(const RedisAddress& address, std::string last_words = "", std::size_t last_replies = 0);
  void close();

  State state() const noexcept { return state_; }
  // Sockets so far: each address that was tried had its own.
  std::uint64_t sockets() const noexcept { return sockets_; }
  const RedisAddress& address() const noexcept { return address_; }
  const RedisGreeting& greeting() const noexcept { return greeting_; }

  // Only when ready. Goes out with the next advance().
  std::string& out() noexcept { return plain_out_; }

  // Does what can be done now; `ready` as poll(2) found it, 0 if it was not
  // asked. An error closes the link.
  Result<void> advance(short ready);
  std::optional<RespValue> take_reply() { return reader_.next(); }

  // What advance() needs to go on.
  engine::Conversation::Wait wait() const;

  // Did the server hang up while nobody talked to it?
  bool has_ended() const;

 private:
  Result<void> connect_next();
  Result<void> finish_connecting(short ready);
  void greet();
  Result<void> hear_greeting();
  Result<void> check_greeting(const RespValue& reply);
  Result<void> flush();
  Result<void> receive();
  tl::unexpected<Error> lost(const std::string& what, int error) const;

  const RedisAccess access_;
  const std::shared_ptr<RedisTls> tls_;
  RedisAddress address_;
  std::string last_words_;
  std::size_t last_replies_ = 0;

  State state_ = State::closed;
  RedisResolver resolver_;
  bool resolving_ = false;
  std::vector<SocketAddress> candidates_;  // to try, the first last
  base::FileDescriptor socket_;
  std::uint64_t sockets_ = 0;
  std::unique_ptr<RedisTls::Session> session_;
  std::string plain_out_;
  std::string wire_out_;
  RespReader reader_;
  std::vector<std::string> asked_;  // what the greeting still waits for
  std::size_t heard_ = 0;
  RedisGreeting greeting_;
};

}  // namespace holdfast::engines
