// At most one unexpired exclusive grant of a name, whoever asks and however
// many ask at once.
#include <atomic>
#include <vector>

#include "conformance/conformance.h"
#include "support/fenced_file.h"
#include "support/temp_dir.h"
#include "support/worker_process.h"

namespace holdfast::test {
namespace {

class Exclusion : public Conformance {};
class ExclusionBetweenProcesses : public Conformance {};
HOLDFAST_RUN_ON(Exclusion, harnesses());
HOLDFAST_RUN_ON(ExclusionBetweenProcesses, harnesses_with(&Claims::processes));

TEST_P(Exclusion, AnotherClientIsRefusedUntilRelease) {
  auto first = open();
  auto second = open();
  auto lease = first->acquire(name());
  ASSERT_THAT(lease, IsOk());
  EXPECT_THAT(second->try_acquire(name()), FailsWith(ErrorCode::busy));

  ASSERT_THAT(lease->release(), IsOk());
  EXPECT_THAT(second->try_acquire(name()), IsOk());
}

TEST_P(Exclusion, TheSameClientIsRefusedTooUntilRelease) {
  auto client = open();
  auto lease = client->acquire(name());
  ASSERT_THAT(lease, IsOk());
  EXPECT_THAT(client->try_acquire(name()), FailsWith(ErrorCode::busy));

  ASSERT_THAT(lease->release(), IsOk());
  EXPECT_THAT(client->try_acquire(name()), IsOk());
}

TEST_P(Exclusion, OtherNamesAreOtherLocks) {
  auto client = open();
  auto one = client->try_acquire(name());
  auto other = client->try_acquire(harness().fresh_name());
  EXPECT_THAT(one, IsOk());
  EXPECT_THAT(other, IsOk());
}

TEST_P(Exclusion, ThreadsOfSeveralClientsAreNeverInsideTogether) {
  constexpr int kClients = 3;
  constexpr int kThreads = 3;
  constexpr int kTurns = 25;
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < kClients; ++i) clients.push_back(open());

  std::atomic<int> inside = 0;
  std::atomic<bool> overlapped = false;
  int turns = 0;  // unprotected but by the lock
  std::vector<std::future<void>> work;
  for (int i = 0; i < kClients * kThreads; ++i) {
    Client& client = *clients[static_cast<std::size_t>(i % kClients)];
    work.push_back(in_background([&] {
      for (int turn = 0; turn < kTurns; ++turn) {
        auto lease = client.acquire(name(), {.wait = kPatience});
        ASSERT_THAT(lease, IsOk());
        if (++inside != 1) overlapped = true;
        ++turns;
        --inside;
      }
    }));
  }
  for (auto& each : work) each.get();
  EXPECT_FALSE(overlapped);
  EXPECT_EQ(turns, kClients * kThreads * kTurns);
}

// They also create the store, all at the same time.
TEST_P(ExclusionBetweenProcesses, ProcessesAreNeverInsideTogetherAndTokensRise) {
  constexpr int kWorkers = 4;
  constexpr int kTurns = 40;
  const TempDir dir;
  const std::string file = dir / "log";
  std::vector<std::unique_ptr<WorkerProcess>> workers;
  for (int i = 0; i < kWorkers; ++i) {
    workers.push_back(std::make_unique<WorkerProcess>(harness().url()));
    workers.back()->send("cycle " + name() + " " + std::to_string(kTurns) + " " + file);
  }
  for (auto& worker : workers) worker->expect_ok_answer();  // it checks that it was alone

  const auto entries = FencedFile{file}.entries();
  ASSERT_EQ(entries.size(), std::size_t{kWorkers * kTurns});
  for (std::size_t i = 1; claims().token && i < entries.size(); ++i) {
    EXPECT_GT(entries[i].token, entries[i - 1].token);
  }
}

}  // namespace
}  // namespace holdfast::test
