// Waiters are told when it is their turn. Here nobody polls, and heartbeats are
// minutes apart: whoever is not told waits for longer than the test does.
#include "conformance/conformance.h"
#include "support/worker_process.h"

namespace holdfast::test {
namespace {

class Waking : public Conformance {
 protected:
  std::unique_ptr<Client> open_without_poll() {
    return harness().open({.label = "", .backstop_poll = 1h});
  }
  AcquireOptions lasting() const { return {.ttl = ttl(1h)}; }
};
class WakingProcesses : public Waking {};
HOLDFAST_RUN_ON(Waking, harnesses_with(&Claims::event, &Claims::lease));
HOLDFAST_RUN_ON(WakingProcesses, harnesses_with(&Claims::event, &Claims::processes));

TEST_P(Waking, AReleaseWakesTheNext) {
  auto one = open_without_poll();
  auto other = open_without_poll();
  for (int turn = 0; turn < 10; ++turn) {
    auto lease = one->acquire(name(), lasting());
    ASSERT_THAT(lease, IsOk());
    auto waiter = acquire_later(*other, name(), lasting());
    ASSERT_TRUE(await_waiters(1));
    ASSERT_THAT(lease->release(), IsOk());
    auto next = waiter.get();
    ASSERT_THAT(next, IsOk());
    ASSERT_THAT(next->release(), IsOk());
  }
}

TEST_P(Waking, AnExpiryWakesTheNextThoughNobodyActs) {
  auto one = open_without_poll();
  auto other = open_without_poll();
  auto lease = one->acquire(name(), {.ttl = harness().shortest_ttl(), .renew = false});
  ASSERT_THAT(lease, IsOk());
  EXPECT_THAT(other->acquire(name(), {.ttl = 1h, .wait = kPatience}), IsOk());
}

TEST_P(Waking, AHolderThatRenewedAndThenEndedWakesTheNextLongRun) {
  auto one = open_without_poll();
  auto other = open_without_poll();
  const Duration ttl = harness().renewable_ttl();
  auto lease = one->acquire(name(), {.ttl = ttl, .max_hold = ttl});
  ASSERT_THAT(lease, IsOk());
  EXPECT_THAT(other->acquire(name(), {.ttl = 1h, .wait = kPatience}), IsOk());
}

TEST_P(Waking, ACancelledWaiterWakesTheNext) {
  auto one = open_without_poll();
  auto other = open_without_poll();
  auto third = open_without_poll();
  auto reader = one->acquire(name(), {.ttl = 1h, .mode = Mode::shared});
  if (!claims().shared) return;
  ASSERT_THAT(reader, IsOk());
  std::stop_source stop;
  auto writer = acquire_later(*other, name(), {.ttl = 1h, .stop = stop.get_token()});
  ASSERT_TRUE(await_waiters(1));
  auto late = acquire_later(*third, name(), {.ttl = 1h, .mode = Mode::shared});
  ASSERT_TRUE(await_waiters(2));
  stop.request_stop();
  EXPECT_THAT(writer.get(), FailsWith(ErrorCode::cancelled));
  EXPECT_THAT(late.get(), IsOk()) << "nothing stands between the readers any more";
}

TEST_P(Waking, ARevokedHolderIsTold) {
  auto one = open_without_poll();
  auto lease = one->acquire(name(), lasting());
  ASSERT_THAT(lease, IsOk());
  ASSERT_THAT(bystander().force_release(name()), IsOk());
  EXPECT_TRUE(eventually([&] { return lease->loss() == LossReason::revoked; }));
}

TEST_P(WakingProcesses, AReleaseInAnotherProcessWakesTheNext) {
  WorkerProcess worker{harness().url()};
  auto client = open_without_poll();
  for (int turn = 0; turn < 5; ++turn) {
    worker.expect_token("acquire a " + name() + ttl_word(1h));
    auto waiter = acquire_later(*client, name(), lasting());
    ASSERT_TRUE(await_waiters(1));
    worker.expect_ok("release a");
    auto lease = waiter.get();
    ASSERT_THAT(lease, IsOk());

    worker.send("acquire a " + name() + ttl_word(1h));
    ASSERT_TRUE(await_waiters(1));
    ASSERT_THAT(lease->release(), IsOk());
    worker.expect_ok_answer();
    worker.expect_ok("release a");
  }
}

}  // namespace
}  // namespace holdfast::test
