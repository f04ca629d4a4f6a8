#pragma once

#include <holdfast/options.h>
#include <cstdint>

namespace holdfast::command::torture {

// splitmix64: a seed gives the same throws on every machine. (What the threads
// make of them still depends on how they are scheduled.)
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_{seed} {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
  }
  std::uint64_t below(std::uint64_t bound) { return bound == 0 ? 0 : next() % bound; }
  bool percent(std::uint64_t chance) { return below(100) < chance; }
  Duration between(Duration low, Duration high) {
    return low + Duration{static_cast<std::int64_t>(
                     below(static_cast<std::uint64_t>((high - low).count()) + 1))};
  }

 private:
  std::uint64_t state_;
};

}  // namespace holdfast::command::torture
