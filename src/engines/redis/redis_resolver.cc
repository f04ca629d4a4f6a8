#include "engines/redis/redis_resolver.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "base/fork.h"

namespace holdfast::engines {

using Addresses = Result<std::vector<SocketAddress>>;

struct RedisResolver::Answer {
  std::mutex mutex;
  std::optional<Addresses> addresses;
};

namespace {

Addresses unix_socket(const std::string& path) {
  sockaddr_un name{};
  if (path.size() >= sizeof name.sun_path) {
    return fail(ErrorCode::invalid_argument, "the path of the socket is too long");
  }
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, path.data(), path.size());
  SocketAddress address;
  std::memcpy(&address.bytes, &name, sizeof name);
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + 1);
  return std::vector{address};
}

Addresses look_up(const RedisAddress& address, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* list = nullptr;
  const base::ForksWait until_found;
  const int error =
      getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &list);
  if (error != 0) {
    return fail(ErrorCode::unavailable,
                "cannot find the host " + address.host + ": " + gai_strerror(error), error);
  }
  std::vector<SocketAddress> found;
  for (const addrinfo* each = list; each != nullptr; each = each->ai_next) {
    SocketAddress one;
    std::memcpy(&one.bytes, each->ai_addr,
                std::min<std::size_t>(each->ai_addrlen, sizeof one.bytes));
    one.size = each->ai_addrlen;
    found.push_back(one);
  }
  freeaddrinfo(list);
  return found;
}

bool is_name(const std::string& host) {
  in6_addr bytes{};
  return inet_pton(AF_INET, host.c_str(), &bytes) != 1 &&
         inet_pton(AF_INET6, host.c_str(), &bytes) != 1;
}

}  // namespace

void RedisResolver::begin(const RedisAddress& address) {
  answer_ = std::make_shared<Answer>();
  if (!address.socket.empty()) {
    answer_->addresses = unix_socket(address.socket);
  } else if (!is_name(address.host)) {
    answer_->addresses = look_up(address, AI_NUMERICHOST);
  } else {
    std::thread{[answer = answer_, address] {
      auto found = look_up(address, 0);
      const std::lock_guard lock{answer->mutex};
      answer->addresses = std::move(found);
    }}.detach();
  }
}

std::optional<Addresses> RedisResolver::found() {
  const std::lock_guard lock{answer_->mutex};
  return answer_->addresses;
}

}  // namespace holdfast::engines
