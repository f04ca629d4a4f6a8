#pragma once

#include <holdfast/error.h>
#include <holdfast/options.h>
#include <string>
#include <string_view>

namespace holdfast::command {

// "500ms", "30s", "2m", "1h30m", "1.5h", "7d"; plain "0" is the only number
// that needs no unit. invalid_argument; the text says what to write instead.
Result<Duration> parse_duration(std::string_view text);

// The way parse_duration() reads it, exactly: "1h30m", "20ms".
std::string spell_duration(Duration duration);

// For people, two units at most and never more exact than they care for:
// "3 s", "2 min", "1 h 5 min".
std::string human_duration(Duration duration);

}  // namespace holdfast::command
