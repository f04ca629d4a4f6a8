#include "engines/relational/odd_bytes.h"

namespace holdfast::engines::relational {
namespace {

constexpr std::string_view kDigits = "0123456789ABCDEF";

}  // namespace

std::string escaped(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte > 0x7e || c == '%') {
      text += {'%', kDigits[byte >> 4U], kDigits[byte & 15U]};
    } else {
      text.push_back(c);
    }
  }
  return text;
}

std::string unescaped(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto high =
        text[i] == '%' && i + 2 < text.size() ? kDigits.find(text[i + 1]) : std::string_view::npos;
    const auto low = high != std::string_view::npos ? kDigits.find(text[i + 2]) : high;
    if (low == std::string_view::npos) {
      bytes.push_back(text[i]);
    } else {
      bytes.push_back(static_cast<char>(high * 16 + low));
      i += 2;
    }
  }
  return bytes;
}

}  // namespace holdfast::engines::relational
