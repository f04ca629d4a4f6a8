#pragma once

#include <holdfast/task.h>
#include <optional>
#include <string>
#include <string_view>

#include "core/value_record.h"

// What the store keeps of a task: a line for its last run and one for the run
// before, which people can read. Pure.
namespace holdfast::client {

struct StoredRun {
  TaskStatus status = TaskStatus::running;
  core::Micros begin = 0;  // 0: when this was written
  core::Micros end = 0;    // 0: when this was written; unknown if it was lost
  std::string host;
  std::int64_t pid = 0;
  std::string message;

  friend bool operator==(const StoredRun&, const StoredRun&) = default;
};

struct StoredTask {
  StoredRun last;
  std::optional<StoredRun> previous;

  std::string text() const;
  static std::optional<StoredTask> parse(std::string_view text);

  // With the times that only the store knew, when it was written.
  StoredTask completed(core::Micros written) const;
};

// "S 1763200000000000 1763200060000000 4711 web1 all fine"; for tests.
std::string line_of(const StoredRun& run);

}  // namespace holdfast::client
