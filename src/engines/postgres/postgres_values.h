#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/time.h"

// PostgreSQL's binary forms: exact, and nothing to quote. Times are counted
// from 1970 on the store's clock, in whole microseconds.
namespace holdfast::engines::postgres {

using Bytes = std::optional<std::string>;  // nullopt: NULL

std::string binary(std::int64_t value);
std::string binary(std::int32_t value);
std::string binary(const base::Id& id);       // uuid
std::string binary(base::Time time);          // timestamptz
std::string binary(base::Duration duration);  // interval
inline std::string binary(std::string_view text) {
  return std::string{text};
}  // text, bytea

// An interval as text, 168:00:00.000000. Not as a number of small units: before version 15 the
// server reads that as a C int.
std::string interval_text(base::Duration duration);

// An array of the type that the elements have.
enum class Element : std::uint32_t {
  bytea = 17,
  int8 = 20,
  int4 = 23,
  text = 25,
  timestamptz = 1184,
  interval = 1186,
  uuid = 2950,
};
class ArrayOf {
 public:
  explicit ArrayOf(Element type) : type_{type} {}
  template <typename T>
  void add(const T& value) {
    add_bytes(binary(value));
  }
  template <typename T>
  void add(const std::optional<T>& value) {
    value ? add_bytes(binary(*value)) : add_null();
  }
  std::size_t size() const noexcept { return size_; }
  std::string bytes() const;

 private:
  void add_bytes(std::string_view bytes);
  void add_null();

  Element type_;
  std::size_t size_ = 0;
  bool nulls_ = false;
  std::string elements_;
};

std::int64_t to_int(std::string_view bytes);  // 2, 4 or 8 bytes
base::Id to_id(std::string_view bytes);
base::Time to_time(std::string_view bytes);
base::Duration to_duration(std::string_view bytes);

}  // namespace holdfast::engines::postgres
