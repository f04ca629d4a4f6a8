#pragma once

#include <holdfast/error.h>
#include <holdfast/options.h>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/url.h"

namespace holdfast::engine {

// The options of a URL, each asked for once by the engine. finish() complains
// about the first that was malformed, then about those nobody asked for.
class Query {
 public:
  explicit Query(const Url& url) : url_{url} {}

  // "500ms", "30s", "2m", "1h".
  Duration duration(std::string_view key, Duration otherwise);
  // "true" or "false"; the bare key is true.
  bool flag(std::string_view key, bool otherwise);
  std::string text(std::string_view key, std::string_view otherwise = "");
  // From `least` to `most`.
  std::uint64_t number(std::string_view key, std::uint64_t otherwise, std::uint64_t least,
                       std::uint64_t most);
  // One of `choices`; its place among them. The first if it is not given.
  std::size_t choice(std::string_view key, std::span<const std::string_view> choices);

  Result<void> finish() const;

 private:
  const std::string* find(std::string_view key);
  void complain(std::string_view key, std::string_view wanted);

  const Url& url_;
  std::vector<std::string> known_;
  std::string complaint_;
};

}  // namespace holdfast::engine
