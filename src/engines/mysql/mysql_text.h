#pragma once

#include <string>
#include <utility>

// How packets of statements are put together.
namespace holdfast::engines {

template <typename Items, typename Append>
void append_list(std::string& into, const Items& items, Append append) {
  bool first = true;
  for (const auto& item : items) {
    if (!std::exchange(first, false)) {
      into += ',';
    }
    append(item);
  }
}

// Another statement follows.
inline void begin(std::string& packet) {
  if (!packet.empty()) {
    packet += ';';
  }
}

}  // namespace holdfast::engines
