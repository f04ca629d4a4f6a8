// A lease lives as long as it is renewed, and renewal has its bounds.
#include <atomic>
#include <latch>
#include <stdexcept>
#include <vector>

#include "conformance/conformance.h"

namespace holdfast::test {
namespace {

class Renewal : public Conformance {
 protected:
  // The longest that the store saw name() held before it came free.
  Duration longest_hold() {
    Duration longest{};
    const bool ended = eventually([&] {
      const LockInfo info = seen();
      if (!info.holders.empty()) longest = std::max(longest, info.holders[0].held_for);
      return info.holders.empty();
    });
    EXPECT_TRUE(ended) << "renewed for ever";
    return longest;
  }

  // Renewal must end because of the health check, and the caller must hear of it.
  void expect_end_by(std::function<bool()> check) {
    auto client = open();
    auto lease = client->acquire(
        name(), {.ttl = 300ms, .health_check = std::move(check), .health_timeout = 50ms});
    ASSERT_THAT(lease, IsOk());
    EXPECT_TRUE(eventually([&] { return lease->lost().stop_requested(); }));
    EXPECT_EQ(lease->loss(), LossReason::not_renewed);
    harness().let_expire(*lease);
    EXPECT_FALSE(lease->is_alive());
  }
};
HOLDFAST_RUN_ON(Renewal, harnesses_with(&Claims::lease));

TEST_P(Renewal, ALeaseLivesPastItsTtlLongRun) {
  given_time([&](int scale) {
    const Duration ttl = scale * harness().renewable_ttl();
    auto client = open();
    auto lease = client->acquire(name(), {.ttl = ttl});
    ASSERT_THAT(lease, IsOk());
    const auto token = lease->token();
    EXPECT_TRUE(throughout(5 * ttl / 2, [&] { return lease->is_alive() && is_seen_held(*lease); }));
    EXPECT_FALSE(lease->lost().stop_requested());
    EXPECT_EQ(lease->token(), token);
    EXPECT_THAT(lease->release(), IsOk());
  });
}

TEST_P(Renewal, ManyLeasesOfOneClientLivePastTheirTtlLongRun) {
  given_time([&](int scale) {
    const Duration ttl = 2 * scale * harness().renewable_ttl();  // some renew them one by one
    auto client = open();
    std::vector<Lease> leases;
    for (int i = 0; i < 100; ++i) {
      auto lease = client->acquire(harness().fresh_name(), {.ttl = ttl});
      ASSERT_THAT(lease, IsOk());
      leases.push_back(std::move(*lease));
    }
    const auto all_alive = [&] {
      return std::all_of(leases.begin(), leases.end(),
                         [](const Lease& lease) { return lease.is_alive(); });
    };
    EXPECT_TRUE(throughout(2 * ttl, all_alive));
  });
}

TEST_P(Renewal, ALeaseOutlivesTheClientThatMadeItLongRun) {
  given_time([&](int scale) {
    const Duration ttl = scale * harness().renewable_ttl();
    auto lease = open()->acquire(name(), {.ttl = ttl});
    ASSERT_THAT(lease, IsOk());
    EXPECT_TRUE(throughout(3 * ttl / 2, [&] { return lease->is_alive() && is_seen_held(*lease); }));
    EXPECT_THAT(lease->release(), IsOk());
    EXPECT_TRUE(seen().holders.empty());
  });
}

TEST_P(Renewal, WithoutRenewalItEndsAtItsTtl) {
  auto client = open();
  auto lease = client->acquire(name(), {.ttl = harness().shortest_ttl(), .renew = false});
  ASSERT_THAT(lease, IsOk());
  longest_hold();
  EXPECT_FALSE(lease->is_alive());
}

TEST_P(Renewal, AtMaxHoldRenewalStopsAndTheLeaseRunsOutLongRun) {
  const Duration ttl = 2 * harness().renewable_ttl();
  auto client = open();
  auto lease = client->acquire(name(), {.ttl = ttl, .max_hold = 3 * ttl / 2});
  ASSERT_THAT(lease, IsOk());
  const Duration longest = longest_hold();
  if (GetParam().strategy != "timestamp") {  // it keeps when a lock was last renewed, not taken
    EXPECT_GT(longest, ttl) << "renewal stopped before max_hold";
  }
  EXPECT_TRUE(eventually([&] { return lease->lost().stop_requested(); }));
  EXPECT_EQ(lease->loss(), LossReason::not_renewed);
  EXPECT_FALSE(lease->is_alive());
}

TEST_P(Renewal, AFailedHealthCheckEndsIt) {
  expect_end_by([] { return false; });
}

TEST_P(Renewal, AThrowingHealthCheckEndsIt) {
  expect_end_by([]() -> bool { throw std::runtime_error{"not well"}; });
}

// The check hangs, and yet neither the verdict nor other leases wait for it.
TEST_P(Renewal, AHangingHealthCheckEndsItAndNothingElse) {
  given_time([&](int scale) {
    auto wake_up = std::make_shared<std::latch>(1);
    const Duration ttl = scale * harness().renewable_ttl();
    auto client = open();
    auto healthy = client->acquire(harness().fresh_name(), {.ttl = ttl});
    ASSERT_THAT(healthy, IsOk());
    auto sick = client->acquire(name(), {.ttl = ttl / 2,
                                         .health_check =
                                             [wake_up] {
                                               wake_up->wait();
                                               return true;
                                             },
                                         .health_timeout = 50ms});
    ASSERT_THAT(sick, IsOk());
    EXPECT_TRUE(eventually([&] { return sick->lost().stop_requested(); }));
    EXPECT_EQ(sick->loss(), LossReason::not_renewed);
    EXPECT_TRUE(throughout(ttl, [&] { return healthy->is_alive(); }));
    EXPECT_FALSE(wake_up->try_wait());
    wake_up->count_down();
  });
}

TEST_P(Renewal, AHealthyHolderIsAskedEachTimeAndLivesOnLongRun) {
  given_time([&](int scale) {
    const Duration ttl = scale * harness().renewable_ttl();
    auto asked = std::make_shared<std::atomic<int>>(0);
    auto client = open();
    auto lease =
        client->acquire(name(), {.ttl = ttl, .health_check = [asked] { return ++*asked; }});
    ASSERT_THAT(lease, IsOk());
    EXPECT_TRUE(throughout(3 * ttl / 2, [&] { return lease->is_alive(); }));
    EXPECT_GE(*asked, 2);
    EXPECT_THAT(lease->release(), IsOk());
    const int at_release = *asked;
    EXPECT_TRUE(throughout(ttl / 2, [&] { return *asked <= at_release + 1; }));
  });
}

// Released in every phase of its renewals, it must not come back to life.
TEST_P(Renewal, ARenewalNeverRevivesAReleasedLock) {
  const Duration ttl = harness().shortest_ttl();
  auto client = open();
  for (int turn = 0; turn < 30; ++turn) {
    auto lease = client->acquire(harness().fresh_name(), {.ttl = ttl});
    ASSERT_THAT(lease, IsOk());
    std::this_thread::sleep_for(turn * ttl / 60);
    lease->release_in_background();
  }
  ASSERT_THAT(client->flush(), IsOk());
  ASSERT_TRUE(await_nothing_left());
  EXPECT_TRUE(throughout(ttl, [&] {
    auto left = bystander().list(harness().name_prefix());
    return left && left->empty();
  }));
}

}  // namespace
}  // namespace holdfast::test
