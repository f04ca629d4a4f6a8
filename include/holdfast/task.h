#pragma once

#include <holdfast/client.h>
#include <holdfast/error.h>
#include <holdfast/lease.h>
#include <holdfast/options.h>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Work that many hosts try to begin and one must do: scheduled jobs. Built on a
// lock and a versioned value; the store's clock alone decides what is due, so
// the hosts' clocks may be as wrong as they like. See docs/tasks.md.
namespace holdfast {

namespace client {
struct RunState;  // what a TaskRun is made of; private to the library
}

// What a task is called and how its runs keep apart.
struct TaskGuard {
  std::string name;  // 1 to 241 bytes

  // The longest that one run may take; it must be given. The lock is extended
  // while the run lives, never beyond this: then the run is told to stop and
  // counts as lost. A dead host's lock ends earlier, 30 s after its last sign of
  // life (a third of at_most_for, if that is shorter).
  Duration at_most_for{};

  // No other run begins earlier than this after the beginning of one, however
  // that ends: a short run must not be repeated by a host whose clock is late.
  Duration at_least_for{};

  // No other run begins earlier than this after the beginning of one that
  // succeeded. One that failed or was lost may be made up for at once.
  std::optional<Duration> once_per = std::nullopt;
};

enum class TaskEnd : std::uint8_t {
  ran,      // and succeeded
  skipped,  // somebody is at it, or it is not due
  lost,     // the lock was lost while it ran: another run may have begun
  failed,
};

struct TaskOutcome {
  TaskEnd end = TaskEnd::skipped;
  std::string why = {};  // empty if all went well
  // Skipped: when to try again, as far as one can tell now. By this host's
  // clock, counted from what the store says is left.
  std::optional<std::chrono::system_clock::time_point> until = std::nullopt;
};

enum class TaskStatus : char { running = 'P', succeeded = 'S', failed = 'F', lost = 'L' };

// One run, as the store remembers it, in the store's time.
struct TaskRunInfo {
  TaskStatus status = TaskStatus::running;
  std::chrono::system_clock::time_point begin;
  std::optional<std::chrono::system_clock::time_point> end = std::nullopt;  // if it is known
  std::string host = {};
  std::int64_t pid = 0;
  std::string message = {};
};

struct TaskRecord {
  std::string name;
  TaskRunInfo last;
  std::optional<TaskRunInfo> previous = std::nullopt;
  Duration not_before{};  // no run can begin for so long
};

// A run that has begun. Movable. Not thread-safe, except lease().lost().
// Destroyed without finish() it counts as lost.
class TaskRun {
 public:
  explicit TaskRun(std::unique_ptr<client::RunState> state) noexcept;
  TaskRun(TaskRun&&) noexcept;
  TaskRun& operator=(TaskRun&&) noexcept;
  TaskRun(const TaskRun&) = delete;
  TaskRun& operator=(const TaskRun&) = delete;
  ~TaskRun();

  // lease().lost() tells to stop; lease().token() fences what the run writes.
  Lease& lease() noexcept;
  const Lease& lease() const noexcept;
  Duration ttl() const noexcept;  // of the lease

  // Records the end and lets go of the lock. Once. `message` is for people, at
  // most 1,000 bytes of it are kept. A record that could not be written is
  // mentioned in `why`.
  TaskOutcome finish(TaskStatus status, std::string_view message = {});

 private:
  std::unique_ptr<client::RunState> state_;
};

struct TaskStart {
  std::optional<TaskRun> run;  // empty: skipped
  TaskOutcome skipped;
};

// invalid_argument names the field; unsupported where the engine keeps no
// values; unavailable, outcome_unknown, unauthorized: nothing was begun.
Result<TaskStart> begin_task(Client& client, const TaskGuard& guard);

// Begins, works on this thread, finishes. An error or an exception of `work`
// makes it `failed`, with its text.
using TaskWork = std::function<Result<void>(const TaskRun& run)>;
Result<TaskOutcome> run_task(Client& client, const TaskGuard& guard, const TaskWork& work);

// The last runs of all tasks whose names begin so, by name.
Result<std::vector<TaskRecord>> list_tasks(Client& client, std::string_view prefix = {});

// Erases a task's record, and with it what keeps the next run off. False if there
// was none. busy: it is running. Else as begin_task().
Result<bool> forget_task(Client& client, std::string_view name);

std::string_view to_string(TaskEnd end) noexcept;
std::string_view to_string(TaskStatus status) noexcept;

}  // namespace holdfast
