#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/time.h"

namespace holdfast::engine {

// How long ago things began, by the wall clock, for one answer about many: as of
// one moment, however long it takes to ask for them. Otherwise whoever is asked
// about last would look older by that.
class Ages {
 public:
  explicit Ages(std::chrono::milliseconds now = wall_now()) : now_{now} {}

  // What began later than that moment, or by a clock that is ahead, has no age yet.
  base::Duration since(std::int64_t began_ms) const {
    return std::max(now_ - std::chrono::milliseconds{began_ms}, std::chrono::milliseconds{0});
  }

 private:
  static std::chrono::milliseconds wall_now() {
    return std::chrono::milliseconds{base::wall_microseconds() / 1000};
  }
  std::chrono::milliseconds now_;
};

}  // namespace holdfast::engine
