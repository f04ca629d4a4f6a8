#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <string_view>

namespace holdfast::engines::relational {

// Names that have a row, most likely: a wrong guess costs a trip.
class KnownNames {
 public:
  void add(std::string_view name) { hashes_.at(place_of(name)) = hash_of(name); }
  bool contains(std::string_view name) const { return hashes_.at(place_of(name)) == hash_of(name); }

 private:
  static std::size_t hash_of(std::string_view name) { return std::hash<std::string_view>{}(name); }
  std::size_t place_of(std::string_view name) const { return hash_of(name) % hashes_.size(); }

  std::array<std::size_t, 16384> hashes_{};
};

}  // namespace holdfast::engines::relational
