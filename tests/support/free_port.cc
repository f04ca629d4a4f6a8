#include "support/free_port.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <stdexcept>
#include <string>

#include "base/file_descriptor.h"

namespace holdfast::test {
namespace {

// Below what the kernel gives to those who ask for any port or connect.
constexpr int kFirst = 20'000;
constexpr int kLast = 32'000;

bool can_bind(std::uint16_t port) {
  const base::FileDescriptor probe{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return bind(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

// By a name without a file, as tools/server.py does; kept, on purpose, for the
// process's life.
bool reserve(std::uint16_t port) {
  const int mark = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const std::string name = "holdfast-port-" + std::to_string(port);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::ranges::copy(name, address.sun_path + 1);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const bool ours = bind(mark, reinterpret_cast<const sockaddr*>(&address), size) == 0;
  if (!ours) {
    close(mark);
  }
  return ours;
}

}  // namespace

std::uint16_t free_port() {
  std::random_device random;
  std::uniform_int_distribution<int> any{kFirst, kLast};
  for (int tries = 0; tries < 1000; ++tries) {
    const auto port = static_cast<std::uint16_t>(any(random));
    if (reserve(port) && can_bind(port)) {
      return port;
    }
  }
  throw std::runtime_error{"no port is free"};
}

}  // namespace holdfast::test
