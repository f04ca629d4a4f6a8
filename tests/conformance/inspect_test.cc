// What people and tools are shown, and what they may force.
#include <unistd.h>

#include "conformance/conformance.h"

namespace holdfast::test {
namespace {

class Inspect : public Conformance {};
class InspectShared : public Conformance {};
class InspectPermits : public Conformance {};
HOLDFAST_RUN_ON(Inspect, harnesses());
HOLDFAST_RUN_ON(InspectShared, harnesses_with(&Claims::shared));
HOLDFAST_RUN_ON(InspectPermits, harnesses_with(&Claims::permits));

TEST_P(Inspect, AHolderIsShownWithAllThatIsKnown) {
  auto client = harness().open({.label = "night shift"});
  auto lease = client->acquire(name(), {.ttl = ttl(20s)});
  ASSERT_THAT(lease, IsOk());
  const LockInfo info = seen();
  EXPECT_EQ(info.name, name());
  EXPECT_EQ(info.limit, 0U);
  EXPECT_TRUE(info.queue.empty());
  ASSERT_EQ(info.holders.size(), 1U);
  const HolderInfo& holder = info.holders[0];
  EXPECT_EQ(holder.party.label, "night shift");
  EXPECT_EQ(holder.party.pid, ::getpid());
  EXPECT_FALSE(holder.party.host.empty());
  EXPECT_EQ(holder.mode, Mode::exclusive);
  EXPECT_EQ(holder.permits, 1U);
  EXPECT_EQ(holder.token, lease->token());
  EXPECT_FALSE(holder.revoked);
  EXPECT_GE(holder.held_for, Duration::zero());
  EXPECT_GT(holder.expires_in, Duration::zero());
  EXPECT_LE(holder.expires_in, 20s);
  EXPECT_TRUE(eventually([&] { return seen().holders[0].held_for > holder.held_for; }));
}

TEST_P(Inspect, TheQueueIsShownInOrder) {
  if (!claims().fair) return;
  auto holder = open();
  auto lease = holder->acquire(name());
  ASSERT_THAT(lease, IsOk());
  auto first = harness().open({.label = "first"});
  auto second = harness().open({.label = "second"});
  auto one = acquire_later(*first, name());
  ASSERT_TRUE(await_waiters(1));
  auto two = acquire_later(*second, name());
  ASSERT_TRUE(await_waiters(2));
  const LockInfo info = seen();
  EXPECT_EQ(info.queue[0].party.label, "first");
  EXPECT_EQ(info.queue[1].party.label, "second");
  EXPECT_GE(info.queue[0].waiting_for, info.queue[1].waiting_for);
  EXPECT_EQ(info.queue[0].party.pid, ::getpid());
  ASSERT_THAT(lease->release(), IsOk());
  EXPECT_THAT(one.get(), IsOk());
  EXPECT_THAT(two.get(), IsOk());
}

TEST_P(Inspect, ANameThatNobodyUsesIsEmptyAndNotListed) {
  auto client = open();
  auto info = client->show(name());
  ASSERT_THAT(info, IsOk());
  EXPECT_EQ(info->name, name());
  EXPECT_TRUE(info->holders.empty());
  EXPECT_TRUE(info->queue.empty());
  EXPECT_TRUE(await_nothing_left());
}

TEST_P(Inspect, LookingIsNotTouching) {
  if (!claims().lease) return;
  auto client = open();
  auto lease = client->acquire(name(), {.ttl = 20s, .renew = false});
  ASSERT_THAT(lease, IsOk());
  const LockInfo before = seen();
  ASSERT_EQ(before.holders.size(), 1U);
  EXPECT_TRUE(eventually([&] {
    const LockInfo now = seen();
    return now.holders.size() == 1 && now.holders[0].expires_in < before.holders[0].expires_in;
  })) << "a look prolonged the lease";
  EXPECT_THAT(client->list(name()).value(), ::testing::SizeIs(1));
}

TEST_P(Inspect, ExpiredHoldersAreNotShown) {
  if (!claims().lease) return;
  auto client = open();
  auto lease = client->acquire(name(), {.ttl = harness().shortest_ttl(), .renew = false});
  ASSERT_THAT(lease, IsOk());
  EXPECT_TRUE(await_holders(0));
  EXPECT_TRUE(await_nothing_left());
}

TEST_P(Inspect, ForcingWhatNobodyHoldsCountsNone) {
  auto client = open();
  EXPECT_EQ(client->force_release(name()).value_or(9), 0U);
  EXPECT_EQ(client->force_release(name(), Force::now).value_or(9), 0U);
  EXPECT_TRUE(await_nothing_left());
}

TEST_P(Inspect, AForcedReleaseLetsTheQueueAdvance) {
  auto one = open();
  auto other = open();
  auto lease = one->acquire(name());
  ASSERT_THAT(lease, IsOk());
  auto waiter = acquire_later(*other, name());
  ASSERT_TRUE(await_waiters(1));
  EXPECT_EQ(bystander().force_release(name(), Force::now).value_or(0), 1U);
  auto next = waiter.get();
  ASSERT_THAT(next, IsOk());
  EXPECT_TRUE(is_seen_held(*next));
}

TEST_P(Inspect, SettingUpTwiceDoesNoHarm) {
  auto client = open();
  auto lease = client->acquire(name());
  ASSERT_THAT(lease, IsOk());
  EXPECT_THAT(client->init(), IsOk());
  EXPECT_THAT(client->init(), IsOk());
  EXPECT_TRUE(is_seen_held(*lease));
  auto script = client->init_script();
  ASSERT_THAT(script, IsOk());
  EXPECT_FALSE(script->empty());
}

TEST_P(Inspect, TheDoctorFindsNoProblemInAFreshStore) {
  const auto findings = open()->doctor();
  EXPECT_FALSE(findings.empty());
  for (const Finding& finding : findings) {
    EXPECT_FALSE(finding.topic.empty());
    EXPECT_FALSE(finding.text.empty());
    EXPECT_NE(finding.level, Finding::Level::problem) << finding.topic << ": " << finding.text;
    if (finding.level != Finding::Level::ok) {
      EXPECT_FALSE(finding.advice.empty());
    }
  }
}

TEST_P(Inspect, CapabilitiesAreThoseOfTheEngine) {
  auto client = open();
  EXPECT_EQ(client->capabilities().engine, GetParam().engine);
  EXPECT_EQ(client->capabilities().strategy, GetParam().strategy);
}

TEST_P(InspectShared, ReadersAreShownAndForcedOneAndAll) {
  auto one = open();
  auto other = open();
  const AcquireOptions reader{.mode = Mode::shared};
  auto first = one->acquire(name(), reader);
  auto second = other->acquire(name(), reader);
  ASSERT_THAT(second, IsOk());
  const LockInfo info = seen();
  ASSERT_EQ(info.holders.size(), 2U);
  EXPECT_EQ(info.holders[0].mode, Mode::shared);
  EXPECT_EQ(bystander().force_release(name()).value_or(0), 2U);
  EXPECT_TRUE(eventually([&] { return first->loss() == LossReason::revoked; }));
  EXPECT_TRUE(eventually([&] { return second->loss() == LossReason::revoked; }));
  EXPECT_THAT(bystander().try_acquire(name(), reader), FailsWith(ErrorCode::busy))
      << "no new grant beside revoked ones, of whatever kind";
  ASSERT_THAT(first->release(), IsOk());
  EXPECT_THAT(bystander().try_acquire(name(), reader), FailsWith(ErrorCode::busy));
  ASSERT_THAT(second->release(), IsOk());
  EXPECT_THAT(bystander().try_acquire(name(), reader), IsOk());
}

TEST_P(InspectPermits, ASemaphoreIsShownWithItsTotal) {
  auto client = open();
  auto lease = client->acquire(name(), {.mode = Mode::permits, .permits = 2, .of = 5});
  ASSERT_THAT(lease, IsOk());
  const LockInfo info = seen();
  EXPECT_EQ(info.limit, 5U);
  ASSERT_EQ(info.holders.size(), 1U);
  EXPECT_EQ(info.holders[0].mode, Mode::permits);
  EXPECT_EQ(info.holders[0].permits, 2U);
}

}  // namespace
}  // namespace holdfast::test
