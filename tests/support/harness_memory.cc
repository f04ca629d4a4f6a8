#include "support/harness.h"

namespace holdfast::test {

namespace {

// Shared by the clients of one test.
class MemoryHarness : public Harness {
 public:
  std::string url() const override { return "memory:" + name_prefix(); }
};

}  // namespace

HarnessEntry memory_harness() {
  return {.engine = "memory",
          .strategy = "",
          .claims = {.processes = false, .outage = false, .values = true},
          .make = []() -> std::unique_ptr<Harness> { return std::make_unique<MemoryHarness>(); }};
}

}  // namespace holdfast::test
