// The values of MysqlClerk: one row a value, changed by conditional statements.
#include <cstring>
#include <tuple>
#include <utility>

#include "base/jitter.h"
#include "engine/batch.h"
#include "engines/mysql/mysql_clerk.h"
#include "engines/mysql/mysql_errors.h"

namespace holdfast::engines {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kPage = 500;
constexpr int kCollisions = 20;

std::string values_table(const MysqlOptions& options) {
  return "`" + options.prefix + "values`";
}

std::string micros_up(core::Duration time) {
  return std::to_string(std::chrono::ceil<std::chrono::microseconds>(time).count());
}

std::string hex(std::string_view bytes) {
  std::string text;
  append_hex(text, bytes);
  return text;
}

std::string hex(const base::Id& id) {
  std::string text;
  append_hex(text, id);
  return text;
}

std::string since_epoch(std::string_view time) {
  return "TIMESTAMPDIFF(MICROSECOND,'1970-01-01 00:00:00.000000'," + std::string{time} + ")";
}

// The moment of a packet, the same for all its statements.
constexpr std::string_view kNow = "@holdfast_now";

std::string until(core::Duration time) {
  return time > core::Duration::zero()
             ? std::string{kNow} + "+INTERVAL " + micros_up(time) + " MICROSECOND"
             : "NULL";
}

std::string select_from(const std::string& table) {
  return "SELECT name,version," + since_epoch("written") + ",GREATEST(0,COALESCE(TIMESTAMPDIFF(" +
         "MICROSECOND," + std::string{kNow} + ",hold_off_until),0)),writer,value FROM " + table;
}

// A reply to that.
struct Row {
  std::string_view name;
  core::Value value;
  std::string_view writer;
};

std::uint64_t number(const MysqlReply::Cell& cell) {
  return cell ? std::stoull(std::string{*cell}) : 0;
}

Row row_of(const MysqlReply& reply, std::size_t index) {
  Row row;
  row.name = reply.cell(index, 0).value_or("");
  row.value.version = number(reply.cell(index, 1));
  row.value.written = number(reply.cell(index, 2));
  row.value.hold_off =
      std::chrono::microseconds{static_cast<std::int64_t>(number(reply.cell(index, 3)))};
  row.writer = reply.cell(index, 4).value_or("");
  if (const auto bytes = reply.cell(index, 5)) {
    row.value.bytes.emplace(*bytes);
  }
  return row;
}

// `condition` says which of the versions may be replaced.
std::string change(const std::string& table, const core::ValueWrite& write,
                   const std::string& condition) {
  return "UPDATE " + table + " SET value=" + (write.bytes ? hex(*write.bytes) : "NULL") +
         ",version=version+1,writer=" + hex(write.writer) + ",written=" + std::string{kNow} +
         ",hold_off_until=" + until(write.hold_off) + " WHERE name=" + hex(write.name) +
         " AND writer<>" + hex(write.writer) + " AND " + condition;
}

// In the place of an erased one, or new. In this order: an INSERT that finds a
// row keeps it locked for readers, and two who then want to change it would
// wait for each other.
std::string create(const std::string& table, const core::ValueWrite& write) {
  return change(table, write, "value IS NULL") + ";INSERT IGNORE INTO " + table +
         " (name,value,version,writer,written,hold_off_until) VALUES (" + hex(write.name) + "," +
         hex(write.bytes.value_or("")) + "," + since_epoch(kNow) + "," + hex(write.writer) + "," +
         std::string{kNow} + "," + until(write.hold_off) + ")";
}

bool is(std::string_view bytes, const base::Id& id) {
  return bytes.size() == id.bytes.size() &&
         std::memcmp(bytes.data(), id.bytes.data(), bytes.size()) == 0;
}

core::ValueOutcome outcome_in(const MysqlReply& reply, const core::ValueWrite& write) {
  core::ValueOutcome outcome;
  if (reply.rows() > 0) {
    const Row row = row_of(reply, 0);
    outcome.applied = is(row.writer, write.writer);
    outcome.version = outcome.applied || row.value.bytes ? row.value.version : 0;
    outcome.written = row.value.written;
  }
  return outcome;
}

}  // namespace

std::string values_schema(const MysqlOptions& options) {
  return "CREATE TABLE IF NOT EXISTS " + values_table(options) +
         " (\n"
         "  name VARBINARY(255) NOT NULL PRIMARY KEY,\n"
         "  value MEDIUMBLOB NULL COMMENT 'NULL: erased a while ago',\n"
         "  version BIGINT UNSIGNED NOT NULL,\n"
         "  writer BINARY(16) NOT NULL COMMENT 'another one with every write',\n"
         "  written DATETIME(6) NOT NULL COMMENT 'UTC',\n"
         "  hold_off_until DATETIME(6) NULL COMMENT 'UTC; for tasks'\n"
         ") ENGINE=InnoDB COMMENT='versioned values of holdfast'";
}

std::string MysqlClerk::clock() const {
  if (!now_) {
    return "UTC_TIMESTAMP(6)";
  }
  const auto micros = std::chrono::floor<std::chrono::microseconds>(now_().time_since_epoch());
  return "('1970-01-01 00:00:00.000000' + INTERVAL " + std::to_string(micros.count()) +
         " MICROSECOND)";
}

// Databases of an older holdfast lack the table: then it is made, if we may.
// outcome_unknown: the connection broke after the packet was sent.
Result<void> MysqlClerk::run_on_values(const std::string& packet) {
  bool made_table = false;
  for (int collisions = 0;; ++collisions) {
    if (auto connected = connect(); !connected) {
      return connected;
    }
    auto done = run(packet);
    if (done) {
      return done;
    }
    const MysqlError error = *session_.error();
    if (error.disconnected) {
      done.error().code = ErrorCode::outcome_unknown;
      return done;
    }
    std::ignore = run("ROLLBACK");
    const MysqlTrouble trouble = trouble_of(error);
    if (trouble == MysqlTrouble::no_table && !std::exchange(made_table, true) &&
        run(values_schema(options_))) {
      continue;
    }
    if (trouble != MysqlTrouble::collision || collisions >= kCollisions) {
      return done;
    }
    base::sleep_for(base::random_between(0ms, 5ms));
  }
}

// The same, for who only looks.
Result<void> MysqlClerk::look_at_values(const std::string& packet) {
  auto read = run_on_values(packet);
  if (!read && read.error().code == ErrorCode::outcome_unknown) {
    read = run_on_values(packet);  // the connection was old
  }
  if (!read && read.error().code == ErrorCode::outcome_unknown) {
    read.error().code = ErrorCode::unavailable;
  }
  return read;
}

Result<std::optional<core::Value>> MysqlClerk::load_value(std::string_view name) {
  const std::lock_guard lock{mutex_};
  auto read = look_at_values("SET " + std::string{kNow} + "=" + clock() + ";" +
                             select_from(values_table(options_)) + " WHERE name=" + hex(name));
  if (!read) {
    return tl::unexpected{std::move(read.error())};
  }
  const MysqlReply& reply = session_.replies().back();
  return reply.rows() == 0 ? std::nullopt : std::optional{row_of(reply, 0).value};
}

Result<core::ValueOutcome> MysqlClerk::write_value(const core::ValueWrite& write) {
  const std::lock_guard lock{mutex_};
  const std::string table = values_table(options_);
  const std::string statement =
      write.expected
          ? change(table, write, "value IS NOT NULL AND version=" + std::to_string(*write.expected))
          : create(table, write);
  const std::string look = select_from(table) + " WHERE name=" + hex(write.name);
  const std::string packet = "START TRANSACTION;SET " + std::string{kNow} + "=" + clock() + ";" +
                             statement + ";" + look + ";COMMIT;" + look;
  for (int attempt = 0;; ++attempt) {
    if (auto done = run_on_values(packet); !done) {
      return tl::unexpected{std::move(done.error())};
    }
    const auto& replies = session_.replies();
    const core::ValueOutcome outcome = outcome_in(replies.at(replies.size() - 3), write);
    const core::ValueOutcome after = outcome_in(replies.back(), write);
    if (!outcome.applied || after.applied || !is_in_a_cluster()) {
      return outcome;
    }
    if (after.version == outcome.version) {
      return after;
    }
    if (after.version > outcome.version || attempt == kCollisions) {
      return fail(ErrorCode::outcome_unknown,
                  "the cluster may have undone the write, and others have written since");
    }
  }
}

// A node of a Galera cluster may undo a transaction for another node's sake and call its COMMIT a
// success all the same.
bool MysqlClerk::is_in_a_cluster() {
  const auto asked = run("SHOW VARIABLES LIKE 'wsrep_on'");
  return !asked ||
         (session_.replies().back().rows() > 0 && session_.replies().back().cell(0, 1) == "ON");
}

Result<std::vector<core::NamedValue>> MysqlClerk::list_values(std::string_view prefix) {
  const std::lock_guard lock{mutex_};
  std::vector<core::NamedValue> all;
  std::string after;
  while (true) {
    auto read = look_at_values(
        "SET " + std::string{kNow} + "=" + clock() + ";" + select_from(values_table(options_)) +
        " WHERE LEFT(name," + std::to_string(prefix.size()) + ")=" + hex(prefix) +
        " AND name>=" + hex(prefix) + " AND name>" + hex(after) +
        " AND value IS NOT NULL ORDER BY name LIMIT " + std::to_string(kPage));
    if (!read) {
      return tl::unexpected{std::move(read.error())};
    }
    const MysqlReply& reply = session_.replies().back();
    for (std::size_t i = 0; i < reply.rows(); ++i) {
      Row row = row_of(reply, i);
      all.push_back({.name = std::string{row.name}, .value = std::move(row.value)});
    }
    if (reply.rows() < kPage) {
      return all;
    }
    after = all.back().name;
  }
}

void MysqlClerk::forget_values() {
  // Only what lies behind the clock, from which later versions start.
  std::ignore =
      run("DELETE FROM " + values_table(options_) + " WHERE value IS NULL AND written<=" + clock() +
          "-INTERVAL " + micros_up(core::kEraseMemory) + " MICROSECOND AND version<" +
          since_epoch(clock()) + " LIMIT 1000");
}

}  // namespace holdfast::engines
