#include "lock_text.h"

#include "text.h"

namespace holdfast::command {

std::string party_text(const Party& party) {
  std::string text = printable(party.label);
  if (!party.host.empty()) {
    text += "@" + printable(party.host);
  }
  return text + ":" + std::to_string(party.pid);
}

std::string mode_text(Mode mode, std::uint32_t permits, std::uint32_t limit) {
  if (mode != Mode::permits) {
    return std::string{to_string(mode)};
  }
  std::string text = std::to_string(permits);
  if (limit != 0) {
    text += "/" + std::to_string(limit);
  }
  return text + " permits";
}

std::string token_text(const std::optional<std::uint64_t>& token) {
  return token ? std::to_string(*token) : "-";
}

}  // namespace holdfast::command
