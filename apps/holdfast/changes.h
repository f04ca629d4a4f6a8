#pragma once

#include <holdfast/inspect.h>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::command {

using Instant = std::chrono::steady_clock::time_point;

enum class Happening : std::uint8_t {
  acquired,
  queued,
  revoked,   // `release --force`; the holder has not let go yet
  released,  // or lost by force; the store does not tell which
  expired,   // its lease ran out
  left,      // gave up waiting
};
std::string_view to_string(Happening happening) noexcept;

struct Change {
  Happening what = Happening::acquired;
  std::string name;
  Party party;
  Mode mode = Mode::exclusive;
  std::uint32_t permits = 1;
  std::optional<std::uint64_t> token;  // of holders
  std::size_t queue = 0;               // how many wait now
};

// Turns looks at the store into what happened between them. What begins and
// ends between two looks is not seen.
class Changes {
 public:
  // The first look reports all there is as acquired or queued.
  std::vector<Change> look(const std::vector<LockInfo>& locks, Instant now);

 private:
  struct Seen {
    std::vector<HolderInfo> holders;
    std::vector<WaiterInfo> queue;
    Instant at;
  };
  struct Lock {
    std::string name;
    Seen seen;
  };
  static void compare(const std::string& name, const Seen& before, const Seen& after,
                      std::vector<Change>& changes);

  std::vector<Lock> before_;  // by name
};

}  // namespace holdfast::command
