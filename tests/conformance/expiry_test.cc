// What every engine owes its callers once a lease runs out.
#include "conformance/conformance.h"

namespace holdfast::test {
namespace {

class Expiry : public Conformance {
 protected:
  AcquireOptions brief() { return {.ttl = harness().shortest_ttl(), .renew = false}; }
};
HOLDFAST_RUN_ON(Expiry, harnesses_with(&Claims::lease));

TEST_P(Expiry, ExpiredLockPassesToTheNextOwnerWithAHigherToken) {
  auto first = open()->acquire(name(), brief());
  ASSERT_THAT(first, IsOk());
  harness().let_expire(*first);

  auto second = open()->acquire(name(), {.wait = kPatience});
  ASSERT_THAT(second, IsOk());
  if (claims().token) {
    EXPECT_GT(second->token(), first->token());
  }
}

TEST_P(Expiry, WhoWaitsIsLetInWithoutAnybodysRelease) {
  auto one = open();
  auto first = one->acquire(name(), brief());
  ASSERT_THAT(first, IsOk());
  auto second = open()->acquire(name(), {.wait = kPatience});
  ASSERT_THAT(second, IsOk());
  EXPECT_FALSE(first->is_alive());
  EXPECT_TRUE(is_seen_held(*second));
}

TEST_P(Expiry, WhoWaitsInTheSameClientIsLetInToo) {
  auto one = open();
  auto first = one->acquire(name(), brief());
  ASSERT_THAT(first, IsOk());
  auto second = one->acquire(name(), {.wait = kPatience});
  ASSERT_THAT(second, IsOk());
  EXPECT_FALSE(first->is_alive());
  EXPECT_TRUE(is_seen_held(*second));
  if (claims().token) {
    EXPECT_GT(second->token(), first->token());
  }
}

TEST_P(Expiry, AnExpiredLeaseIsNeverRevived) {
  auto one = open();
  auto lease = one->acquire(name(), brief());
  ASSERT_THAT(lease, IsOk());
  harness().let_expire(*lease);
  // Nobody else wants it, and still it is gone for good.
  EXPECT_TRUE(throughout(2 * harness().shortest_ttl(), [&] {
    return !lease->is_alive() && lease->remaining() == Duration::zero() && seen().holders.empty();
  }));
}

// The client's deadline, less the margin for drift, against the store's own.
TEST_P(Expiry, TheHolderCountsOnLessTimeThanTheStoreGives) {
  auto client = open();
  auto lease = client->acquire(name(), {.ttl = 20s, .renew = false});
  ASSERT_THAT(lease, IsOk());
  const auto blur_until = std::chrono::steady_clock::now() + 5s;
  const bool compared = eventually([&] {
    const auto before = std::chrono::steady_clock::now();
    const Duration counted_on = lease->remaining();
    const LockInfo info = seen();
    const Duration between = std::chrono::steady_clock::now() - before;
    if (between > 20ms && before < blur_until) return false;  // tells little; look again
    EXPECT_EQ(info.holders.size(), 1U);
    if (!info.holders.empty()) {
      EXPECT_LT(counted_on + 100ms, info.holders[0].expires_in + between);
    }
    return true;
  });
  EXPECT_TRUE(compared);
}

// A grant that is pushed to a waiter starts with a shorter lease: the waiter's
// own count must not be more generous than the store.
TEST_P(Expiry, SoDoesAHolderThatWaited) {
  auto one = open();
  auto other = open();
  auto first = one->acquire(name());
  ASSERT_THAT(first, IsOk());
  auto waiter = acquire_later(*other, name(), {.ttl = 9s});
  ASSERT_TRUE(await_waiters(1));
  ASSERT_THAT(first->release(), IsOk());
  auto second = waiter.get();
  ASSERT_THAT(second, IsOk());
  const auto blur_until = std::chrono::steady_clock::now() + 5s;
  int compared = 0;
  EXPECT_TRUE(eventually([&] {
    const auto before = std::chrono::steady_clock::now();
    const Duration counted_on = second->remaining();
    const LockInfo info = seen();
    const Duration between = std::chrono::steady_clock::now() - before;
    if (between > 10ms && before < blur_until) return false;
    EXPECT_EQ(info.holders.size(), 1U);
    if (!info.holders.empty()) {
      EXPECT_LT(counted_on + 20ms, info.holders[0].expires_in + between);
    }
    return ++compared == 5;
  }));
}

}  // namespace
}  // namespace holdfast::test
