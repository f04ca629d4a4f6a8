#pragma once

#include <cstdint>

#include "base/ids.h"
#include "base/time.h"

namespace holdfast::base {

// A different while each time, so that those who try again do not meet again.
inline Duration random_between(Duration least, Duration most) {
  const auto span = static_cast<std::uint64_t>((most - least).count());
  return least + Duration{static_cast<Duration::rep>(random_u64() % (span + 1))};
}

}  // namespace holdfast::base
