// sources: src/core/lock_record_codec.cc src/core/lock_record.cc src/core/error.cc src/base/ids.cc
// src/base/fork.cc
#include <string>
#include <vector>

#include "core/lock_record_codec.h"
#include "fuzz/fuzz.h"

using namespace holdfast;

// Stored lock records: what a damaged store may hold. Whatever is accepted can
// be written back the same, and worked with.
FUZZ_TARGET(record) {
  auto record = core::decode(input);
  if (!record) {
    REQUIRE(record.error().code == ErrorCode::unavailable);
    return;
  }
  std::string again;
  core::encode(*record, again);
  REQUIRE(again == input);
  std::vector<core::Wake> wakes;
  core::LockRecord::Context context{.now = base::Time{std::chrono::hours{1}}, .token_floor = 1};
  const core::RequestId id{};
  record->apply(core::Poll{id, true}, context, wakes);
  record->apply(core::Acquire{.id = id,
                              .session = {},
                              .shape = {},
                              .ttl = std::chrono::seconds{1},
                              .window = std::chrono::seconds{1}},
                context, wakes);
  record->apply(core::Release{id}, context, wakes);
  core::encode(*record, again);
  REQUIRE(core::decode(again).has_value());
}
