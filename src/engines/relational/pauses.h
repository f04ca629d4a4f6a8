#pragma once

#include "base/time.h"

// How long to wait where nobody tells us that a lock is free.
namespace holdfast::engines::relational {

// Another while each time, so that those who wait do not ask all at once.
base::Duration pause_before_retry();
// After we gave the lock back: time for others to take it.
base::Duration step_aside();

}  // namespace holdfast::engines::relational
