#pragma once

#include <holdfast/task.h>
#include <string>
#include <vector>

#include "context.h"

namespace holdfast::command {

struct TaskOptions {
  std::string action;  // "run", "ls" or "forget"
  std::string name;
  std::optional<Duration> at_most;
  std::optional<Duration> at_least;
  std::optional<Duration> once_per;
  std::string label;
  std::vector<std::string> command;
};

int run_task_command(const Context& context, const TaskOptions& options);
int list_task_records(const Context& context, const TaskOptions& options);
int forget_task_record(const Context& context, const TaskOptions& options);

// True if options were given that only 'task run' has.
bool has_run_options(const TaskOptions& options);

}  // namespace holdfast::command
