// sources: src/engines/relational/lock_row.cc src/engines/relational/odd_bytes.cc
// src/core/lock_record_codec.cc src/core/lock_record.cc src/core/error.cc src/base/ids.cc
// src/base/fork.cc src/engines/postgres/postgres_values.cc src/engine/names.cc
#include <string>

#include "engines/postgres/postgres_values.h"
#include "engines/relational/lock_row.h"
#include "engines/relational/odd_bytes.h"
#include "fuzz/fuzz.h"

namespace relational = holdfast::engines::relational;
namespace postgres = holdfast::engines::postgres;

// Rows of SQL databases: odd names survive, and damaged rows do no harm.
FUZZ_TARGET(rows) {
  const std::string escaped = relational::escaped(input);
  REQUIRE(relational::unescaped(escaped) == input);
  for (const char c : escaped) {
    REQUIRE(c >= 0x20 && c < 0x7f);
  }
  const auto parties = relational::read_parties(std::string{input});
  const std::string text = relational::written(parties);
  REQUIRE(relational::written(relational::read_parties(text)) == text);

  relational::LockRow row;
  row.record = std::string{input};
  row.parties = std::string{input};
  static_cast<void>(row.to_record());
  static_cast<void>(row.known_parties());

  if (input.size() >= 16) {  // the protocol says how long a value is, not what is in it
    postgres::to_int(input.substr(0, 4));
    postgres::to_id(input.substr(0, 16));
    postgres::to_time(input.substr(0, 8));
    postgres::to_duration(input.substr(0, 16));
  }
}
