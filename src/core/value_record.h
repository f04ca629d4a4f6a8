#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/time.h"

// Values that are changed by comparing their version: what can be asked of one
// and what can be told. Engines either run ValueRecord or do the same steps in
// the store's language.
namespace holdfast::core {

using base::Duration;

// The store's time of day, in microseconds since 1970.
using Micros = std::uint64_t;

struct ValueWrite {
  std::string_view name;
  std::optional<std::uint64_t> expected;  // its version; empty: there must be none
  std::optional<std::string_view> bytes;  // empty: erase
  // Random, one a write, and stored with it: a write that is sent again because
  // the answer got lost finds itself here.
  base::Id writer;
  // For this long, by the store's clock, readers find a hold-off beside the value.
  Duration hold_off{};
};

struct ValueOutcome {
  bool applied = false;       // now, or when it was sent before
  std::uint64_t version = 0;  // of what is there now; 0: nothing
  Micros written = 0;         // applied: when
};

// What a reader gets.
struct Value {
  std::optional<std::string> bytes;  // empty: erased, and not forgotten yet
  std::uint64_t version = 0;
  Micros written = 0;
  Duration hold_off{};  // what is left of it
};

struct NamedValue {
  std::string name;
  Value value;
};

// How long an erased value is remembered, so that a lost answer to the erasure
// can be found out and versions go on where they were. Later ones start at the
// store's clock, which has long passed them.
inline constexpr Duration kEraseMemory = std::chrono::hours{1};

// One value, as a pure machine.
struct ValueRecord {
  std::optional<std::string> bytes;
  std::uint64_t version = 0;
  base::Id writer;
  Micros written = 0;
  Micros hold_off_until = 0;

  Value seen(Micros now) const;
  bool forgettable(Micros now) const noexcept;
};

// Carries out the write on what is there, if anything is. New ones start at
// `now`, or at `floor` if that is higher.
ValueOutcome apply(std::optional<ValueRecord>& record, const ValueWrite& write, Micros now,
                   std::uint64_t floor = 0);

}  // namespace holdfast::core
