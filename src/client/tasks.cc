#include "client/tasks.h"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "base/host.h"
#include "client/values.h"
#include "client/wish.h"

namespace holdfast::client {
namespace {

using namespace std::chrono_literals;

// A record changes under us only while a run that lost its lock writes its end.
constexpr int kAttempts = 5;

tl::unexpected<Error> invalid(std::string text) {
  return fail(ErrorCode::invalid_argument, std::move(text));
}

tl::unexpected<Error> restless() {
  return fail(ErrorCode::unavailable, "the task's record changes all the time");
}

std::string in_words(Duration time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(time).count()) +
         " ms";
}

std::chrono::system_clock::time_point from_now(Duration time) {
  return std::chrono::system_clock::now() +
         std::chrono::duration_cast<std::chrono::system_clock::duration>(time);
}

Result<void> check_task_name(std::string_view name) {
  if (name.empty() || name.size() > kMaxTaskName) {
    return invalid("name has " + std::to_string(name.size()) + " bytes; a task's name has 1 to " +
                   std::to_string(kMaxTaskName));
  }
  return {};
}

Result<void> check(const TaskGuard& guard) {
  if (auto good = check_task_name(guard.name); !good) {
    return good;
  }
  if (guard.at_most_for <= Duration::zero()) {
    return invalid("at_most_for must be longer than zero: the longest that a run may take");
  }
  if (guard.at_least_for < Duration::zero()) {
    return invalid("at_least_for is negative");
  }
  if (guard.at_least_for > guard.at_most_for) {
    return invalid("at_least_for is longer than at_most_for");
  }
  if (guard.once_per && *guard.once_per <= Duration::zero()) {
    return invalid("once_per must be longer than zero; leave it empty for no such bound");
  }
  if (std::max(guard.at_most_for, guard.once_per.value_or(0ns)) > kLongestWait) {
    return invalid("at_most_for and once_per are at most a hundred years");
  }
  return {};
}

std::string record_name(std::string_view task) {
  return std::string{kTaskRecords} + std::string{task};
}

struct Found {
  std::optional<StoredTask> task;
  std::uint64_t version = 0;  // 0: there is none
  Duration hold_off{};
};

Result<Found> find(Service& service, const std::string& name) {
  auto value = read_value(service, name);
  if (!value) {
    return tl::unexpected{std::move(value.error())};
  }
  Found found;
  if (*value) {
    found.version = (*value)->version;
    found.hold_off = (*value)->hold_off;
    if (const auto task = StoredTask::parse(*(*value)->bytes)) {
      found.task = task->completed((*value)->written);
    }
  }
  return found;
}

Result<core::ValueOutcome> store(Service& service, const std::string& name, const StoredTask& task,
                                 std::uint64_t expected, Duration hold_off) {
  const std::string text = task.text();
  core::ValueWrite write{.name = name, .expected = std::nullopt, .bytes = text, .writer = {}};
  if (expected != 0) {
    write.expected = expected;
  }
  write.hold_off = std::max(hold_off, Duration::zero());
  return write_value(service, write);
}

std::string words_for(TaskStatus status) {
  switch (status) {
    case TaskStatus::succeeded:
      return "ran";
    case TaskStatus::failed:
      return "failed";
    default:
      return "began";
  }
}

// The last run left a hold-off.
std::optional<TaskOutcome> not_due(const Found& found) {
  if (found.hold_off <= Duration::zero()) {
    return std::nullopt;
  }
  std::string what =
      found.task ? words_for(found.task->last.status) + " on " + found.task->last.host : "ran";
  return TaskOutcome{.end = TaskEnd::skipped,
                     .why = "it " + std::move(what) + " not long ago",
                     .until = from_now(found.hold_off)};
}

TaskRunInfo info_of(const StoredRun& run) {
  TaskRunInfo info{.status = run.status, .begin = calendar(run.begin)};
  if (run.end != 0 && run.status != TaskStatus::running) {
    info.end = calendar(run.end);
  }
  info.host = run.host;
  info.pid = run.pid;
  info.message = run.message;
  return info;
}

// Who still counts as running but has no lock any more is not heard of again.
void mark_as_lost(StoredRun& run) {
  if (run.status == TaskStatus::running) {
    run.status = TaskStatus::lost;
    run.message = "the host died, or lost the store";
  }
}

}  // namespace

Result<TaskLease> lease_for(const TaskGuard& guard, const Capabilities& engine) {
  if (guard.at_most_for < engine.min_ttl) {
    return invalid("at_most_for is " + in_words(guard.at_most_for) + "; on " + engine.engine +
                   " it is at least " + in_words(engine.min_ttl));
  }
  TaskLease lease;
  lease.ttl = std::clamp(std::min<Duration>(guard.at_most_for / 3, kDefaultTtl), engine.min_ttl,
                         engine.max_ttl);
  lease.renewed_for = guard.at_most_for - lease.ttl;
  return lease;
}

Result<LockInfo> Tasks::lock_of(std::string_view task) {
  return service_->engine().and_then([&](engine::Engine* engine) {
    return engine->show(std::string{kTaskLocks} + std::string{task});
  });
}

TaskOutcome Tasks::busy(const TaskGuard& guard) {
  TaskOutcome outcome{.end = TaskEnd::skipped, .why = "it is running"};
  const auto found = find(*service_, record_name(guard.name));
  if (found && found->task && found->task->last.status == TaskStatus::running) {
    outcome.why += " on " + found->task->last.host;
  }
  const auto lock = lock_of(guard.name);
  if (lock && !lock->holders.empty()) {
    outcome.until = from_now(lock->holders.front().expires_in);
  }
  return outcome;
}

Result<TaskStart> Tasks::begin(const TaskGuard& guard) {
  const Capabilities& engine = service_->capabilities();
  if (!engine.values) {
    auto refused = service_->engine().and_then(
        [&](engine::Engine* store) { return store->load_value(kTaskRecords); });
    return tl::unexpected{refused ? Error{ErrorCode::unsupported, "no tasks here", std::nullopt}
                                  : std::move(refused.error())};
  }
  auto terms = check(guard).and_then([&] { return lease_for(guard, engine); });
  if (!terms) {
    return tl::unexpected{std::move(terms.error())};
  }
  // Before anything is locked: who comes at the right moment must not meet one
  // who came too early and only wanted to look.
  auto found = find(*service_, record_name(guard.name));
  if (!found) {
    return tl::unexpected{std::move(found.error())};
  }
  if (auto early = not_due(*found)) {
    return TaskStart{.run = std::nullopt, .skipped = *std::move(early)};
  }
  AcquireOptions options{.ttl = terms->ttl, .wait = Duration::zero()};
  options.renew = terms->renewed_for > Duration::zero();
  if (options.renew) {
    options.max_hold = terms->renewed_for;
  }
  auto lease = service_->acquire(std::string{kTaskLocks} + guard.name, options);
  if (!lease && lease.error().code == ErrorCode::busy) {
    return TaskStart{.run = std::nullopt, .skipped = busy(guard)};
  }
  if (!lease) {
    return tl::unexpected{std::move(lease.error())};
  }
  return begin_locked(guard, *std::move(lease), terms->ttl);
}

Result<TaskStart> Tasks::begin_locked(const TaskGuard& guard, Lease lease, Duration ttl) {
  const std::string name = record_name(guard.name);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    auto found = find(*service_, name);
    if (!found) {
      return tl::unexpected{std::move(found.error())};
    }
    if (auto early = not_due(*found)) {
      return TaskStart{.run = std::nullopt, .skipped = *std::move(early)};
    }
    StoredTask record{.last = {.host = base::host_name(), .pid = getpid(), .message = ""},
                      .previous = std::nullopt};
    if (found->task) {
      record.previous = found->task->last;
      mark_as_lost(*record.previous);
    }
    auto written = store(*service_, name, record, found->version, guard.at_least_for);
    if (!written) {
      return tl::unexpected{std::move(written.error())};
    }
    if (!written->applied) {
      continue;
    }
    auto state = std::make_unique<RunState>();
    state->service = service_;
    state->guard = guard;
    state->lease = std::move(lease);
    state->ttl = ttl;
    state->record = record.completed(written->written);
    state->version = written->version;
    state->since = base::BootClock::now();
    return TaskStart{.run = TaskRun{std::move(state)}, .skipped = {}};
  }
  return restless();
}

Result<TaskOutcome> Tasks::run(const TaskGuard& guard, const TaskWork& work) {
  if (!work) {
    return invalid("work is an empty function");
  }
  auto start = begin(guard);
  if (!start) {
    return tl::unexpected{std::move(start.error())};
  }
  if (!start->run) {
    return std::move(start->skipped);
  }
  TaskStatus status = TaskStatus::succeeded;
  std::string message;
  try {
    if (const auto done = work(*start->run); !done) {
      status = TaskStatus::failed;
      message = done.error().text;
    }
  } catch (const std::exception& error) {
    status = TaskStatus::failed;
    message = error.what();
  } catch (...) {
    status = TaskStatus::failed;
    message = "an exception";
  }
  return start->run->finish(status, message);
}

Result<std::vector<TaskRecord>> Tasks::list(std::string_view prefix) {
  const auto engine = service_->engine();
  if (!engine) {
    return tl::unexpected{engine.error()};
  }
  auto values = (*engine)->list_values(std::string{kTaskRecords} + std::string{prefix});
  if (!values) {
    return tl::unexpected{std::move(values.error())};
  }
  std::vector<TaskRecord> all;
  for (const core::NamedValue& each : *values) {
    auto task = StoredTask::parse(each.value.bytes.value_or(""));
    if (!task) {
      continue;
    }
    task = task->completed(each.value.written);
    TaskRecord record{.name = each.name.substr(kTaskRecords.size()), .last = {}};
    if (task->last.status == TaskStatus::running) {
      const auto lock = lock_of(record.name);
      if (lock && lock->holders.empty()) {
        mark_as_lost(task->last);
      }
    }
    record.last = info_of(task->last);
    if (task->previous) {
      record.previous = info_of(*task->previous);
    }
    record.not_before = each.value.hold_off;
    all.push_back(std::move(record));
  }
  return all;
}

// Without the lock: whoever begins a run meanwhile writes its record by the same
// comparison of versions, so that one of us finds that the other was faster.
Result<bool> Tasks::forget(std::string_view name) {
  if (auto good = check_task_name(name); !good) {
    return tl::unexpected{std::move(good.error())};
  }
  const std::string record = record_name(name);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    auto found = find(*service_, record);
    if (!found) {
      return tl::unexpected{std::move(found.error())};
    }
    if (found->version == 0) {
      return false;
    }
    if (found->task && found->task->last.status == TaskStatus::running) {
      auto lock = lock_of(name);
      if (!lock) {
        return tl::unexpected{std::move(lock.error())};
      }
      if (!lock->holders.empty()) {
        return fail(ErrorCode::busy, "the task is running on " + found->task->last.host);
      }
    }
    auto erased = write_value(
        *service_,
        {.name = record, .expected = found->version, .bytes = std::nullopt, .writer = {}});
    if (!erased) {
      return tl::unexpected{std::move(erased.error())};
    }
    if (erased->applied) {
      return true;
    }
  }
  return restless();
}

}  // namespace holdfast::client
