#include "text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <vector>

namespace holdfast::command {
namespace {

struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 0;
};

// The first character of `text`; empty if it is not well-formed UTF-8.
std::optional<Character> decode(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) {
    return Character{lead, 1};
  }
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) {
    return std::nullopt;
  }
  std::uint32_t code = lead & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) {
      return std::nullopt;
    }
    code = (code << 6U) | (byte(i) & 0x3FU);
  }
  constexpr std::array<std::uint32_t, 5> kSmallest{0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < kSmallest.at(length) || code > 0x10FFFF || surrogate) {
    return std::nullopt;
  }
  return Character{code, length};
}

// Commands to the terminal, or marks that reorder or break what is around them.
bool is_harmful(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code <= 0x9F) || code == 0x061C ||
         (code >= 0x200E && code <= 0x200F) || (code >= 0x2028 && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069) || code == 0xFEFF;
}

std::string escaped(std::uint32_t code) {
  switch (code) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      break;
  }
  std::array<char, 16> buffer{};
  std::snprintf(buffer.data(), buffer.size(), code < 0x100 ? "\\x%02x" : "\\u{%04x}", code);
  return buffer.data();
}

std::string escape(std::string_view text, std::string_view backslash) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto character = decode(text);
    const std::size_t bytes = character ? character->bytes : 1;
    if (!character) {
      out += escaped(static_cast<std::uint8_t>(text.front()));
    } else if (is_harmful(character->code)) {
      out += escaped(character->code);
    } else if (character->code == '\\') {
      out += backslash;
    } else {
      out += text.substr(0, bytes);
    }
    text.remove_prefix(bytes);
  }
  return out;
}

}  // namespace

std::string printable(std::string_view text) {
  return escape(text, "\\\\");
}

std::string harmless(std::string_view text) {
  return escape(text, "\\");
}

std::string in_quotes(std::string_view text) {
  return "'" + printable(text) + "'";
}

bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const auto character = decode(text);
    if (!character) {
      return false;
    }
    text.remove_prefix(character->bytes);
  }
  return true;
}

std::string hex(std::string_view bytes) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<std::uint8_t>(c);
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 15U];
  }
  return text;
}

std::size_t width(std::string_view text) noexcept {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<std::uint8_t>(c) & 0xC0U) != 0x80;
  }));
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) {
    row[j] = j;
  }
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before_last = last;
    last = row;
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      // Two neighbours swapped are one slip of the fingers.
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

}  // namespace holdfast::command
