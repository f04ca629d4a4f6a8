#include "engine/value_text.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace holdfast::engine {
namespace {

constexpr std::string_view kMark = "holdfast-value";
constexpr std::string_view kThere = "value";
constexpr std::string_view kErased = "erased";

std::string_view next_word(std::string_view& line) {
  const auto end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

template <typename Number>
bool read(std::string_view word, Number& number, int base = 10) {
  const char* end = word.data() + word.size();
  const auto [at, error] = std::from_chars(word.data(), end, number, base);
  return error == std::errc{} && at == end;
}

bool read_id(std::string_view word, base::Id& id) {
  if (word.size() != 2 * id.bytes.size()) {
    return false;
  }
  for (std::size_t i = 0; i < id.bytes.size(); ++i) {
    if (!read(word.substr(2 * i, 2), id.bytes.at(i), 16)) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::string ValueText::text() const {
  const auto micros = std::chrono::ceil<std::chrono::microseconds>(hold_off).count();
  std::string line = std::string{kMark} + " " + writer.hex() + " " + std::to_string(written) + " " +
                     std::to_string(micros) + " ";
  line.append(bytes ? kThere : kErased).append("\n");
  return bytes ? line + *bytes : line;
}

std::optional<ValueText> ValueText::parse(std::string_view text) {
  const auto end = text.find('\n');
  if (end == std::string_view::npos) {
    return std::nullopt;
  }
  std::string_view line = text.substr(0, end);
  ValueText found;
  std::int64_t micros = 0;
  const bool good = next_word(line) == kMark && read_id(next_word(line), found.writer) &&
                    read(next_word(line), found.written) && read(next_word(line), micros) &&
                    micros >= 0 && micros < std::int64_t{1} << 53U &&
                    (line == kThere || line == kErased);
  if (!good) {
    return std::nullopt;
  }
  found.hold_off = std::chrono::microseconds{micros};
  if (line == kThere) {
    found.bytes.emplace(text.substr(end + 1));
  }
  return found;
}

Error not_a_value() {
  return {ErrorCode::invalid_argument,
          "the key of this name is used for something else; choose another name or prefix",
          std::nullopt};
}

}  // namespace holdfast::engine
