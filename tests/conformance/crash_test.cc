// A process that dies costs the others its ttl, and nothing else.
#include <vector>

#include "conformance/conformance.h"
#include "support/fenced_file.h"
#include "support/temp_dir.h"
#include "support/worker_process.h"

namespace holdfast::test {
namespace {

class Crash : public Conformance {};
class CrashWithinTtl : public Conformance {};
class CrashOfASession : public Conformance {};
class CrashInTheQueue : public Conformance {};
HOLDFAST_RUN_ON(Crash, harnesses_with(&Claims::processes));
HOLDFAST_RUN_ON(CrashWithinTtl, harnesses_with(&Claims::processes, &Claims::survives));
HOLDFAST_RUN_ON(CrashOfASession, harnesses_without(&Claims::survives));
HOLDFAST_RUN_ON(CrashInTheQueue, harnesses_with(&Claims::processes, &Claims::fair));

TEST_P(Crash, AKilledHoldersLockPassesToWhoWaits) {
  WorkerProcess worker{harness().url()};
  const auto token = worker.expect_token("acquire a " + name() + ttl_word(1500ms));
  auto client = open();
  auto waiter = acquire_later(*client, name());
  ASSERT_TRUE(await_waiters(1));
  worker.kill();
  auto lease = waiter.get();
  ASSERT_THAT(lease, IsOk());
  if (claims().token) {
    EXPECT_GT(lease->token(), token);
  }
}

TEST_P(Crash, AKilledHoldersLockIsFreeForWhoComesLater) {
  WorkerProcess worker{harness().url()};
  worker.expect_token("acquire a " + name() + ttl_word(300ms));
  worker.kill();
  EXPECT_TRUE(await_holders(0));
  EXPECT_THAT(open()->try_acquire(name()), IsOk());
}

TEST_P(CrashWithinTtl, AKilledHolderKeepsOthersOut) {
  WorkerProcess worker{harness().url()};
  worker.expect_token("acquire a " + name() + ttl_word(60000ms));
  worker.kill();
  EXPECT_THAT(open()->acquire(name(), {.wait = 100ms}), FailsWith(ErrorCode::timed_out));
}

TEST_P(CrashOfASession, AKilledHoldersLockIsFreeWhateverItsTtl) {
  WorkerProcess worker{harness().url()};
  worker.expect_token("acquire a " + name() + " ttl=3600000");
  worker.kill();
  EXPECT_THAT(open()->acquire(name(), {.wait = kPatience}), IsOk());
}

TEST_P(Crash, AProcessThatEndsInGoodOrderLeavesNothing) {
  WorkerProcess worker{harness().url()};
  worker.expect_token("acquire a " + name());
  worker.expect_ok("close");
  EXPECT_THAT(open()->try_acquire(name()), IsOk());
  EXPECT_TRUE(await_nothing_left());
}

TEST_P(CrashInTheQueue, AKilledWaiterIsSkipped) {
  auto holder = open();
  auto lease = holder->acquire(name());
  ASSERT_THAT(lease, IsOk());
  WorkerProcess doomed{harness().url()};
  doomed.send("acquire a " + name() + ttl_word(600ms));
  ASSERT_TRUE(await_waiters(1));
  auto client = open();
  auto next = acquire_later(*client, name());
  ASSERT_TRUE(await_waiters(2));
  doomed.kill();
  ASSERT_THAT(lease->release(), IsOk());
  EXPECT_THAT(next.get(), IsOk());
}

TEST_P(CrashInTheQueue, AKilledWaiterLeavesTheQueueEvenIfNobodyReleases) {
  auto holder = open();
  auto lease = holder->acquire(name());
  ASSERT_THAT(lease, IsOk());
  WorkerProcess doomed{harness().url()};
  doomed.send("acquire a " + name() + ttl_word(600ms));
  ASSERT_TRUE(await_waiters(1));
  doomed.kill();
  EXPECT_TRUE(await_waiters(0));
}

// Somebody is always killed, at any point of its work; the others go on, alone
// inside and with rising tokens.
TEST_P(Crash, AStormOfKillsNeverLetsTwoInsideLongRun) {
  const TempDir dir;
  const std::string file = dir / "log";
  const std::string endless = "cycle " + name() + " 1000000 " + file + ttl_word(1s);
  const auto start = [&] {
    auto worker = std::make_unique<WorkerProcess>(harness().url());
    worker->send(endless);
    return worker;
  };
  std::vector<std::unique_ptr<WorkerProcess>> workers;
  for (int i = 0; i < 3; ++i) workers.push_back(start());
  const FencedFile log{file};
  for (std::size_t round = 0; round < 8; ++round) {
    const std::size_t before = log.entries().size();
    ASSERT_TRUE(eventually([&] {
      for (auto& worker : workers) worker->expect_silence();
      return log.entries().size() > before + 20;
    })) << "nobody gets in any more";
    workers[round % workers.size()]->kill();
    workers[round % workers.size()] = start();
  }
  for (auto& worker : workers) worker->kill();
  const auto entries = log.entries();
  for (std::size_t i = 1; claims().token && i < entries.size(); ++i) {
    EXPECT_GT(entries[i].token, entries[i - 1].token);
  }
  EXPECT_THAT(open()->acquire(name(), {.wait = kPatience}), IsOk());
}

}  // namespace
}  // namespace holdfast::test
