#include "engine/query.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <optional>
#include <utility>

namespace holdfast::engine {
namespace {

constexpr std::array<std::pair<std::string_view, Duration>, 4> kUnits{{
    {"ms", std::chrono::milliseconds{1}},
    {"s", std::chrono::seconds{1}},
    {"m", std::chrono::minutes{1}},
    {"h", std::chrono::hours{1}},
}};

std::optional<Duration> unit_of(std::string_view name) {
  for (const auto& [known, unit] : kUnits) {
    if (known == name) {
      return unit;
    }
  }
  return std::nullopt;
}

std::optional<Duration> parse_duration(std::string_view text) {
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const auto unit = unit_of(text.substr(static_cast<std::size_t>(end - text.data())));
  if (error != std::errc{} || !unit || count < 0 || count > Duration::max() / *unit) {
    return std::nullopt;
  }
  return count * *unit;
}

}  // namespace

Duration Query::duration(std::string_view key, Duration otherwise) {
  const std::string* text = find(key);
  if (text == nullptr) {
    return otherwise;
  }
  if (const auto value = parse_duration(*text)) {
    return *value;
  }
  complain(key, "takes a duration like 500ms, 30s or 2m");
  return otherwise;
}

bool Query::flag(std::string_view key, bool otherwise) {
  const std::string* text = find(key);
  if (text == nullptr) {
    return otherwise;
  }
  if (*text != "true" && *text != "false" && !text->empty()) {
    complain(key, "takes true or false");
  }
  return *text != "false";
}

std::string Query::text(std::string_view key, std::string_view otherwise) {
  const std::string* given = find(key);
  return given == nullptr ? std::string{otherwise} : *given;
}

std::uint64_t Query::number(std::string_view key, std::uint64_t otherwise, std::uint64_t least,
                            std::uint64_t most) {
  const std::string* text = find(key);
  if (text == nullptr) {
    return otherwise;
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc{} || end != text->data() + text->size() || value < least || value > most) {
    complain(key, "takes a number from " + std::to_string(least) + " to " + std::to_string(most));
    return otherwise;
  }
  return value;
}

std::size_t Query::choice(std::string_view key, std::span<const std::string_view> choices) {
  const std::string* text = find(key);
  if (text == nullptr) {
    return 0;
  }
  const auto found = std::find(choices.begin(), choices.end(), *text);
  if (found != choices.end()) {
    return static_cast<std::size_t>(found - choices.begin());
  }
  std::string known;
  for (const std::string_view each : choices) {
    known.append(known.empty() ? "" : ", ").append(each);
  }
  complain(key, "is one of: " + known);
  return 0;
}

Result<void> Query::finish() const {
  if (!complaint_.empty()) {
    return fail(ErrorCode::invalid_argument, complaint_);
  }
  for (const auto& [key, value] : url_.query) {
    if (std::find(known_.begin(), known_.end(), key) == known_.end()) {
      std::string known;
      for (const std::string& one : known_) {
        known += known.empty() ? "" : ", ";
        known += one;
      }
      std::string text = "a " + url_.scheme + " store has no option '";
      text.append(key).append("'; it knows: ").append(known);
      return fail(ErrorCode::invalid_argument, std::move(text));
    }
  }
  return {};
}

const std::string* Query::find(std::string_view key) {
  known_.emplace_back(key);
  const auto found = url_.query.find(known_.back());
  return found == url_.query.end() ? nullptr : &found->second;
}

void Query::complain(std::string_view key, std::string_view wanted) {
  if (complaint_.empty()) {
    complaint_ = "the option '" + std::string{key} + "' " + std::string{wanted};
  }
}

}  // namespace holdfast::engine
