#include "engines/relational/owner_text.h"

#include <cstdlib>

#include "engines/relational/odd_bytes.h"

namespace holdfast::engines::relational {
namespace {

constexpr std::size_t kLongest = 60;
constexpr std::string_view kOn = " on ";
constexpr std::string_view kProcess = ", process ";

}  // namespace

std::string waiter_text(const Party& party) {
  return escaped(party.label)
      .substr(0, kLongest)
      .append(kOn)
      .append(escaped(party.host).substr(0, kLongest))
      .append(kProcess)
      .append(std::to_string(party.pid));
}

std::string owner_text(const Party& party, const base::Id& request) {
  return waiter_text(party) + " [" + request.hex() + "]";
}

Party party_in(std::string_view owner) {
  const auto process = owner.rfind(kProcess);
  const auto on = process == std::string_view::npos ? process : owner.rfind(kOn, process);
  if (on == std::string_view::npos) {
    return {.label = std::string{owner}, .host = "", .pid = 0};
  }
  const auto host = on + kOn.size();
  const std::string pid{owner.substr(process + kProcess.size())};
  return {.label = unescaped(owner.substr(0, on)),
          .host = unescaped(owner.substr(host, process - host)),
          .pid = std::strtoll(pid.c_str(), nullptr, 10)};
}

}  // namespace holdfast::engines::relational
