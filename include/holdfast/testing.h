#pragma once

#include <holdfast/options.h>

// For users' unit tests.
namespace holdfast::testing {

// While it lives, time stands still for all clients of this process, and passes
// only by advance(). Make it before the clients and destroy it after them and
// their leases. For `memory:` stores alone. Thread-safe.
class FakeClock {
 public:
  FakeClock();  // throws std::logic_error if there is one already
  ~FakeClock();
  FakeClock(const FakeClock&) = delete;
  FakeClock& operator=(const FakeClock&) = delete;

  // As if the process had been stopped for that long: leases that end
  // meanwhile are lost, waits that end are over. What other threads do about
  // it (renewals, lost()) happens within a few milliseconds.
  // Throws std::invalid_argument if it is negative.
  void advance(Duration time);
};

}  // namespace holdfast::testing
