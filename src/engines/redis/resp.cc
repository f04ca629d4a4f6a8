#include "engines/redis/resp.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace holdfast::engines {
namespace {

constexpr std::int64_t kLongestText = std::int64_t{512} << 20U;  // Redis's own limit
constexpr std::int64_t kMostItems = std::int64_t{1} << 24U;
constexpr std::size_t kDeepest = 16;
constexpr std::size_t kLongestLine = std::size_t{64} << 10U;
constexpr std::size_t kKeep = std::size_t{64} << 10U;  // room that is worth keeping

bool parse_integer(std::string_view text, std::int64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

void append_number(std::string& out, char sigil, std::size_t number) {
  std::array<char, 24> digits;
  char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  out.push_back(sigil);
  out.append(digits.data(), end);
  out.append("\r\n");
}

}  // namespace

std::optional<RespValue> RespReader::next() {
  if (broken_ || begin_ == buffer_.size() || buffer_.size() - begin_ < enough_) {
    return std::nullopt;
  }
  RespValue value;
  at_ = begin_;
  enough_ = 0;
  if (!parse(value, 0)) {
    return std::nullopt;
  }
  begin_ = at_;
  if (begin_ == buffer_.size()) {
    buffer_.clear();
    begin_ = 0;
    if (buffer_.capacity() > kKeep) {
      buffer_.shrink_to_fit();
    }
  } else if (begin_ > kKeep && begin_ > buffer_.size() / 2) {
    buffer_.erase(0, begin_);
    begin_ = 0;
  }
  return value;
}

void RespReader::reset() {
  *this = {};
}

std::optional<std::string_view> RespReader::line() {
  const std::size_t end = buffer_.find("\r\n", at_);
  if (end == std::string::npos) {
    broken_ = broken_ || buffer_.size() - at_ > kLongestLine;
    return std::nullopt;
  }
  const std::string_view found = std::string_view{buffer_}.substr(at_, end - at_);
  at_ = end + 2;
  return found;
}

// False if bytes are missing or wrong.
bool RespReader::parse(RespValue& value, std::size_t depth) {
  const auto head = line();
  if (!head) {
    return false;
  }
  if (head->empty() || depth > kDeepest) {
    broken_ = true;
    return false;
  }
  const std::string_view rest = head->substr(1);
  const char sigil = head->front();
  if (sigil == '+' || sigil == '-') {
    value.kind = sigil == '+' ? RespValue::Kind::status : RespValue::Kind::error;
    value.text = rest;
    return true;
  }
  std::int64_t number = 0;
  if (!parse_integer(rest, number)) {
    broken_ = true;
    return false;
  }
  switch (sigil) {
    case ':':
      value.kind = RespValue::Kind::integer;
      value.integer = number;
      return true;
    case '$':
      return parse_text(value, number);
    case '*':
      return parse_array(value, number, depth);
    default:
      broken_ = true;
      return false;
  }
}

bool RespReader::parse_text(RespValue& value, std::int64_t size) {
  if (size < -1 || size > kLongestText) {
    broken_ = true;
    return false;
  }
  if (size == -1) {
    return true;  // nil
  }
  const auto bytes = static_cast<std::size_t>(size);
  if (buffer_.size() - at_ < bytes + 2) {
    enough_ = at_ + bytes + 2 - begin_;
    return false;
  }
  if (buffer_.compare(at_ + bytes, 2, "\r\n") != 0) {
    broken_ = true;
    return false;
  }
  value.kind = RespValue::Kind::text;
  value.text.assign(buffer_, at_, bytes);
  at_ += bytes + 2;
  return true;
}

bool RespReader::parse_array(RespValue& value, std::int64_t size, std::size_t depth) {
  if (size < -1 || size > kMostItems) {
    broken_ = true;
    return false;
  }
  if (size == -1) {
    return true;  // nil
  }
  value.kind = RespValue::Kind::array;
  // An item has three bytes at least: a peer cannot make us reserve much for nothing.
  value.items.reserve(std::min(static_cast<std::size_t>(size), (buffer_.size() - at_) / 3 + 1));
  for (std::int64_t i = 0; i < size; ++i) {
    if (!parse(value.items.emplace_back(), depth + 1)) {
      return false;
    }
  }
  return true;
}

void append_resp_head(std::string& out, std::size_t words) {
  append_number(out, '*', words);
}

void append_resp_word(std::string& out, std::string_view word) {
  append_number(out, '$', word.size());
  out.append(word);
  out.append("\r\n");
}

}  // namespace holdfast::engines
