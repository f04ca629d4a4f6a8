#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/lock_record.h"
#include "engines/postgres/postgres_session.h"
#include "engines/postgres/postgres_values.h"
#include "engines/relational/lock_row.h"

namespace holdfast::engines::postgres {

// A row of `locks` as it was read.
struct StoredLock {
  bool exists = false;
  std::int64_t version = 0;
  bool fenced = false;
  core::Time now{};
  std::uint64_t token_floor = 0;
  relational::LockRow row;

  static StoredLock from(const Rows& rows, int index);
};

// Rows on their way back, column by column as the statement wants them.
class WrittenRows {
 public:
  // `fence`: the token that the name's fence rises to.
  void add(std::string_view key, const StoredLock& before, const relational::LockRow& after,
           std::optional<std::uint64_t> fence);
  void ring(std::string_view key, std::string_view channel, std::string_view payload);

  std::vector<Bytes> values() const;

 private:
  ArrayOf names_{Element::text};
  ArrayOf versions_{Element::int8};
  ArrayOf last_tokens_{Element::int8};
  ArrayOf requests_{Element::uuid};
  ArrayOf sessions_{Element::uuid};
  ArrayOf tokens_{Element::int8};
  ArrayOf ttls_{Element::interval};
  ArrayOf labels_{Element::text};
  ArrayOf hosts_{Element::text};
  ArrayOf pids_{Element::int8};
  ArrayOf since_{Element::timestamptz};
  ArrayOf until_{Element::timestamptz};
  ArrayOf idle_at_{Element::timestamptz};
  ArrayOf waiting_{Element::int4};
  ArrayOf queues_{Element::text};
  ArrayOf parties_{Element::text};
  ArrayOf records_{Element::bytea};
  ArrayOf fences_{Element::int8};
  ArrayOf rung_names_{Element::text};
  ArrayOf channels_{Element::text};
  ArrayOf payloads_{Element::text};
};

}  // namespace holdfast::engines::postgres
