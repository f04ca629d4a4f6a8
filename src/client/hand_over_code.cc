#include "client/hand_over_code.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "client/wish.h"

namespace holdfast::client {
namespace {

constexpr std::string_view kPrefix = "holdfast1";
constexpr std::string_view kDigits = "0123456789abcdef";

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += {kDigits[byte >> 4U], kDigits[byte & 15U]};
  }
  return text;
}

std::optional<std::string> from_hex(std::string_view text) {
  if (text.size() % 2 != 0) {
    return std::nullopt;
  }
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const std::size_t high = kDigits.find(text[i]);
    const std::size_t low = kDigits.find(text[i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) {
      return std::nullopt;
    }
    bytes.push_back(static_cast<char>(high * 16 + low));
  }
  return bytes;
}

std::optional<std::uint32_t> number(std::string_view text) {
  std::uint32_t value = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  return read.ec == std::errc{} && read.ptr == end ? std::optional{value} : std::nullopt;
}

std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t dash = 0; dash != std::string_view::npos;) {
    dash = text.find('-');
    parts.push_back(text.substr(0, dash));
    text.remove_prefix(dash == std::string_view::npos ? text.size() : dash + 1);
  }
  return parts;
}

bool sane(const core::Shape& shape) {
  return shape.mode == Mode::permits
             ? shape.permits >= 1 && shape.permits <= shape.limit && shape.limit <= kMaxPermits
             : shape.permits == 1 && shape.limit == 0;
}

}  // namespace

std::string HandOverCode::text() const {
  const std::string_view id{reinterpret_cast<const char*>(request.bytes.data()),
                            request.bytes.size()};
  return std::string{kPrefix} + "-" + hex(id) + "-" +
         std::to_string(static_cast<unsigned>(shape.mode)) + "-" + std::to_string(shape.permits) +
         "-" + std::to_string(shape.limit) + "-" + hex(name);
}

Result<HandOverCode> HandOverCode::read(std::string_view text) {
  const auto wrong = [] {
    return fail(ErrorCode::invalid_argument,
                "code is not what Lease::give_away() gave; pass it on unchanged");
  };
  const auto parts = parts_of(text);
  if (parts.size() != 6 || parts[0] != kPrefix) {
    return wrong();
  }
  const auto id = from_hex(parts[1]);
  const auto mode = number(parts[2]);
  const auto permits = number(parts[3]);
  const auto limit = number(parts[4]);
  auto name = from_hex(parts[5]);
  HandOverCode code;
  if (!id || id->size() != code.request.bytes.size() || !mode || *mode > 2 || !permits || !limit ||
      !name || !check_name(*name)) {
    return wrong();
  }
  std::ranges::copy(*id, reinterpret_cast<char*>(code.request.bytes.data()));
  code.shape = {static_cast<Mode>(*mode), *permits, *limit};
  code.name = std::move(*name);
  if (!sane(code.shape)) {
    return wrong();
  }
  return code;
}

}  // namespace holdfast::client
