// While the store cannot be changed: leases survive what is short, end in time
// when it is long, and no caller waits longer than it said.
#include <atomic>
#include <stop_token>

#include "conformance/conformance.h"

namespace holdfast::test {
namespace {

class DuringOutage : public Conformance {};
HOLDFAST_RUN_ON(DuringOutage, harnesses_with(&Claims::outage, &Claims::lease));

TEST_P(DuringOutage, AFailedRenewalIsTriedAgainLongRun) {
  const Duration ttl = harness().renewable_ttl();
  auto client = open();
  auto lease = client->acquire(name(), {.ttl = ttl});
  ASSERT_THAT(lease, IsOk());
  auto outage = harness().begin_outage();
  std::this_thread::sleep_for(ttl / 2);  // at least one renewal falls into it
  outage.reset();
  EXPECT_TRUE(throughout(2 * ttl, [&] { return lease->is_alive(); }));
  EXPECT_FALSE(lease->lost().stop_requested());
  EXPECT_THAT(lease->release(), IsOk());
}

TEST_P(DuringOutage, AnAcquireEndsAtItsDeadlineAndLeavesNothing) {
  auto client = open();
  ASSERT_TRUE(await_nothing_left());  // the bystander is there before the outage
  auto outage = harness().begin_outage();
  auto refused = client->acquire(name(), {.ttl = 1s, .wait = 200ms});
  EXPECT_FALSE(refused);
  outage.reset();
  EXPECT_THAT(client->flush(kPatience), IsOk());
  EXPECT_TRUE(await_nothing_left());
  EXPECT_THAT(client->acquire(name(), {.wait = kPatience}), IsOk());
}

TEST_P(DuringOutage, AWaiterLivesThroughAShortOneLongRun) {
  const Duration ttl = harness().renewable_ttl();
  auto one = open();
  auto other = open();
  auto lease = one->acquire(name());
  ASSERT_THAT(lease, IsOk());
  auto waiter = acquire_later(*other, name(), {.ttl = ttl});
  ASSERT_TRUE(await_waiters(1));
  auto outage = harness().begin_outage();
  std::this_thread::sleep_for(ttl);
  outage.reset();
  EXPECT_THAT(lease->release(), IsOk());
  EXPECT_THAT(waiter.get(), IsOk());
}

}  // namespace
}  // namespace holdfast::test
