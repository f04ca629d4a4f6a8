#pragma once

#include <holdfast/error.h>
#include <holdfast/options.h>
#include <chrono>
#include <string>
#include <vector>

#include "engine/url.h"
#include "engines/redis/redis_options.h"

namespace holdfast::engines {

struct RedlockOptions {
  std::vector<RedisAddress> nodes;
  RedisAccess access;  // its timeout: how long a majority is waited for
  std::string prefix;
  // How long one node is waited for; less where the ttl is short.
  Duration node_timeout = std::chrono::milliseconds{200};
  // No lease is longer, so that a node which forgot some is safe again after it.
  Duration max_ttl = std::chrono::seconds{60};
  // The set is brand-new: nodes count at once, though they may have forgotten.
  bool first_start = false;

  static Result<RedlockOptions> from(const engine::Url& url);

  RedisOptions node(std::size_t which) const;  // as one Redis
  static Result<void> check_name(std::string_view name);
  std::string key(std::string_view name) const { return prefix + std::string{name}; }
};

}  // namespace holdfast::engines
