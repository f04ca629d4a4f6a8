#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>

namespace holdfast::base {

// 128 bits from the kernel's random source: unguessable, so that knowing the
// id is the right to renew or release what it stands for.
struct Id {
  std::array<std::uint8_t, 16> bytes{};

  static Id random();
  std::string hex() const;
  bool is_zero() const noexcept { return *this == Id{}; }
  friend auto operator<=>(const Id&, const Id&) = default;
};

// This many random bits at once, cheaply; for jitter as well.
std::uint64_t random_u64();

}  // namespace holdfast::base

template <>
struct std::hash<holdfast::base::Id> {
  std::size_t operator()(const holdfast::base::Id& id) const noexcept {
    std::size_t value = 0;
    std::memcpy(&value, id.bytes.data(), sizeof value);
    return value;
  }
};
