#include "client/task_record.h"

#include <gtest/gtest.h>

namespace holdfast::client {
namespace {

StoredRun run(TaskStatus status, std::string message = "") {
  return {.status = status,
          .begin = 17,
          .end = 18,
          .host = "web1",
          .pid = 42,
          .message = std::move(message)};
}

TEST(TaskRecord, ReadsWhatItWrites) {
  const StoredTask one{.last = run(TaskStatus::succeeded, "all fine"), .previous = std::nullopt};
  const StoredTask two{.last = run(TaskStatus::running),
                       .previous = run(TaskStatus::lost, "gone  with the wind")};
  for (const StoredTask& task : {one, two}) {
    const auto read = StoredTask::parse(task.text());
    ASSERT_TRUE(read);
    EXPECT_EQ(read->last, task.last);
    EXPECT_EQ(read->previous, task.previous);
  }
}

TEST(TaskRecord, IsALineForPeople) {
  EXPECT_EQ(line_of(run(TaskStatus::failed, "exit status 3")), "F 17 18 42 web1 exit status 3");
}

TEST(TaskRecord, OddTextsStayOneLine) {
  StoredTask task{.last = run(TaskStatus::failed, "a\nS 1 2 3 x y\r"), .previous = std::nullopt};
  task.last.host = "my host\n";
  const auto read = StoredTask::parse(task.text());
  ASSERT_TRUE(read);
  EXPECT_FALSE(read->previous);
  EXPECT_EQ(read->last.host, "my_host_");
  EXPECT_EQ(read->last.message, "a S 1 2 3 x y ");
  task.last.message.assign(5000, 'x');
  task.last.host.clear();
  EXPECT_EQ(StoredTask::parse(task.text())->last.message.size(), 1000U);
  EXPECT_EQ(StoredTask::parse(task.text())->last.host, "-");
}

TEST(TaskRecord, WhatIsNoRecordIsNone) {
  for (const char* text : {"", "\n", "X 1 2 3 h", "S", "S 1", "S 1 2", "S a 2 3 h m", "S 1 -2 3 h",
                           "SS 1 2 3 h m", "S 1 2 99999999999999999999 h"}) {
    EXPECT_FALSE(StoredTask::parse(text)) << text;
  }
}

TEST(TaskRecord, TheStoreAddsItsTimes) {
  StoredTask task{.last = run(TaskStatus::running), .previous = std::nullopt};
  task.last.begin = task.last.end = 0;
  EXPECT_EQ(task.completed(99).last.begin, 99U);
  EXPECT_EQ(task.completed(99).last.end, 0U);
  task.last.status = TaskStatus::succeeded;
  task.last.begin = 50;
  EXPECT_EQ(task.completed(99).last.begin, 50U);
  EXPECT_EQ(task.completed(99).last.end, 99U);
}

}  // namespace
}  // namespace holdfast::client
