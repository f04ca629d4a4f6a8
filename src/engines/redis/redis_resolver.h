#pragma once

#include <holdfast/error.h>
#include <sys/socket.h>

#include <memory>
#include <optional>
#include <vector>

#include "engines/redis/redis_options.h"

namespace holdfast::engines {

struct SocketAddress {
  sockaddr_storage bytes{};
  socklen_t size = 0;
};

// Looks up where a server is, without blocking: a name server that is slow
// must not delay those who have leases to look after.
class RedisResolver {
 public:
  // Addresses and socket paths are found at once; names by a thread that ends
  // with the look-up.
  void begin(const RedisAddress& address);

  // nullopt: not known yet. In the order in which to try.
  std::optional<Result<std::vector<SocketAddress>>> found();

 private:
  struct Answer;
  std::shared_ptr<Answer> answer_;
};

}  // namespace holdfast::engines
