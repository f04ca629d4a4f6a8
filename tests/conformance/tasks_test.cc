// Scheduled tasks: one of many hosts runs them, and the store remembers.
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "conformance/conformance.h"

namespace holdfast::test {
namespace {

using ::testing::HasSubstr;

class Tasks : public Conformance {
 protected:
  void SetUp() override {
    Conformance::SetUp();
    if (!IsSkipped()) bystander();  // memory: lives as long as somebody has it open
  }

  // Long enough that only a broken promise ends it.
  TaskGuard guard() const { return {.name = name(), .at_most_for = 1h}; }

  std::string lock() const { return "task:" + name(); }

  // Its lock is not among those that begin with our names.
  bool await_no_run() {
    return eventually([&] {
      const auto left = bystander().list("task:" + name());
      return left && left->empty();
    });
  }

  TaskRecord record() {
    auto all = list_tasks(bystander(), name());
    EXPECT_THAT(all, IsOk());
    if (!all || all->size() != 1) {
      ADD_FAILURE() << "there is no record";
      return {};
    }
    return all->front();
  }

  bool forget(Client& client) {
    const auto forgotten = forget_task(client, name());
    EXPECT_THAT(forgotten, IsOk());
    return forgotten.value_or(false);
  }

  TaskEnd run(Client& client, const TaskGuard& guard, const Result<void>& result = {}) {
    auto done = run_task(client, guard, [&](const TaskRun&) { return result; });
    EXPECT_THAT(done, IsOk());
    return done ? done->end : TaskEnd::lost;
  }
};
HOLDFAST_RUN_ON(Tasks, harnesses_with(&Claims::values));

class NoTasks : public Conformance {};
HOLDFAST_RUN_ON(NoTasks, harnesses_without(&Claims::values));

TEST_P(NoTasks, AreSaidToBeUnsupported) {
  const auto client = open();
  const auto refused = begin_task(*client, {.name = name(), .at_most_for = 1h});
  ASSERT_THAT(refused, FailsWith(ErrorCode::unsupported));
  EXPECT_THAT(refused.error().text, HasSubstr(std::string{GetParam().engine}));
  EXPECT_THAT(list_tasks(*client), FailsWith(ErrorCode::unsupported));
  EXPECT_THAT(forget_task(*client, name()), FailsWith(ErrorCode::unsupported));
}

TEST_P(Tasks, OneRunsAndTheOthersSkip) {
  const auto one = open();
  const auto other = open();
  auto start = begin_task(*one, guard());
  ASSERT_THAT(start, IsOk());
  ASSERT_TRUE(start->run);
  EXPECT_TRUE(start->run->lease().is_alive());
  EXPECT_EQ(record().last.status, TaskStatus::running);

  auto late = begin_task(*other, guard());
  ASSERT_THAT(late, IsOk());
  ASSERT_FALSE(late->run);
  EXPECT_EQ(late->skipped.end, TaskEnd::skipped);
  EXPECT_THAT(late->skipped.why, HasSubstr("running"));
  EXPECT_TRUE(late->skipped.until);

  const auto done = start->run->finish(TaskStatus::succeeded, "42 rows");
  EXPECT_EQ(done.end, TaskEnd::ran);
  EXPECT_EQ(run(*other, guard()), TaskEnd::ran);  // there was no bound
}

TEST_P(Tasks, ManyAtOnceRunOnce) {
  TaskGuard once = guard();
  once.once_per = 1h;
  std::atomic<int> ran = 0;
  std::atomic<int> skipped = 0;
  std::vector<std::unique_ptr<Client>> clients;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) clients.push_back(open());
  for (auto& client : clients) {
    threads.emplace_back([&] {
      const TaskEnd end = run(*client, once);
      ran += end == TaskEnd::ran ? 1 : 0;
      skipped += end == TaskEnd::skipped ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(skipped, 3);
}

TEST_P(Tasks, TheStoreRemembersTheLastRunAndTheOneBefore) {
  const auto client = open();
  EXPECT_EQ(run(*client, guard()), TaskEnd::ran);
  TaskRecord seen = record();
  EXPECT_EQ(seen.name, name());
  EXPECT_EQ(seen.last.status, TaskStatus::succeeded);
  ASSERT_TRUE(seen.last.end);
  EXPECT_LE(seen.last.begin, *seen.last.end);
  EXPECT_FALSE(seen.last.host.empty());
  EXPECT_GT(seen.last.pid, 0);
  EXPECT_FALSE(seen.previous);

  EXPECT_EQ(run(*client, guard(), fail(ErrorCode::unavailable, "no\nroute")), TaskEnd::failed);
  const TaskRecord next = record();
  EXPECT_EQ(next.last.status, TaskStatus::failed);
  EXPECT_EQ(next.last.message, "no route");
  ASSERT_TRUE(next.previous);
  EXPECT_EQ(next.previous->status, TaskStatus::succeeded);
  EXPECT_EQ(next.previous->begin, seen.last.begin);
  EXPECT_EQ(next.previous->end, seen.last.end);
  EXPECT_TRUE(await_no_run());
}

TEST_P(Tasks, AnExceptionIsAFailure) {
  const auto client = open();
  const auto done = run_task(*client, guard(), [](const TaskRun&) -> Result<void> {
    throw std::runtime_error{"out of paper"};
  });
  ASSERT_THAT(done, IsOk());
  EXPECT_EQ(done->end, TaskEnd::failed);
  EXPECT_EQ(done->why, "out of paper");
  EXPECT_EQ(record().last.message, "out of paper");
}

TEST_P(Tasks, AShortRunIsNotRepeatedBeforeAtLeast) {
  const auto client = open();
  TaskGuard least = guard();
  least.at_least_for = 1h;
  EXPECT_EQ(run(*client, least, fail(ErrorCode::unavailable, "no")), TaskEnd::failed);
  auto again = begin_task(*client, least);
  ASSERT_THAT(again, IsOk());
  ASSERT_FALSE(again->run);
  EXPECT_THAT(again->skipped.why, HasSubstr("not long ago"));
  ASSERT_TRUE(again->skipped.until);
  EXPECT_GT(*again->skipped.until, std::chrono::system_clock::now() + 10min);
  EXPECT_GT(record().not_before, 10min);
  EXPECT_TRUE(await_no_run());  // it is the record that holds off, not the lock
}

TEST_P(Tasks, OncePerCountsRunsThatSucceeded) {
  const auto client = open();
  TaskGuard daily = guard();
  daily.once_per = 24h;
  EXPECT_EQ(run(*client, daily, fail(ErrorCode::unavailable, "no")), TaskEnd::failed);
  EXPECT_EQ(run(*client, daily), TaskEnd::ran);
  EXPECT_EQ(run(*client, daily), TaskEnd::skipped);
  EXPECT_EQ(run(*open(), daily), TaskEnd::skipped);
}

TEST_P(Tasks, RunAgainWhenItIsTime) {
  const auto client = open();
  TaskGuard often = guard();
  often.once_per = 1s;
  EXPECT_EQ(run(*client, often), TaskEnd::ran);
  EXPECT_TRUE(eventually([&] { return run(*client, often) == TaskEnd::ran; }));
}

TEST_P(Tasks, WhatIsForgottenMayRunAtOnce) {
  const auto client = open();
  TaskGuard daily = guard();
  daily.once_per = 24h;
  daily.at_least_for = 1h;
  EXPECT_FALSE(forget(*client)) << "there is none yet";
  EXPECT_EQ(run(*client, daily), TaskEnd::ran);
  EXPECT_EQ(run(*client, daily), TaskEnd::skipped);
  EXPECT_TRUE(forget(*open()));
  EXPECT_EQ(list_tasks(bystander(), name())->size(), 0U);
  EXPECT_EQ(run(*client, daily), TaskEnd::ran);
  EXPECT_FALSE(record().previous);
  EXPECT_EQ(run(*client, daily), TaskEnd::skipped) << "the new run counts again";
}

TEST_P(Tasks, WhatRunsIsNotForgotten) {
  const auto client = open();
  auto start = begin_task(*client, guard());
  ASSERT_THAT(start, IsOk());
  ASSERT_TRUE(start->run);
  EXPECT_THAT(forget_task(*open(), name()), FailsWith(ErrorCode::busy));
  EXPECT_EQ(record().last.status, TaskStatus::running);
  EXPECT_EQ(start->run->finish(TaskStatus::succeeded).end, TaskEnd::ran);
  EXPECT_TRUE(forget(*client));
}

// It still counts as running in its record.
TEST_P(Tasks, ALostRunCanBeForgotten) {
  auto client = open();
  {
    auto start = begin_task(*client, guard());
    ASSERT_THAT(start, IsOk());
    ASSERT_TRUE(start->run);
  }
  ASSERT_TRUE(await_no_run());
  EXPECT_TRUE(forget(*client));
  EXPECT_EQ(run(*client, guard()), TaskEnd::ran);
}

TEST_P(Tasks, ARunThatIsNotHeardOfAgainIsLost) {
  auto client = open();
  {
    auto start = begin_task(*client, guard());
    ASSERT_THAT(start, IsOk());
    ASSERT_TRUE(start->run);
  }
  ASSERT_TRUE(await_no_run());
  EXPECT_EQ(record().last.status, TaskStatus::lost);
  EXPECT_EQ(run(*client, guard()), TaskEnd::ran);
  const TaskRecord seen = record();
  EXPECT_EQ(seen.last.status, TaskStatus::succeeded);
  ASSERT_TRUE(seen.previous);
  EXPECT_EQ(seen.previous->status, TaskStatus::lost);
  EXPECT_THAT(seen.previous->message, HasSubstr("died"));
}

TEST_P(Tasks, ALateRunDoesNotTouchTheRecordOfItsSuccessor) {
  const auto one = open();
  const auto other = open();
  auto stale = begin_task(*one, guard());
  ASSERT_THAT(stale, IsOk());
  ASSERT_THAT(other->force_release(lock(), Force::now), IsOk());
  auto fresh = begin_task(*other, guard());
  ASSERT_THAT(fresh, IsOk());
  ASSERT_TRUE(fresh->run);
  EXPECT_EQ(stale->run->finish(TaskStatus::succeeded).end, TaskEnd::lost);
  EXPECT_EQ(record().last.status, TaskStatus::running);
  EXPECT_EQ(fresh->run->finish(TaskStatus::succeeded).end, TaskEnd::ran);
  EXPECT_EQ(record().last.status, TaskStatus::succeeded);
}

TEST_P(Tasks, ARunIsToldToStopBeforeAtMost) {
  const auto client = open();
  const TaskGuard brief{.name = name(), .at_most_for = ttl(harness().shortest_ttl())};
  const auto done = run_task(*client, brief, [](const TaskRun& run) -> Result<void> {
    EXPECT_TRUE(eventually([&] { return run.lease().lost().stop_requested(); }));
    return {};
  });
  ASSERT_THAT(done, IsOk());
  EXPECT_EQ(done->end, TaskEnd::lost);
  EXPECT_THAT(done->why, HasSubstr("lost"));
  EXPECT_EQ(record().last.status, TaskStatus::lost);
}

TEST_P(Tasks, ARunMayTakeLongerThanItsLease) {
  const auto client = open();
  const Duration lease = harness().renewable_ttl();
  auto start = begin_task(*client, {.name = name(), .at_most_for = lease * 1000});
  ASSERT_THAT(start, IsOk());
  ASSERT_TRUE(start->run);
  EXPECT_LE(start->run->ttl(), kDefaultTtl);
  EXPECT_EQ(start->run->finish(TaskStatus::succeeded).end, TaskEnd::ran);
}

TEST_P(Tasks, BadInputIsNamed) {
  const auto client = open();
  const auto text_of = [&](const TaskGuard& guard) {
    auto refused = begin_task(*client, guard);
    EXPECT_THAT(refused, FailsWith(ErrorCode::invalid_argument));
    return refused ? std::string{} : refused.error().text;
  };
  EXPECT_THAT(text_of({.name = "", .at_most_for = 1h}), HasSubstr("name"));
  EXPECT_THAT(text_of({.name = std::string(242, 'x'), .at_most_for = 1h}), HasSubstr("241"));
  EXPECT_THAT(text_of({.name = "x"}), HasSubstr("at_most_for"));
  EXPECT_THAT(text_of({.name = "x", .at_most_for = -1s}), HasSubstr("at_most_for"));
  EXPECT_THAT(text_of({.name = "x", .at_most_for = 1ns}), HasSubstr("at_most_for"));
  EXPECT_THAT(text_of({.name = "x", .at_most_for = 1h, .at_least_for = -1s}),
              HasSubstr("at_least_for"));
  EXPECT_THAT(text_of({.name = "x", .at_most_for = 1h, .at_least_for = 2h}),
              HasSubstr("at_least_for"));
  EXPECT_THAT(text_of({.name = "x", .at_most_for = 1h, .once_per = 0s}), HasSubstr("once_per"));
  EXPECT_THAT(text_of({.name = "x", .at_most_for = Duration::max()}), HasSubstr("at_most_for"));
  EXPECT_THAT(run_task(*client, guard(), nullptr), FailsWith(ErrorCode::invalid_argument));
  EXPECT_THAT(list_tasks(*client, name()), IsOk());
  for (const std::string& bad : {std::string{}, std::string(242, 'x')}) {
    const auto refused = forget_task(*client, bad);
    ASSERT_THAT(refused, FailsWith(ErrorCode::invalid_argument));
    EXPECT_THAT(refused.error().text, HasSubstr("name"));
  }
}

TEST_P(Tasks, AnyBytesAreAName) {
  const auto client = open();
  const std::string odd = name() + std::string("/ \0'\xFF", 5);
  ASSERT_EQ(run(*client, {.name = odd, .at_most_for = 1h}), TaskEnd::ran);
  ASSERT_EQ(run(*client, guard()), TaskEnd::ran);
  auto all = list_tasks(*client, odd);
  ASSERT_THAT(all, IsOk());
  ASSERT_EQ(all->size(), 1U);
  EXPECT_EQ(all->front().name, odd);
  EXPECT_EQ(list_tasks(*client, name())->size(), 2U);
}

}  // namespace
}  // namespace holdfast::test
