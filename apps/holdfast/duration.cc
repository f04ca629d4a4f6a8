#include "duration.h"

#include <array>
#include <cctype>
#include <cmath>
#include <optional>

namespace holdfast::command {
namespace {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

struct Unit {
  std::string_view text;    // as written in options
  std::string_view spoken;  // as shown to people
  Duration length;
};

// Longest first.
constexpr std::array<Unit, 7> kUnits{{
    {"d", "d", days{1}},
    {"h", "h", hours{1}},
    {"m", "min", minutes{1}},
    {"s", "s", seconds{1}},
    {"ms", "ms", milliseconds{1}},
    {"us", "µs", std::chrono::microseconds{1}},
    {"ns", "ns", Duration{1}},
}};

constexpr Duration kLongest = days{36'500};

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

std::optional<Duration> unit_length(std::string_view text) {
  for (const Unit& unit : kUnits) {
    if (unit.text == text) {
      return unit.length;
    }
  }
  return std::nullopt;
}

tl::unexpected<Error> bad(std::string text) {
  return fail(ErrorCode::invalid_argument, std::move(text));
}

// Cuts "90s" or "1.5h" from the front of `rest`.
Result<Duration> take_part(std::string_view& rest) {
  std::size_t digits = 0;
  while (digits < rest.size() && (is_digit(rest[digits]) || rest[digits] == '.')) {
    ++digits;
  }
  const std::string number{rest.substr(0, digits)};
  rest.remove_prefix(digits);
  std::size_t letters = 0;
  while (letters < rest.size() && !is_digit(rest[letters]) && rest[letters] != '.') {
    ++letters;
  }
  const std::string unit{rest.substr(0, letters)};
  rest.remove_prefix(letters);

  if (number.empty() || number.front() == '.' || number.back() == '.' ||
      number.find('.') != number.rfind('.')) {
    return bad("a duration is a number and a unit, e.g. 500ms, 30s, 1h30m");
  }
  if (unit.empty()) {
    return bad("a duration needs a unit, e.g. " + number + "s");
  }
  const auto length = unit_length(unit);
  if (!length) {
    return bad("unknown unit '" + unit + "'; write ms, s, m, h or d, e.g. " + number + "s");
  }
  // A double is exact far beyond the digits that anybody writes.
  const double total = std::stod(number) * static_cast<double>(length->count());
  if (!(total <= static_cast<double>(kLongest.count()))) {
    return bad("too long; at most " + spell_duration(kLongest));
  }
  return Duration{std::llround(total)};
}

}  // namespace

Result<Duration> parse_duration(std::string_view text) {
  if (text.empty()) {
    return bad("the duration is missing, e.g. 30s");
  }
  if (text == "0") {
    return Duration::zero();
  }
  if (text.front() == '-') {
    return bad("a duration cannot be negative; write e.g. 30s");
  }
  Duration total{};
  while (!text.empty()) {
    auto part = take_part(text);
    if (!part) {
      return part;
    }
    total += *part;
    if (total > kLongest) {
      return bad("too long; at most " + spell_duration(kLongest));
    }
  }
  return total;
}

std::string spell_duration(Duration duration) {
  if (duration == Duration::zero()) {
    return "0";
  }
  std::string text;
  for (const Unit& unit : kUnits) {
    if (const auto count = duration / unit.length; count != 0) {
      text += std::to_string(count) + std::string{unit.text};
      duration -= count * unit.length;
    }
  }
  return text;
}

std::string human_duration(Duration duration) {
  if (duration < milliseconds{1}) {
    return "0 s";
  }
  if (duration < seconds{1}) {
    return std::to_string(duration / milliseconds{1}) + " ms";
  }
  for (std::size_t i = 0; i < kUnits.size(); ++i) {
    const Unit& unit = kUnits.at(i);
    const auto count = duration / unit.length;
    if (count == 0) {
      continue;
    }
    std::string text = std::to_string(count) + " " + std::string{unit.spoken};
    // The smaller unit matters only while there are few of the larger one.
    const bool has_smaller = unit.length > minutes{1} || (unit.length == minutes{1} && count < 5);
    if (has_smaller && count < 10) {
      const Unit& smaller = kUnits.at(i + 1);
      if (const auto more = (duration % unit.length) / smaller.length; more != 0) {
        text += " " + std::to_string(more) + " " + std::string{smaller.spoken};
      }
    }
    return text;
  }
  return "0 s";
}

}  // namespace holdfast::command
