#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <string_view>

namespace holdfast::engines::relational {

// Names of which something is true, most likely: a wrong guess costs a trip. Of names that share a
// place the four that were used last are kept: with fewer, names in constant use drive each other
// out.
template <std::size_t kPlaces>
class NamesOfLate {
 public:
  void add(std::string_view name) {
    const std::size_t hash = hash_of(name);
    Place& place = places_.at(hash % places_.size());
    const auto found = std::find(place.begin(), place.end() - 1, hash);
    std::copy_backward(place.begin(), found, found + 1);
    place.front() = hash;
  }
  bool contains(std::string_view name) const {
    const std::size_t hash = hash_of(name);
    const Place& place = places_.at(hash % places_.size());
    return std::find(place.begin(), place.end(), hash) != place.end();
  }

 private:
  using Place = std::array<std::size_t, 4>;

  // 0 is nobody's.
  static std::size_t hash_of(std::string_view name) {
    return std::hash<std::string_view>{}(name) | 1U << 31U;
  }

  std::array<Place, kPlaces> places_{};
};

using KnownNames = NamesOfLate<4096>;  // they have a row

}  // namespace holdfast::engines::relational
