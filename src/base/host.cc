#include "base/host.h"

#include <unistd.h>

#include <array>
#include <cerrno>

namespace holdfast::base {

std::string program_name() {
  return program_invocation_short_name;
}

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) {
    return "unknown";
  }
  return name.data();
}

}  // namespace holdfast::base
