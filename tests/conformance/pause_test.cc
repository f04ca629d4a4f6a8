// A process that stands still for longer than its lease (a suspended laptop, a
// paused container) does no harm when it runs on.
#include "conformance/conformance.h"
#include "support/fenced_file.h"
#include "support/temp_dir.h"
#include "support/worker_process.h"

namespace holdfast::test {
namespace {

class Pause : public Conformance {};
class PauseInTheQueue : public Conformance {};
HOLDFAST_RUN_ON(Pause, harnesses_with(&Claims::processes, &Claims::lease));
HOLDFAST_RUN_ON(PauseInTheQueue, harnesses_with(&Claims::processes, &Claims::fair));

TEST_P(Pause, AStoppedHolderWakesUpKnowingThatItLost) {
  const TempDir dir;
  const FencedFile resource{dir / "resource"};
  WorkerProcess worker{harness().url()};
  worker.expect_token("acquire a " + name() + " ttl=300");
  EXPECT_EQ(worker.ask("write a " + (dir / "resource").string()), "ok accepted");
  worker.stop();
  auto next = open()->acquire(name(), {.wait = kPatience});
  ASSERT_THAT(next, IsOk());
  ASSERT_TRUE(resource.write(next->token().value_or(0), "next"));

  worker.resume();
  // It need not have seen the loss yet to know that it is not alive.
  EXPECT_THAT(worker.ask("status a"), ::testing::HasSubstr("alive=0"));
  EXPECT_TRUE(eventually([&] {
    return worker.ask("status a").find("lost=1") != std::string::npos;
  })) << worker.ask("status a");
  EXPECT_THAT(worker.ask("status a"), ::testing::Not(::testing::HasSubstr("loss=none")));
  EXPECT_THAT(worker.ask("release a"), ::testing::HasSubstr("error lease_lost"));
  EXPECT_TRUE(is_seen_held(*next));
  EXPECT_FALSE(next->lost().stop_requested());
  EXPECT_THAT(worker.ask("status a"), ::testing::HasSubstr("lost=1"));
}

// The worker does not even look at its lease: the fence alone turns it away.
TEST_P(Pause, TheFenceRefusesAStaleWrite) {
  if (!claims().token) return;
  const TempDir dir;
  const FencedFile resource{dir / "resource"};
  WorkerProcess worker{harness().url()};
  worker.expect_token("acquire a " + name() + " ttl=300");
  worker.stop();
  auto next = open()->acquire(name(), {.wait = kPatience});
  ASSERT_THAT(next, IsOk());
  ASSERT_TRUE(resource.write(*next->token(), "next"));
  worker.resume();
  EXPECT_EQ(worker.ask("write a " + (dir / "resource").string()), "ok refused");
  EXPECT_THAT(resource.entries(), ::testing::SizeIs(1));
}

TEST_P(Pause, AStoppedHolderIsNotRenewedBackToLifeIfNobodyCame) {
  WorkerProcess worker{harness().url()};
  worker.expect_token("acquire a " + name() + " ttl=300");
  worker.stop();
  ASSERT_TRUE(await_holders(0));
  worker.resume();
  EXPECT_THAT(worker.ask("status a"), ::testing::HasSubstr("alive=0"));
  EXPECT_TRUE(throughout(300ms, [&] { return seen().holders.empty(); }));
  EXPECT_THAT(worker.ask("release a"), ::testing::HasSubstr("error lease_lost"));
}

// Its place in the queue is gone, others came and went. It must not believe in
// a grant of that time; it lines up again.
TEST_P(PauseInTheQueue, AStoppedWaiterIsSkippedAndServedLater) {
  auto holder = open();
  auto lease = holder->acquire(name());
  ASSERT_THAT(lease, IsOk());
  WorkerProcess worker{harness().url()};
  worker.send("acquire a " + name() + ttl_word(300ms));
  ASSERT_TRUE(await_waiters(1));
  worker.stop();
  ASSERT_TRUE(await_waiters(0));
  ASSERT_THAT(lease->release(), IsOk());
  auto next = open()->acquire(name(), {.wait = kPatience});
  ASSERT_THAT(next, IsOk());

  worker.resume();
  ASSERT_TRUE(await_waiters(1)) << "it did not line up again";
  EXPECT_TRUE(is_seen_held(*next));
  ASSERT_THAT(next->release(), IsOk());
  const auto token = std::stoull(worker.expect_ok_answer());
  if (claims().token) {
    EXPECT_GT(token, next->token());
  }
  EXPECT_THAT(worker.ask("release a"), ::testing::StartsWith("ok"));
}

// Granted while it stood still: by the time it looks, the grant has lapsed.
TEST_P(PauseInTheQueue, AGrantThatLapsedMeanwhileIsNotDelivered) {
  auto holder = open();
  auto lease = holder->acquire(name());
  ASSERT_THAT(lease, IsOk());
  WorkerProcess worker{harness().url()};
  worker.send("acquire a " + name() + ttl_word(600ms));
  ASSERT_TRUE(await_waiters(1));
  worker.stop();
  ASSERT_THAT(lease->release(), IsOk());
  ASSERT_TRUE(await_holders(0) && await_waiters(0)) << "granted to the sleeper, and lapsed";
  auto next = open()->acquire(name(), {.wait = kPatience});
  ASSERT_THAT(next, IsOk());

  worker.resume();
  ASSERT_TRUE(await_waiters(1)) << "it said " << worker.answer();
  ASSERT_THAT(next->release(), IsOk());
  const auto token = std::stoull(worker.expect_ok_answer());
  if (claims().token) {
    EXPECT_GT(token, next->token());
  }
}

}  // namespace
}  // namespace holdfast::test
