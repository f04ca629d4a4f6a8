#include "json.h"

#include <boost/json.hpp>
#include <chrono>

#include "changes.h"
#include "text.h"

namespace holdfast::command {
namespace {

namespace bj = boost::json;

std::int64_t milliseconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

// JSON knows only Unicode: what is not UTF-8 is shown escaped, and exactly, in
// hexadecimal, beside it.
void put_bytes(bj::object& object, std::string_view key, std::string_view bytes) {
  if (is_utf8(bytes)) {
    object[key] = bytes;
  } else {
    object[key] = printable(bytes);
    object[std::string{key} + "_hex"] = hex(bytes);
  }
}

void put_party(bj::object& object, const Party& party) {
  put_bytes(object, "label", party.label);
  put_bytes(object, "host", party.host);
  object["pid"] = party.pid;
}

bj::value token_value(const std::optional<std::uint64_t>& token) {
  return token ? bj::value(*token) : bj::value(nullptr);
}

bj::object object_of(const HolderInfo& holder) {
  bj::object object;
  put_party(object, holder.party);
  object["mode"] = to_string(holder.mode);
  object["permits"] = holder.permits;
  object["token"] = token_value(holder.token);
  object["held_ms"] = milliseconds(holder.held_for);
  object["expires_in_ms"] = milliseconds(holder.expires_in);
  object["revoked"] = holder.revoked;
  return object;
}

bj::object object_of(const WaiterInfo& waiter) {
  bj::object object;
  put_party(object, waiter.party);
  object["mode"] = to_string(waiter.mode);
  object["permits"] = waiter.permits;
  object["waiting_ms"] = milliseconds(waiter.waiting_for);
  return object;
}

bj::object object_of(const LockInfo& lock) {
  bj::object object;
  put_bytes(object, "name", lock.name);
  object["permits_total"] = lock.limit == 0 ? bj::value(nullptr) : bj::value(lock.limit);
  bj::array& holders = object["holders"].emplace_array();
  for (const HolderInfo& holder : lock.holders) {
    holders.push_back(object_of(holder));
  }
  bj::array& queue = object["queue"].emplace_array();
  for (const WaiterInfo& waiter : lock.queue) {
    queue.push_back(object_of(waiter));
  }
  return object;
}

std::int64_t unix_milliseconds(std::chrono::system_clock::time_point time) {
  return milliseconds(time.time_since_epoch());
}

bj::object object_of(const TaskRunInfo& run) {
  bj::object object;
  object["status"] = to_string(run.status);
  object["begin_unix_ms"] = unix_milliseconds(run.begin);
  object["end_unix_ms"] = run.end ? bj::value(unix_milliseconds(*run.end)) : bj::value(nullptr);
  put_bytes(object, "host", run.host);
  object["pid"] = run.pid;
  put_bytes(object, "message", run.message);
  return object;
}

}  // namespace

std::string json(const std::vector<TaskRecord>& tasks) {
  bj::array array;
  for (const TaskRecord& task : tasks) {
    bj::object object;
    put_bytes(object, "name", task.name);
    object["last"] = object_of(task.last);
    object["previous"] = task.previous ? bj::value(object_of(*task.previous)) : bj::value(nullptr);
    object["not_before_ms"] = milliseconds(task.not_before);
    array.push_back(std::move(object));
  }
  return bj::serialize(array);
}

std::string json(const LockInfo& lock) {
  return bj::serialize(object_of(lock));
}

std::string json(const std::vector<LockInfo>& locks) {
  bj::array array;
  for (const LockInfo& lock : locks) {
    array.push_back(object_of(lock));
  }
  return bj::serialize(array);
}

std::string json(const Change& change) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  bj::object object;
  object["at_unix_ms"] = milliseconds(now);
  object["event"] = to_string(change.what);
  put_bytes(object, "name", change.name);
  put_party(object, change.party);
  object["mode"] = to_string(change.mode);
  object["permits"] = change.permits;
  object["token"] = token_value(change.token);
  object["queue_length"] = change.queue;
  return bj::serialize(object);
}

std::string json(const std::vector<Finding>& findings, const std::string& store) {
  bj::object object;
  put_bytes(object, "store", store);
  bj::array& array = object["findings"].emplace_array();
  for (const Finding& finding : findings) {
    bj::object entry;
    entry["level"] = to_string(finding.level);
    put_bytes(entry, "topic", finding.topic);
    put_bytes(entry, "text", finding.text);
    put_bytes(entry, "advice", finding.advice);
    array.push_back(std::move(entry));
  }
  return bj::serialize(object);
}

std::string json(const Error& error, int exit_status) {
  bj::object object;
  object["error"] = to_string(error.code);
  put_bytes(object, "text", error.text);
  object["exit_status"] = exit_status;
  return bj::serialize(object);
}

std::string json_object(const std::vector<Field>& texts,
                        const std::vector<std::pair<std::string_view, std::int64_t>>& numbers) {
  bj::object object;
  for (const Field& field : texts) {
    put_bytes(object, field.key, field.text);
  }
  for (const auto& [key, number] : numbers) {
    object[key] = number;
  }
  return bj::serialize(object);
}

std::string_view to_string(Finding::Level level) noexcept {
  switch (level) {
    case Finding::Level::ok:
      return "ok";
    case Finding::Level::warning:
      return "warning";
    case Finding::Level::problem:
      return "problem";
  }
  return "";
}

}  // namespace holdfast::command
