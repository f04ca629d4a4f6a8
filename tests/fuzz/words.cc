// sources: apps/holdfast/duration.cc apps/holdfast/text.cc apps/holdfast/torture/line.cc
// apps/proof/fault_proxy.cc apps/proof/proxy_connection.cc src/core/error.cc
#include <string>

#include "fuzz/fuzz.h"
#include "holdfast/duration.h"
#include "holdfast/text.h"
#include "torture/line.h"

namespace command = holdfast::command;

// What people type, and what is shown to them.
FUZZ_TARGET(words) {
  if (const auto duration = command::parse_duration(input)) {
    const auto again = command::parse_duration(command::spell_duration(*duration));
    REQUIRE(again.has_value());
    REQUIRE(*again == *duration);
    REQUIRE(!command::human_duration(*duration).empty());
  }
  const std::string shown = command::printable(input);
  for (const char c : shown) {
    REQUIRE(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  }
  REQUIRE(command::is_utf8(shown));
  REQUIRE(command::width(shown) <= shown.size());
  command::harmless(input);
  REQUIRE(command::hex(input).size() == input.size() * 2);
  if (const auto address = command::torture::address_of(input)) {
    REQUIRE(!address->endpoints.empty());
  }
}
