#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "base/ids.h"
#include "base/time.h"
#include "core/lock_record.h"

// How packets of statements are put together.
namespace holdfast::engines {

// x'6162': bytes as a literal. Nothing of a name or a label ever becomes SQL.
void append_hex(std::string& into, std::string_view bytes);
void append_hex(std::string& into, const base::Id& id);

inline constexpr const char* kEpoch = "'1970-01-01 00:00:00.000000'";

inline void append_text(std::string& into, std::string_view text) {
  into += "_utf8mb4 ";
  append_hex(into, text);
}

inline std::string micros(base::Duration time) {
  return std::to_string(std::chrono::floor<std::chrono::microseconds>(time).count());
}

// A point in time, as a literal.
inline std::string moment(base::Time time) {
  return std::string{"("} + kEpoch + " + INTERVAL " + micros(time.time_since_epoch()) +
         " MICROSECOND)";
}

// Tokens past this are for the lock record to refuse.
inline std::string token_bound() {
  return std::to_string(core::kMaxToken - 2 * core::kTokenStride);
}

template <typename Items, typename Append>
void append_list(std::string& into, const Items& items, Append append) {
  bool first = true;
  for (const auto& item : items) {
    if (!std::exchange(first, false)) {
      into += ',';
    }
    append(item);
  }
}

// Another statement follows.
inline void begin(std::string& packet) {
  if (!packet.empty()) {
    packet += ';';
  }
}

}  // namespace holdfast::engines
