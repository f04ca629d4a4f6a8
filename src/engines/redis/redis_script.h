#pragma once

#include <string>
#include <string_view>

namespace holdfast::engines {

// A Lua script, and the name under which Redis keeps it.
class RedisScript {
 public:
  explicit RedisScript(std::string_view text);

  // Appends the start of a call: `arguments` words must follow. By its name;
  // `in_full` where Redis does not know it yet.
  void append_call(std::string& out, std::size_t keys, std::size_t arguments, bool in_full) const;

 private:
  std::string_view text_;
  std::string name_;
};

}  // namespace holdfast::engines
