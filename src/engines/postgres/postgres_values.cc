#include "engines/postgres/postgres_values.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace holdfast::engines::postgres {
namespace {

using std::chrono::floor;
using std::chrono::microseconds;

// The server counts from 2000-01-01.
constexpr std::int64_t kEpochDifference = 946'684'800'000'000;
constexpr std::int64_t kDay = 86'400'000'000;

void append(std::string& out, std::uint64_t value, unsigned width) {
  for (unsigned i = width; i > 0; --i) {
    out.push_back(static_cast<char>(static_cast<std::uint8_t>(value >> (8 * (i - 1)))));
  }
}

std::string big_endian(std::uint64_t value, unsigned width) {
  std::string out;
  append(out, value, width);
  return out;
}

// A row that people have changed may say 'infinity' or worse: what a Duration
// can hold is long enough.
microseconds within_reach(std::int64_t value) {
  constexpr std::int64_t kLongest = 8'000'000'000'000'000;
  return microseconds{std::clamp(value, -kLongest, kLongest)};
}

}  // namespace

std::string binary(std::int64_t value) {
  return big_endian(static_cast<std::uint64_t>(value), 8);
}

std::string binary(std::int32_t value) {
  return big_endian(static_cast<std::uint32_t>(value), 4);
}

std::string binary(const base::Id& id) {
  return {reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size()};
}

std::string binary(base::Time time) {
  return binary(floor<microseconds>(time.time_since_epoch()).count() - kEpochDifference);
}

std::string binary(base::Duration duration) {
  std::string out = binary(floor<microseconds>(duration).count());
  append(out, 0, 8);  // days and months
  return out;
}

std::string interval_text(base::Duration duration) {
  const std::chrono::hh_mm_ss clock{floor<microseconds>(duration)};
  std::array<char, 64> text{};
  std::snprintf(
      text.data(), text.size(), "%02ld:%02ld:%02ld.%06ld", static_cast<long>(clock.hours().count()),
      static_cast<long>(clock.minutes().count()), static_cast<long>(clock.seconds().count()),
      static_cast<long>(clock.subseconds().count()));
  return text.data();
}

std::string ArrayOf::bytes() const {
  std::string out;
  append(out, size_ == 0 ? 0 : 1, 4);  // dimensions
  append(out, nulls_ ? 1 : 0, 4);
  append(out, static_cast<std::uint32_t>(type_), 4);
  if (size_ > 0) {
    append(out, size_, 4);
    append(out, 1, 4);  // the first index
  }
  return out + elements_;
}

void ArrayOf::add_bytes(std::string_view bytes) {
  append(elements_, bytes.size(), 4);
  elements_.append(bytes);
  ++size_;
}

void ArrayOf::add_null() {
  append(elements_, 0xFFFFFFFF, 4);
  nulls_ = true;
  ++size_;
}

std::int64_t to_int(std::string_view bytes) {
  std::uint64_t value = 0;
  for (const char c : bytes) {
    value = value << 8U | static_cast<std::uint8_t>(c);
  }
  if (bytes.size() == 4) {
    return static_cast<std::int32_t>(value);
  }
  return bytes.size() == 2 ? static_cast<std::int16_t>(value) : static_cast<std::int64_t>(value);
}

base::Id to_id(std::string_view bytes) {
  base::Id id;
  std::copy_n(bytes.begin(), std::min(bytes.size(), id.bytes.size()), id.bytes.begin());
  return id;
}

base::Time to_time(std::string_view bytes) {
  return base::Time{within_reach(to_int(bytes)) + microseconds{kEpochDifference}};
}

base::Duration to_duration(std::string_view bytes) {
  const auto time = to_int(bytes.substr(0, 8));
  // At most 2^31 days: far beyond what a lease can be, but no overflow.
  const auto days = std::clamp<std::int64_t>(to_int(bytes.substr(8, 4)), -100'000, 100'000);
  return within_reach(within_reach(time).count() + days * kDay);
}

}  // namespace holdfast::engines::postgres
