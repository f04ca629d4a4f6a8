#pragma once

#include <holdfast/error.h>
#include <string>
#include <string_view>

#include "core/lock_record.h"

namespace holdfast::core {

// A lock record as bytes, for stores that keep it whole: a version, then plain
// little-endian integers.
void encode(const LockRecord& record, std::string& into);  // replaces what is there

// Accepts only what encode() could have written; anything else, of whatever
// origin, is `unavailable`: the store is damaged.
Result<LockRecord> decode(std::string_view bytes);

}  // namespace holdfast::core
