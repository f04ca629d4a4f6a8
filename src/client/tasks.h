#pragma once

#include <holdfast/task.h>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "client/service.h"
#include "client/task_record.h"

namespace holdfast::client {

// Where a task's record and its lock are.
inline constexpr std::string_view kTaskRecords = "holdfast:task:";
inline constexpr std::string_view kTaskLocks = "task:";
inline constexpr std::size_t kMaxTaskName = kMaxNameBytes - kTaskRecords.size();

// Tasks of one client's store.
class Tasks {
 public:
  explicit Tasks(std::shared_ptr<Service> service) : service_{std::move(service)} {}
  static Tasks of(Client& client) { return Tasks{client.service_}; }

  Result<TaskStart> begin(const TaskGuard& guard);
  Result<TaskOutcome> run(const TaskGuard& guard, const TaskWork& work);
  Result<std::vector<TaskRecord>> list(std::string_view prefix);
  Result<bool> forget(std::string_view name);

 private:
  Result<TaskStart> begin_locked(const TaskGuard& guard, Lease lease, Duration ttl);
  TaskOutcome busy(const TaskGuard& guard);
  Result<LockInfo> lock_of(std::string_view task);

  std::shared_ptr<Service> service_;
};

// A run that has begun.
struct RunState {
  std::shared_ptr<Service> service;
  TaskGuard guard;
  Lease lease;
  Duration ttl{};
  StoredTask record;          // as it was written
  std::uint64_t version = 0;  // of that
  base::Time since;           // when the store had answered that it has begun
  bool finished = false;
};

// How long a lease of such a task lasts, and for how long it is renewed; or
// invalid_argument, naming the field.
struct TaskLease {
  Duration ttl{};
  Duration renewed_for{};  // 0: not at all
};
Result<TaskLease> lease_for(const TaskGuard& guard, const Capabilities& engine);

}  // namespace holdfast::client
