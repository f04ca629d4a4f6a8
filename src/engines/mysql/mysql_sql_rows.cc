// The statements about single rows: what the lock record decided, fences, keeping house.
#include <array>
#include <utility>

#include "engines/mysql/mysql_sql.h"
#include "engines/mysql/mysql_text.h"

namespace holdfast::engines {
namespace {

// The values of a change, in the order of kWritten.
constexpr std::array kWritten{"request_id", "session_id", "holder",     "host",
                              "pid",        "held_since", "held_until", "ttl_us",
                              "token",      "waiting",    "queue",      "rest"};

enum class Named : std::uint8_t { no, before, after };

void append_values(std::string& packet, const LockRow& row, Named named) {
  std::size_t column = 0;
  const auto name = [&] {
    if (named == Named::before) {
      packet.append(kWritten.at(column)).append("=");
    }
  };
  const auto next = [&] {
    if (named == Named::after) {
      packet.append(" AS ").append(kWritten.at(column));
    }
    ++column;
    if (column < kWritten.size()) {
      packet += ',';
      name();
    }
  };
  name();
  append_hex(packet, row.request);
  next();
  append_hex(packet, row.session);
  next();
  append_text(packet, row.holder.label);
  next();
  append_text(packet, row.holder.host);
  next();
  packet += std::to_string(row.holder.pid);
  next();
  packet += moment(row.since);
  next();
  packet += moment(row.until);
  next();
  packet += micros(row.ttl);
  next();
  packet += std::to_string(row.last_token);
  next();
  packet += std::to_string(row.waiting);
  next();
  if (row.queue.empty()) {
    packet += "NULL";
  } else {
    append_text(packet, row.queue);
  }
  next();
  if (row.rest.empty()) {
    packet += "NULL";
  } else {
    append_hex(packet, row.rest);
  }
  next();
}

}  // namespace

void MysqlSql::update(std::string& packet, std::span<const Change> changes,
                      std::uint64_t mark) const {
  begin(packet);
  if (changes.size() == 1) {
    const Change& change = changes.front();
    packet += "UPDATE " + table_ + " SET ";
    append_values(packet, change.row, Named::before);
    packet += ",version=version+1,mark=" + std::to_string(mark) + " WHERE name=";
    append_hex(packet, change.name);
    packet += " AND version=" + std::to_string(change.version);
    return;
  }
  packet += "UPDATE " + table_ + " l JOIN (";
  bool first = true;
  for (const Change& change : changes) {
    packet += std::exchange(first, false) ? "SELECT " : " UNION ALL SELECT ";
    append_hex(packet, change.name);
    packet += " AS name," + std::to_string(change.version) + " AS version,";
    append_values(packet, change.row, Named::after);
  }
  packet += ") c ON l.name=c.name AND l.version=c.version SET ";
  for (const char* column : kWritten) {
    packet.append("l.").append(column).append("=c.").append(column).append(",");
  }
  packet += "l.version=l.version+1,l.mark=" + std::to_string(mark);
}

void MysqlSql::insert(std::string& packet, std::span<const Change> changes,
                      std::uint64_t mark) const {
  begin(packet);
  packet += "INSERT IGNORE INTO " + table_ + " (name,version,mark";
  for (const char* column : kWritten) {
    packet.append(",").append(column);
  }
  packet += ") VALUES ";
  append_list(packet, changes, [&](const Change& change) {
    packet += '(';
    append_hex(packet, change.name);
    packet += ",1," + std::to_string(mark) + ',';
    append_values(packet, change.row, Named::no);
    packet += ')';
  });
}

void MysqlSql::read_marked(std::string& packet, std::span<const std::string_view> names,
                           std::uint64_t mark, std::size_t marks) const {
  begin(packet);
  packet += "SELECT name FROM " + table_ + " WHERE mark BETWEEN " + std::to_string(mark) + " AND " +
            std::to_string(mark + marks - 1) + " AND name IN (";
  append_list(packet, names, [&](std::string_view name) { append_hex(packet, name); });
  packet += ')';
}

void MysqlSql::lock_fence(std::string& packet, std::string_view name,
                          bool can_refuse_to_wait) const {
  begin(packet);
  packet += "SELECT token FROM " + fences_ + " WHERE name=";
  append_hex(packet, name);
  packet += can_refuse_to_wait ? " FOR UPDATE NOWAIT" : " FOR UPDATE";
}

void MysqlSql::raise_fence(std::string& packet, std::string_view name, std::uint64_t token,
                           std::uint64_t mark) const {
  begin(packet);
  packet += "UPDATE " + fences_ + " f JOIN " + table_ +
            " l ON l.name=f.name SET f.token=" + std::to_string(token) + " WHERE f.name=";
  append_hex(packet, name);
  packet += " AND l.mark=" + std::to_string(mark);
}

void MysqlSql::make_fence(std::string& packet, std::string_view name, std::uint64_t token,
                          std::uint64_t mark) const {
  begin(packet);
  packet += "INSERT INTO " + fences_ + " (name,token) SELECT name," + std::to_string(token) +
            " FROM " + table_ + " l WHERE l.name=";
  append_hex(packet, name);
  packet += " AND l.mark=" + std::to_string(mark) + " ON DUPLICATE KEY UPDATE token=GREATEST(" +
            fences_ + ".token,VALUES(token))";
}

void MysqlSql::forget_fence(std::string& packet, std::string_view name) const {
  begin(packet);
  packet += "DELETE FROM " + fences_ + " WHERE name=";
  append_hex(packet, name);
  packet += " AND NOT EXISTS (SELECT 1 FROM " + table_ + " WHERE name=";
  append_hex(packet, name);
  packet += ')';
}

void MysqlSql::forget(std::string& packet, std::string_view name, std::uint64_t version) const {
  begin(packet);
  packet += "DELETE FROM " + table_ + " WHERE name=";
  append_hex(packet, name);
  packet += " AND version=" + std::to_string(version) + " AND token<" + microseconds();
}

void MysqlSql::read_idle(std::string& packet, std::string_view after, std::size_t at_most) const {
  select(packet);
  // A released row says nothing of when that was; its last grant was later
  // than held_since, and its token later still.
  packet += " WHERE name>";
  append_hex(packet, after);
  packet += " AND GREATEST(held_since,held_until)<" + now() + "-INTERVAL " + micros(keep_idle_) +
            " MICROSECOND AND token<" + microseconds() + " ORDER BY name LIMIT " +
            std::to_string(at_most);
}

}  // namespace holdfast::engines
