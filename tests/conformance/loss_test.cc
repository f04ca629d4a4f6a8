// A holder learns that it lost its lock: in time, once, and with the reason.
#include <atomic>
#include <functional>
#include <latch>
#include <stop_token>

#include "conformance/conformance.h"

namespace holdfast::test {
namespace {

class Loss : public Conformance {
 protected:
  static bool await_loss(const Lease& lease) {
    return eventually([&] { return lease.lost().stop_requested(); });
  }
};
HOLDFAST_RUN_ON(Loss, harnesses_with(&Claims::lease));

TEST_P(Loss, AHeldLeaseIsNotLost) {
  auto client = open();
  auto lease = client->acquire(name());
  ASSERT_THAT(lease, IsOk());
  EXPECT_TRUE(lease->lost().stop_possible());
  EXPECT_FALSE(lease->lost().stop_requested());
  EXPECT_FALSE(lease->loss());
  EXPECT_TRUE(lease->is_alive());
  EXPECT_GT(lease->remaining(), Duration::zero());
}

TEST_P(Loss, FiresOnceAndBeforeTheStoreLetsGoWhenNotRenewed) {
  given_time([&](int scale) {
    auto client = open();
    bystander();  // to connect takes time, which there is not later
    auto lease =
        client->acquire(name(), {.ttl = scale * 600ms, .renew = false, .grace = scale * 300ms});
    ASSERT_THAT(lease, IsOk());
    ASSERT_TRUE(is_seen_held(*lease));
    std::atomic<int> fired = 0;
    std::atomic<bool> held_when_fired = false;
    std::stop_callback watch{lease->lost(), [&] {
                               ++fired;
                               held_when_fired = is_seen_held(*lease);
                             }};
    harness().let_expire(*lease);
    EXPECT_TRUE(eventually([&] { return fired > 0; }));
    EXPECT_TRUE(held_when_fired) << "lost() must leave the time that grace says";
    EXPECT_EQ(lease->loss(), LossReason::not_renewed);
    EXPECT_TRUE(throughout(100ms, [&] { return fired == 1; }));
  });
}

TEST_P(Loss, IsAliveTurnsFalseBeforeTheStoreExpiresIt) {
  auto client = open();
  auto lease = client->acquire(name(), {.ttl = 300ms, .renew = false});
  ASSERT_THAT(lease, IsOk());
  EXPECT_TRUE(eventually([&] {
    const bool held = is_seen_held(*lease);
    const bool alive = lease->is_alive();  // asked later, so it must know at least as much
    if (!held) {
      EXPECT_FALSE(alive);
    }
    return !held;
  }));
}

TEST_P(Loss, RevocationIsToldAndKeepsOthersOutUntilAcknowledged) {
  auto one = open();
  auto other = open();
  auto lease = one->acquire(name());
  ASSERT_THAT(lease, IsOk());
  EXPECT_EQ(other->force_release(name()).value_or(0), 1U);
  EXPECT_TRUE(await_loss(*lease));
  EXPECT_EQ(lease->loss(), LossReason::revoked);
  EXPECT_THAT(other->try_acquire(name()), FailsWith(ErrorCode::busy));
  ASSERT_EQ(seen().holders.size(), 1U);
  EXPECT_TRUE(seen().holders[0].revoked);

  std::ignore = lease->release();
  EXPECT_THAT(other->acquire(name(), {.wait = kPatience}), IsOk());
}

TEST_P(Loss, ARevokedLeaseIsNotRenewedAndRunsOut) {
  auto one = open();
  auto other = open();
  auto lease = one->acquire(name(), {.ttl = 400ms});
  ASSERT_THAT(lease, IsOk());
  ASSERT_THAT(other->force_release(name()), IsOk());
  // The holder never lets go; it is a matter of its ttl.
  EXPECT_THAT(other->acquire(name(), {.wait = kPatience}), IsOk());
  EXPECT_FALSE(lease->is_alive());
  EXPECT_TRUE(await_loss(*lease));
}

TEST_P(Loss, ForcedReleaseNowFreesAtOnceAndTellsTheHolder) {
  auto one = open();
  auto other = open();
  auto lease = one->acquire(name(), {.ttl = harness().renewable_ttl()});
  ASSERT_THAT(lease, IsOk());
  EXPECT_EQ(other->force_release(name(), Force::now).value_or(0), 1U);
  auto next = other->try_acquire(name());
  ASSERT_THAT(next, IsOk());
  EXPECT_TRUE(await_loss(*lease));
  EXPECT_TRUE(lease->loss());
  EXPECT_FALSE(lease->is_alive());
  EXPECT_THAT(lease->release(), FailsWith(ErrorCode::lease_lost));
  EXPECT_TRUE(is_seen_held(*next));
}

// Users stop their work in these callbacks, and stopping ends with a release.
TEST_P(Loss, TheCallbackMayReleaseAndUnlockAndAcquire) {
  auto client = open();
  Mutex mutex{*client, harness().fresh_name()};
  auto lease = client->acquire(name(), {.ttl = harness().shortest_ttl(), .renew = false});
  ASSERT_THAT(lease, IsOk());
  std::atomic<bool> finished = false;
  std::stop_callback watch{lease->lost(), [&] {
                             std::ignore = lease->release();
                             mutex.lock();
                             mutex.unlock();
                             std::ignore = client->flush();
                             finished = true;
                           }};
  EXPECT_TRUE(eventually([&] { return finished.load(); }));
}

TEST_P(Loss, AHangingCallbackHoldsUpNobodysRenewal) {
  given_time([&](int scale) {
    const Duration ttl = scale * harness().renewable_ttl();
    auto client = open();
    auto healthy = client->acquire(harness().fresh_name(), {.ttl = ttl});
    auto lost = client->acquire(name(), {.ttl = harness().shortest_ttl(), .renew = false});
    ASSERT_THAT(healthy, IsOk());
    ASSERT_THAT(lost, IsOk());
    std::latch wake_up{1};
    std::latch called{1};
    std::stop_callback watch{lost->lost(), [&] {
                               called.count_down();
                               wake_up.wait();
                             }};
    EXPECT_TRUE(eventually([&] { return called.try_wait(); }));
    EXPECT_TRUE(throughout(3 * ttl / 2, [&] { return healthy->is_alive(); }));
    wake_up.count_down();
  });
}

TEST_P(Loss, ALateUnlockOfOneThreadLeavesAnothersLeaseAlone) {
  auto client = open();
  Mutex mutex{*client, name(), {.ttl = harness().shortest_ttl(), .renew = false}};
  Mutex lasting{*client, name()};
  std::latch locked{1};
  std::latch taken{1};
  auto late = in_background([&] {
    mutex.lock();
    harness().let_expire(*mutex.lease());
    locked.count_down();
    taken.wait();
    mutex.unlock();
  });
  locked.wait();
  lasting.lock();  // the same name in the same process
  taken.count_down();
  late.get();
  ASSERT_THAT(client->flush(), IsOk());
  EXPECT_TRUE(lasting.lease()->is_alive());
  EXPECT_TRUE(is_seen_held(*lasting.lease()));
  EXPECT_THAT(open()->try_acquire(name()), FailsWith(ErrorCode::busy));
  lasting.unlock();
}

TEST_P(Loss, ALateUnlockInTheSameMutexLeavesTheOtherThreadAlone) {
  auto client = open();
  Mutex mutex{*client, name(), {.ttl = harness().renewable_ttl()}};
  std::latch lost{1};
  std::latch taken{1};
  auto late = in_background([&] {
    mutex.lock();
    ASSERT_THAT(bystander().force_release(name(), Force::now), IsOk());
    EXPECT_TRUE(await_loss(*mutex.lease()));
    lost.count_down();
    taken.wait();
    mutex.unlock();
    EXPECT_EQ(mutex.lease(), nullptr);
  });
  lost.wait();
  mutex.lock();
  taken.count_down();
  late.get();
  ASSERT_THAT(client->flush(), IsOk());
  ASSERT_NE(mutex.lease(), nullptr);
  EXPECT_TRUE(mutex.lease()->is_alive());
  EXPECT_TRUE(is_seen_held(*mutex.lease()));
  mutex.unlock();
}

// The first holder's grant is gone; passing it on inside the process would put
// two holders inside.
TEST_P(Loss, NothingIsHandedOverAfterALoss) {
  auto one = open();
  auto other = open();
  std::atomic<int> inside = 0;
  const auto visit = [&](Client& client) {
    auto mine = client.acquire(name(), {.ttl = harness().renewable_ttl(), .wait = kPatience});
    ASSERT_THAT(mine, IsOk());
    EXPECT_EQ(++inside, 1);
    EXPECT_TRUE(is_seen_held(*mine));
    std::this_thread::sleep_for(20ms);
    --inside;
  };
  for (const Force how : {Force::now, Force::revoke}) {
    auto lease = one->acquire(name(), {.ttl = harness().renewable_ttl(), .wait = kPatience});
    ASSERT_THAT(lease, IsOk());
    auto neighbour = in_background([&] { visit(*one); });
    auto stranger = in_background([&] { visit(*other); });
    ASSERT_TRUE(eventually([&] { return !seen().queue.empty(); }));
    ASSERT_THAT(bystander().force_release(name(), how), IsOk());
    ASSERT_TRUE(await_loss(*lease));
    std::ignore = lease->release();
    neighbour.get();
    stranger.get();
  }
}

}  // namespace
}  // namespace holdfast::test
