#pragma once

#include <cstdint>

#include "core/lock_record.h"

namespace holdfast::engines {

// When a record will mean nothing any more, as stored beside it; 0 if idle.
std::int64_t until_of(const core::LockRecord& record) noexcept;

bool mentions(const core::LockRecord& record, const core::SessionId& session) noexcept;

}  // namespace holdfast::engines
