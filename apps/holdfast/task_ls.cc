#include <ctime>

#include <array>
#include <iostream>

#include "duration.h"
#include "exit_status.h"
#include "json.h"
#include "table.h"
#include "task.h"
#include "text.h"

namespace holdfast::command {
namespace {

std::string calendar(std::chrono::system_clock::time_point time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  localtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts);
  return {text.data(), length};
}

Colour colour_of(TaskStatus status) {
  switch (status) {
    case TaskStatus::succeeded:
      return Colour::green;
    case TaskStatus::running:
      return Colour::cyan;
    default:
      return Colour::red;
  }
}

std::string time_taken(const TaskRunInfo& run) {
  return run.end ? human_duration(std::chrono::duration_cast<Duration>(*run.end - run.begin)) : "-";
}

std::vector<Table::Cell> row_of(const TaskRecord& task) {
  const TaskRunInfo& run = task.last;
  return {{printable(task.name), Colour::bold},
          {std::string{to_string(run.status)}, colour_of(run.status)},
          {calendar(run.begin)},
          {time_taken(run)},
          {printable(run.host) + ":" + std::to_string(run.pid)},
          {task.not_before > Duration::zero() ? human_duration(task.not_before) : "-"},
          {run.message.empty() ? "-" : printable(run.message)}};
}

}  // namespace

int list_task_records(const Context& context, const TaskOptions& options) {
  if (has_run_options(options)) {
    return report(context, {ErrorCode::invalid_argument,
                            "'task ls' takes a prefix and nothing else; see 'holdfast task --help'",
                            {}});
  }
  auto client = open_store(context);
  if (!client) {
    return report(context, client.error());
  }
  const auto tasks = list_tasks(*client, options.name);
  if (!tasks) {
    return report(context, tasks.error());
  }
  if (context.json) {
    std::cout << json(*tasks) << '\n';
  } else if (!tasks->empty()) {
    Table table{{"NAME", "STATUS", "BEGAN", "TOOK", "HOST", "NOT FOR", "MESSAGE"}};
    for (const TaskRecord& task : *tasks) {
      table.add(row_of(task));
    }
    table.print(std::cout, Paint{});
  }
  return kSuccess;
}

}  // namespace holdfast::command
