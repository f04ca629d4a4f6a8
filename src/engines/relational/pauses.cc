#include "engines/relational/pauses.h"

#include <chrono>

#include "base/ids.h"

namespace holdfast::engines::relational {
namespace {

using namespace std::chrono_literals;

constexpr base::Duration kShortestRetry = 50ms;
constexpr base::Duration kLongestRetry = 150ms;
constexpr base::Duration kStepAside = 10ms;

base::Duration random_between(base::Duration least, base::Duration most) {
  const auto span = static_cast<std::uint64_t>((most - least).count());
  return least + base::Duration{static_cast<base::Duration::rep>(base::random_u64() % (span + 1))};
}

}  // namespace

base::Duration pause_before_retry() {
  return random_between(kShortestRetry, kLongestRetry);
}

base::Duration step_aside() {
  return random_between(kStepAside / 2, kStepAside);
}

}  // namespace holdfast::engines::relational
