// sources: src/engines/redis/resp.cc src/engines/redis/redis_wire.cc src/base/ids.cc
// src/base/fork.cc src/core/error.cc
#include "engines/redis/resp.h"

#include <string>
#include <vector>

#include "engines/redis/redis_wire.h"
#include "fuzz/fuzz.h"

using holdfast::engines::RespReader;
using holdfast::engines::RespValue;

namespace {

std::size_t drain(RespReader& reader, std::string& said) {
  std::size_t count = 0;
  while (auto value = reader.next()) {
    said += std::to_string(static_cast<int>(value->kind)) + ":" + value->text + ":" +
            std::to_string(value->integer) + ":" + std::to_string(value->items.size()) + ";";
    ++count;
  }
  return count;
}

}  // namespace

// Redis's replies: they mean the same however the network cuts them up.
FUZZ_TARGET(resp) {
  RespReader whole;
  std::string at_once;
  whole.feed(input);
  drain(whole, at_once);

  RespReader pieces;
  std::string bit_by_bit;
  const std::size_t cut = input.empty() ? 0 : static_cast<unsigned char>(input[0]) % input.size();
  pieces.feed(input.substr(0, cut));
  drain(pieces, bit_by_bit);
  pieces.feed(input.substr(cut));
  drain(pieces, bit_by_bit);
  REQUIRE(at_once == bit_by_bit);
  REQUIRE(whole.broken() == pieces.broken());

  holdfast::engines::unpack_ring(input);
  holdfast::engines::unpack_party(input);
  if (input.size() >= holdfast::engines::kPackedOutcome) {
    holdfast::engines::unpack_outcome(input.substr(0, holdfast::engines::kPackedOutcome));
  }
}
