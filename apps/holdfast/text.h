#pragma once

#include <cstddef>
#include <string>
#include <string_view>

// Names and labels are bytes chosen by strangers; a terminal obeys bytes. All
// that is printed goes through here.
namespace holdfast::command {

// Control characters, direction overrides, bytes that are not UTF-8 and the
// backslash become \n, \t, \xNN, \u{NNNN}, \\; the rest stays as it is.
std::string printable(std::string_view text);

// The same for sentences whose parts may have been escaped already: the
// backslash stays.
std::string harmless(std::string_view text);

// printable() between single quotes, for messages.
std::string in_quotes(std::string_view text);

bool is_utf8(std::string_view text) noexcept;

std::string hex(std::string_view bytes);

// Characters, not bytes; for alignment.
std::size_t width(std::string_view text) noexcept;

// The nearest of the words that a typing slip may have meant; empty if none is
// near.
template <typename Words>
std::string nearest(std::string_view typed, const Words& words);

std::size_t edit_distance(std::string_view a, std::string_view b);

template <typename Words>
std::string nearest(std::string_view typed, const Words& words) {
  std::size_t best = typed.size() < 4 ? 2 : 3;  // further away is another word
  std::string found;
  for (const auto& word : words) {
    if (const std::size_t distance = edit_distance(typed, word); distance < best) {
      best = distance;
      found = word;
    }
  }
  return found;
}

}  // namespace holdfast::command
