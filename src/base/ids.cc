#include "base/ids.h"

#include <sys/random.h>

#include <cerrno>
#include <cstdlib>

#include "base/fork.h"

namespace holdfast::base {
namespace {

// A system call for each id would cost more than the rest of an uncontended
// acquire in memory, so each thread keeps a supply; a forked child must not
// draw the same numbers as its parent.
struct Supply {
  std::array<std::uint8_t, 512> bytes{};
  std::size_t used = sizeof bytes;
  std::uint64_t generation = 0;

  void take(std::uint8_t* out, std::size_t count) {
    if (generation != fork_generation() || used + count > bytes.size()) {
      refill();
    }
    std::memcpy(out, bytes.data() + used, count);
    used += count;
  }

  void refill() {
    std::size_t filled = 0;
    while (filled < bytes.size()) {
      const ssize_t got = getrandom(bytes.data() + filled, bytes.size() - filled, 0);
      if (got > 0) {
        filled += static_cast<std::size_t>(got);
      } else if (errno != EINTR) {
        std::abort();  // without random ids there are no owners: nothing sensible is left to do
      }
    }
    used = 0;
    generation = fork_generation();
  }
};

thread_local Supply supply;

}  // namespace

Id Id::random() {
  Id id;
  supply.take(id.bytes.data(), id.bytes.size());
  return id;
}

std::string Id::hex() const {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const std::uint8_t byte : bytes) {
    text.push_back(kDigits[byte >> 4U]);
    text.push_back(kDigits[byte & 15U]);
  }
  return text;
}

std::uint64_t random_u64() {
  std::array<std::uint8_t, 8> bytes{};
  supply.take(bytes.data(), bytes.size());
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

}  // namespace holdfast::base
