#include <algorithm>
#include <utility>

#include "client/tasks.h"
#include "client/values.h"

namespace holdfast {
namespace {

// What is left of the time in which no other run may begin, counted from the
// moment in which this one certainly had begun. Too long by a round trip at
// most, never too short.
Duration hold_off(const client::RunState& run, TaskStatus status) {
  Duration time = run.guard.at_least_for;
  if (status == TaskStatus::succeeded && run.guard.once_per) {
    time = std::max(time, *run.guard.once_per);
  }
  return std::max<Duration>(time - (base::BootClock::now() - run.since), Duration::zero());
}

TaskEnd end_of(TaskStatus status) {
  switch (status) {
    case TaskStatus::succeeded:
      return TaskEnd::ran;
    case TaskStatus::lost:
      return TaskEnd::lost;
    default:
      return TaskEnd::failed;
  }
}

void add(std::string& why, std::string_view more) {
  why.append(why.empty() || more.empty() ? "" : "; ").append(more);
}

}  // namespace

TaskRun::TaskRun(std::unique_ptr<client::RunState> state) noexcept : state_{std::move(state)} {}
TaskRun::TaskRun(TaskRun&&) noexcept = default;
TaskRun& TaskRun::operator=(TaskRun&&) noexcept = default;
TaskRun::~TaskRun() = default;

Lease& TaskRun::lease() noexcept {
  return state_->lease;
}

const Lease& TaskRun::lease() const noexcept {
  return state_->lease;
}

Duration TaskRun::ttl() const noexcept {
  return state_->ttl;
}

TaskOutcome TaskRun::finish(TaskStatus status, std::string_view message) {
  client::RunState& run = *state_;
  if (std::exchange(run.finished, true)) {
    return {.end = TaskEnd::failed, .why = "the run was finished before"};
  }
  status = status == TaskStatus::running ? TaskStatus::failed : status;
  TaskOutcome outcome{.end = TaskEnd::ran, .why = std::string{message}};
  const auto lose = [&](std::string_view why) {
    status = TaskStatus::lost;
    add(outcome.why, why);
  };
  if (run.lease.loss() || !run.lease.is_alive()) {
    lose("the lock was lost while it ran");
  }
  run.record.last.status = status;
  run.record.last.message = outcome.why;
  const std::string name = std::string{client::kTaskRecords} + run.guard.name;
  const std::string text = run.record.text();
  const auto written = client::write_value(*run.service, {.name = name,
                                                          .expected = run.version,
                                                          .bytes = text,
                                                          .writer = {},
                                                          .hold_off = hold_off(run, status)});
  if (!written) {
    add(outcome.why, "its record could not be written: " + written.error().text);
  } else if (!written->applied && status != TaskStatus::lost) {
    lose("another run has begun meanwhile");
  }
  const auto released = run.lease.release();
  if (!released && released.error().code == ErrorCode::lease_lost && status != TaskStatus::lost) {
    lose("the lock was lost at its end");
  }
  outcome.end = end_of(status);
  return outcome;
}

Result<TaskStart> begin_task(Client& client, const TaskGuard& guard) {
  return client::Tasks::of(client).begin(guard);
}

Result<TaskOutcome> run_task(Client& client, const TaskGuard& guard, const TaskWork& work) {
  return client::Tasks::of(client).run(guard, work);
}

Result<std::vector<TaskRecord>> list_tasks(Client& client, std::string_view prefix) {
  return client::Tasks::of(client).list(prefix);
}

Result<bool> forget_task(Client& client, std::string_view name) {
  return client::Tasks::of(client).forget(name);
}

std::string_view to_string(TaskEnd end) noexcept {
  switch (end) {
    case TaskEnd::ran:
      return "ran";
    case TaskEnd::skipped:
      return "skipped";
    case TaskEnd::lost:
      return "lost";
    case TaskEnd::failed:
      return "failed";
  }
  return "unknown";
}

std::string_view to_string(TaskStatus status) noexcept {
  switch (status) {
    case TaskStatus::running:
      return "running";
    case TaskStatus::succeeded:
      return "succeeded";
    case TaskStatus::failed:
      return "failed";
    case TaskStatus::lost:
      return "lost";
  }
  return "unknown";
}

}  // namespace holdfast
