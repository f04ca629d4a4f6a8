#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Redis's protocol, version 2: bytes in, values out. No I/O here, so that it
// can be fed anything.
namespace holdfast::engines {

struct RespValue {
  enum class Kind : std::uint8_t { nil, text, status, error, integer, array };

  Kind kind = Kind::nil;
  std::string text;          // text, status, error
  std::int64_t integer = 0;  // integer
  std::vector<RespValue> items;

  bool is(Kind wanted) const noexcept { return kind == wanted; }
  bool is_error() const noexcept { return kind == Kind::error; }
};

// Takes bytes as they come and gives whole replies.
class RespReader {
 public:
  void feed(std::string_view bytes) { buffer_.append(bytes); }

  // The next reply; nullopt if it has not arrived in full, or if what arrived
  // is not the protocol: see broken().
  std::optional<RespValue> next();

  // What the peer says makes no sense; nothing after it can be understood.
  bool broken() const noexcept { return broken_; }
  void reset();

 private:
  bool parse(RespValue& value, std::size_t depth);
  std::optional<std::string_view> line();
  bool parse_text(RespValue& value, std::int64_t size);
  bool parse_array(RespValue& value, std::int64_t size, std::size_t depth);

  std::string buffer_;
  std::size_t begin_ = 0;  // of what was not given out yet
  std::size_t at_ = 0;     // while parsing
  // Do not try again before so many bytes are there: a long reply that comes
  // in pieces is parsed a few times, not once a piece.
  std::size_t enough_ = 0;
  bool broken_ = false;
};

// A command is an array of texts.
void append_resp_head(std::string& out, std::size_t words);
void append_resp_word(std::string& out, std::string_view word);

template <typename... Words>
void append_resp_command(std::string& out, const Words&... words) {
  append_resp_head(out, sizeof...(words));
  (append_resp_word(out, words), ...);
}

}  // namespace holdfast::engines
