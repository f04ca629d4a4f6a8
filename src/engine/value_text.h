#pragma once

#include <holdfast/error.h>
#include <optional>
#include <string>
#include <string_view>

#include "core/value_record.h"

namespace holdfast::engine {

// A value with all that belongs to it as one text, for stores that keep just
// bytes a name: a line for us, which people can read, then the value's bytes.
struct ValueText {
  base::Id writer;
  core::Micros written = 0;
  core::Duration hold_off{};         // from when it was written
  std::optional<std::string> bytes;  // empty: erased

  std::string text() const;
  static std::optional<ValueText> parse(std::string_view text);  // nullopt: not ours
};

// For a name that somebody uses for something else.
Error not_a_value();

}  // namespace holdfast::engine
