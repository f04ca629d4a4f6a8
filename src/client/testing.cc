#include <holdfast/testing.h>

#include <stdexcept>

#include "base/time.h"

namespace holdfast::testing {

FakeClock::FakeClock() {
  if (base::is_clock_fake()) {
    throw std::logic_error{"there is a FakeClock already"};
  }
  base::use_fake_clock(true);
}

FakeClock::~FakeClock() {
  base::use_fake_clock(false);
}

void FakeClock::advance(Duration time) {
  if (time < Duration::zero()) {
    throw std::invalid_argument{"time is negative; a FakeClock moves forward only"};
  }
  base::move_fake_clock(time);
}

}  // namespace holdfast::testing
