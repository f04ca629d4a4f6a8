#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "base/time.h"

namespace holdfast::sim {

// Numbers that are equal on every machine (those of <random>'s distributions
// are not), so that a seed means the same run everywhere.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_{seed} {}

  // A generator of its own, so that one part of the world drawing more numbers
  // does not change the luck of the others.
  Random fork() { return Random{next()}; }

  std::uint64_t next() {  // splitmix64
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
  }

  std::uint64_t below(std::uint64_t bound) { return bound == 0 ? 0 : next() % bound; }
  // Both ends included.
  int between(int low, int high) {
    return low + static_cast<int>(below(static_cast<std::uint64_t>(high - low) + 1));
  }
  base::Duration between(base::Duration low, base::Duration high) {
    const auto span = high > low ? static_cast<std::uint64_t>((high - low).count()) : 0;
    return low + base::Duration{static_cast<base::Duration::rep>(below(span + 1))};
  }
  // True in so many of a thousand cases.
  bool permille(int chance) { return below(1000) < static_cast<std::uint64_t>(chance); }
  bool coin() { return (next() & 1U) != 0; }

  template <typename T>
  T pick(std::initializer_list<T> choices) {
    return choices.begin()[below(choices.size())];
  }

 private:
  std::uint64_t state_;
};

}  // namespace holdfast::sim
