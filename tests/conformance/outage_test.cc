// While the store cannot be changed: leases survive what is short, end in time
// when it is long, and no caller waits longer than it said.
#include <atomic>
#include <stop_token>

#include "conformance/conformance.h"

namespace holdfast::test {
namespace {

class DuringOutage : public Conformance {
 protected:
  // Runs out while the caller is stuck for seconds.
  Lease hourglass(Client& client) {
    auto lease = client.acquire(harness().fresh_name(), {.ttl = 4s, .renew = false});
    EXPECT_THAT(lease, IsOk());
    return lease ? std::move(*lease) : Lease{};
  }
};
HOLDFAST_RUN_ON(DuringOutage, harnesses_with(&Claims::outage, &Claims::lease));

TEST_P(DuringOutage, AFailedRenewalIsTriedAgainLongRun) {
  given_time([&](int scale) {
    const Duration ttl = scale * harness().renewable_ttl();
    auto client = harness().open_impatient(scale * 300ms);
    auto lease = client->acquire(name(), {.ttl = ttl});
    ASSERT_THAT(lease, IsOk());
    auto outage = harness().begin_outage();
    std::this_thread::sleep_for(ttl / 2);  // at least one renewal falls into it
    outage.reset();
    EXPECT_TRUE(throughout(2 * ttl, [&] { return lease->is_alive(); }));
    EXPECT_FALSE(lease->lost().stop_requested());
    EXPECT_THAT(lease->release(), IsOk());
  });
}

TEST_P(DuringOutage, ASlowRenewalIsNoLossLongRun) {
  given_time([&](int scale) {
    const Duration ttl = scale * harness().renewable_ttl();
    auto client = open();
    auto lease = client->acquire(name(), {.ttl = ttl});
    ASSERT_THAT(lease, IsOk());
    auto outage = harness().begin_outage();
    std::this_thread::sleep_for(ttl / 2);
    outage.reset();
    EXPECT_TRUE(throughout(ttl, [&] { return lease->is_alive(); }));
    EXPECT_FALSE(lease->lost().stop_requested());
  });
}

TEST_P(DuringOutage, AFailedReleaseIsTriedAgain) {
  given_time([&](int scale) {
    auto client = harness().open_impatient(scale * 300ms);
    auto lease = client->acquire(name());
    ASSERT_THAT(lease, IsOk());
    auto outage = harness().begin_outage();
    lease->release_in_background();
    std::this_thread::sleep_for(200ms);  // let it fail; sooner is as good
    outage.reset();
    EXPECT_TRUE(await_nothing_left()) << "the lock stays taken until its ttl is over";
  });
}

TEST_P(DuringOutage, AnAcquireSaysUnavailable) {
  given_time([&](int scale) {
    auto client = harness().open_impatient(scale * 300ms);
    auto outage = harness().begin_outage();
    auto refused = client->acquire(name(), {.ttl = 1s, .wait = kPatience});
    EXPECT_THAT(refused, FailsWith(ErrorCode::unavailable));
    outage.reset();
    EXPECT_THAT(client->acquire(name(), {.wait = kPatience}), IsOk());
  });
}

TEST_P(DuringOutage, TheHolderIsToldBeforeTheStoreLetsGo) {
  given_time([&](int scale) {
    auto client = open();
    auto lease = client->acquire(name(), {.ttl = scale * 900ms, .grace = scale * 400ms});
    ASSERT_THAT(lease, IsOk());
    ASSERT_TRUE(is_seen_held(*lease));
    std::atomic<int> fired = 0;
    std::atomic<bool> held_when_fired = false;
    std::stop_callback watch{lease->lost(), [&] {
                               held_when_fired = is_seen_held(*lease);
                               ++fired;
                             }};
    auto outage = harness().begin_outage();
    EXPECT_TRUE(eventually([&] { return fired == 1; }));
    EXPECT_TRUE(held_when_fired);
    EXPECT_EQ(lease->loss(), LossReason::not_renewed);
    harness().let_expire(*lease);
    EXPECT_FALSE(lease->is_alive());
    EXPECT_EQ(fired, 1);
  });
}

TEST_P(DuringOutage, AnAcquireEndsAtItsDeadlineAndLeavesNothing) {
  auto client = open();
  Lease time = hourglass(*client);
  auto outage = harness().begin_outage();
  EXPECT_FALSE(client->acquire(name(), {.ttl = 1s, .wait = 200ms}));
  EXPECT_TRUE(time.is_alive()) << "it waited for the store instead";
  outage.reset();
  time = Lease{};
  EXPECT_THAT(client->flush(kPatience), IsOk());
  EXPECT_TRUE(await_nothing_left());
  EXPECT_THAT(client->acquire(name(), {.wait = kPatience}), IsOk());
}

TEST_P(DuringOutage, AnAcquireCanBeCancelled) {
  auto client = open();
  Lease time = hourglass(*client);
  auto outage = harness().begin_outage();
  std::stop_source stop;
  auto waiting = acquire_later(*client, name(), {.ttl = 1s, .stop = stop.get_token()});
  std::this_thread::sleep_for(20ms);  // let it get stuck; sooner is as good
  stop.request_stop();
  EXPECT_THAT(waiting.get(), FailsWith(ErrorCode::cancelled));
  EXPECT_TRUE(time.is_alive()) << "it waited for the store instead";
  outage.reset();
  time = Lease{};
  EXPECT_TRUE(await_nothing_left());
}

TEST_P(DuringOutage, AnUnlockReturnsAtOnce) {
  auto client = open();
  Lease time = hourglass(*client);
  Mutex mutex{*client, name()};
  mutex.lock();
  auto outage = harness().begin_outage();
  mutex.unlock();
  EXPECT_TRUE(time.is_alive()) << "it waited for the store instead";
  outage.reset();
  time = Lease{};
  EXPECT_THAT(client->flush(kPatience), IsOk());
  EXPECT_TRUE(await_nothing_left());
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
