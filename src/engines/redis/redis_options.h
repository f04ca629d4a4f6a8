#pragma once

#include <holdfast/error.h>
#include <holdfast/options.h>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/url.h"

namespace holdfast::engines {

// Where a server listens: a Unix socket, or a host and a port.
struct RedisAddress {
  std::string host;
  std::uint16_t port = 0;
  std::string socket;

  std::string text() const;  // for messages
  friend bool operator==(const RedisAddress&, const RedisAddress&) = default;
};

enum class RedisStrategyKind : std::uint8_t { fair, simple, redisson };

// What any connection to a Redis needs to know.
struct RedisAccess {
  bool tls = false;
  bool insecure = false;  // no TLS, or no verification, though not on loopback
  std::string ca_file;    // empty: the system's
  std::string user;
  std::string password;
  unsigned database = 0;
  Duration timeout = std::chrono::seconds{5};
};

struct RedisOptions {
  RedisAddress server;
  std::vector<RedisAddress> sentinels;  // instead of the server
  std::string master;                   // as the sentinels call it
  RedisAccess access;
  RedisStrategyKind strategy = RedisStrategyKind::fair;
  std::string prefix;          // of every key and channel
  unsigned wait_replicas = 0;  // that must have a grant before it is reported

  // redis:, rediss: and redis+sentinel:.
  static Result<RedisOptions> from(const engine::Url& url);

  std::string key(std::string_view name) const;
  // The name that belongs to a key; false if it is not one of ours.
  bool name_of(std::string_view key, std::string& name) const;
  // Which keys can belong to names with that prefix, as KEYS and SCAN write it.
  std::string pattern(std::string_view name_prefix) const;
};

}  // namespace holdfast::engines
