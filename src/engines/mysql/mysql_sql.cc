#include "engines/mysql/mysql_sql.h"

#include <array>
#include <utility>

#include "engines/mysql/mysql_text.h"

namespace holdfast::engines {
namespace {

constexpr const char* kEpoch = "'1970-01-01 00:00:00.000000'";

void append_text(std::string& into, std::string_view text) {
  into += "_utf8mb4 ";
  append_hex(into, text);
}

std::string micros(core::Duration time) {
  return std::to_string(std::chrono::floor<std::chrono::microseconds>(time).count());
}

// A point in time, as a literal.
std::string moment(base::Time time) {
  return std::string{"("} + kEpoch + " + INTERVAL " + micros(time.time_since_epoch()) +
         " MICROSECOND)";
}

// Of a row that never was taken: whoever takes it begins at the clock.
const std::string kLowestToken = std::to_string(core::kTokenStride);
const std::string kRestOfBlock = std::to_string(core::kTokenStride - 1);

// Tokens past this are for the lock record to refuse.
std::string token_bound() {
  return std::to_string(core::kMaxToken - 2 * core::kTokenStride);
}

}  // namespace

void append_hex(std::string& into, std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  into += "x'";
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    into += kDigits[value >> 4U];
    into += kDigits[value & 0xFU];
  }
  into += '\'';
}

void append_hex(std::string& into, const base::Id& id) {
  std::array<char, sizeof id.bytes> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes.at(i) = static_cast<char>(id.bytes.at(i));
  }
  append_hex(into, std::string_view{bytes.data(), bytes.size()});
}

MysqlSql::MysqlSql(const MysqlOptions& options, const Party& party, const core::SessionId& session)
    : table_{options.locks_table()},
      notes_{options.notes_table()},
      fences_{options.fences_table()},
      schema_table_{options.schema_table()},
      session_{session},
      keep_idle_{options.keep_idle} {
  const Party us = clipped(party);
  append_hex(us_.session, session);
  append_text(us_.label, us.label);
  append_text(us_.host, us.host);
  us_.pid = std::to_string(us.pid);
}

std::string MysqlSql::now() const {
  return now_ ? moment(now_()) : "UTC_TIMESTAMP(6)";
}

std::string MysqlSql::microseconds() const {
  return std::string{"TIMESTAMPDIFF(MICROSECOND,"} + kEpoch + "," + now() + ")";
}

// One statement for all kinds. Whether a row's condition holds is decided by the first
// assignment: the later ones (they are done from left to right) see its mark. Only a wish
// to take a lock that may have no row says all that the row needs; any other that finds
// none makes one that is free, which does no harm and is told by its version. Text is
// what such a statement costs most: a third of the server's time went into reading it.
void MysqlSql::ask(std::string& packet, std::span<const Wish> wishes, std::uint64_t mark) const {
  const std::string now = this->now();
  const std::string micros_now = microseconds();
  begin(packet);
  packet += "INSERT INTO " + table_ +
            " (name,request_id,ttl_us,mark,version,waiting,session_id,holder,host,pid,held_since,"
            "held_until,token) VALUES ";
  append_list(packet, wishes, [&](const Wish& each) {
    packet += '(';
    append_hex(packet, each.name);
    packet += ',';
    append_hex(packet, each.request);
    packet += ',';
    packet += each.kind == Wish::Kind::prolong ? "-1" : micros(each.ttl);
    packet += ',' + std::to_string(mark++) + ",1,0,";
    if (each.kind == Wish::Kind::take && !each.has_row) {
      packet += us_.session + ',' + us_.label + ',' + us_.host + ',' + us_.pid + ',' + now + ',' +
                now + "+INTERVAL " + micros(each.ttl) + " MICROSECOND," + micros_now + '+' +
                kRestOfBlock;
    } else {
      packet.append("'','','',0,").append(kEpoch).append(",").append(kEpoch);
      packet += ',' + kLowestToken;
    }
    packet += ')';
  });
  const auto if_marked = [&](const char* column, std::string_view value,
                             std::string_view condition = {}) {
    packet.append(",").append(column).append("=IF(mark=VALUES(mark)").append(condition);
    packet.append(",").append(value).append(",").append(column).append(")");
  };
  packet +=
      " ON DUPLICATE KEY UPDATE mark=IF(rest IS NULL AND IF(VALUES(ttl_us)>0,held_until<=" + now +
      " AND token<" + token_bound() + ",request_id=VALUES(request_id) AND held_until>" + now +
      "),VALUES(mark),mark)";
  constexpr std::string_view kTaking = " AND VALUES(ttl_us)>0";
  if_marked("request_id", "VALUES(request_id)");
  if_marked("session_id", us_.session);
  if_marked("holder", us_.label);
  if_marked("host", us_.host);
  if_marked("pid", us_.pid);
  if_marked("held_since", now, kTaking);
  if_marked("token", "GREATEST(token+1," + micros_now + ")+" + kRestOfBlock, kTaking);
  packet += ",version=version+(mark=VALUES(mark))";
  if_marked("ttl_us", "VALUES(ttl_us)", kTaking);
  if_marked("held_until", std::string{"IF(VALUES(ttl_us)=0,"} + kEpoch + "," + now +
                              "+INTERVAL ttl_us MICROSECOND)");
}

void MysqlSql::exchange(std::string& packet, const Wish& give_back, const Wish& take) const {
  const std::string now = this->now();
  std::string given = "name=";
  append_hex(given, give_back.name);
  const auto set = [&](const char* column, const std::string& otherwise) {
    packet.append(column).append("=IF(").append(given).append(",").append(column).append(",");
    packet.append(otherwise).append("),");
  };
  std::string request;
  append_hex(request, take.request);
  std::string names;
  append_hex(names, give_back.name);
  names += ',';
  append_hex(names, take.name);
  begin(packet);
  packet += "UPDATE " + table_ + " SET ";
  set("token", "LAST_INSERT_ID(GREATEST(token+1," + microseconds() + "))+" + kRestOfBlock);
  set("request_id", request);
  packet += "session_id=" + us_.session + ",holder=" + us_.label + ",host=" + us_.host +
            ",pid=" + us_.pid + ",";
  set("held_since", now);
  set("ttl_us", micros(take.ttl));
  packet += "version=version+1,held_until=IF(" + given + "," + kEpoch + "," + now + "+INTERVAL " +
            micros(take.ttl) + " MICROSECOND) WHERE name IN (" + names +
            ") AND rest IS NULL AND IF(" + given + ",held_until>" + now + " AND request_id=";
  append_hex(packet, give_back.request);
  packet += ",held_until<=" + now + " AND token<" + token_bound() + ")";
}

void MysqlSql::requeue(std::string& packet, const Wish& next, const core::RequestId& held) const {
  const std::string now = this->now();
  begin(packet);
  packet += "UPDATE " + table_ + " SET request_id=";
  append_hex(packet, next.request);
  packet += ",held_since=" + now + ",held_until=" + now + "+INTERVAL " + micros(next.ttl) +
            " MICROSECOND,ttl_us=" + micros(next.ttl) + ",token=LAST_INSERT_ID(GREATEST(token+1," +
            microseconds() + "))+" + kRestOfBlock + ",version=version+1 WHERE name=";
  append_hex(packet, next.name);
  packet += " AND request_id=";
  append_hex(packet, held);
  packet += " AND rest IS NULL AND held_until>" + now + " AND token<" + token_bound();
}

void MysqlSql::add_columns(std::string& packet) const {
  const auto since_epoch = [](const char* column) {
    return std::string{"TIMESTAMPDIFF(MICROSECOND,"} + kEpoch + "," + column + ")";
  };
  packet += "name,version,mark," + microseconds() +
            ",token,request_id,session_id,holder,host,pid," + since_epoch("held_since") + "," +
            since_epoch("held_until") + ",ttl_us,rest";
}

void MysqlSql::select(std::string& packet) const {
  begin(packet);
  packet += "SELECT ";
  add_columns(packet);
  packet += " FROM " + table_;
}

void MysqlSql::answer_with_verdicts(std::string& packet) {
  packet += " RETURNING version,mark,token,ttl_us";
}

void MysqlSql::answer_with_rows(std::string& packet) const {
  packet += " RETURNING ";
  add_columns(packet);
}

void MysqlSql::read(std::string& packet, std::span<const std::string_view> names) const {
  select(packet);
  packet += " WHERE name IN (";
  append_list(packet, names, [&](std::string_view name) { append_hex(packet, name); });
  // The time, also where there is no row.
  packet += ") UNION ALL SELECT NULL,0,0," + microseconds() + ",0,NULL,NULL,NULL,NULL,0,0,0,0,NULL";
}

void MysqlSql::read_used(std::string& packet, std::string_view prefix, std::string_view after,
                         std::size_t at_most) const {
  select(packet);
  packet += " WHERE LEFT(name," + std::to_string(prefix.size()) + ")=";
  append_hex(packet, prefix);
  packet += " AND name>=";
  append_hex(packet, prefix);
  packet += " AND name>";
  append_hex(packet, after);
  packet += " AND (rest IS NOT NULL OR held_until>" + now() + ") ORDER BY name LIMIT " +
            std::to_string(at_most);
}

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

void MysqlSql::read_marked(std::string& packet, std::span<const Change> changes,
                           std::uint64_t mark) const {
  begin(packet);
  packet += "SELECT name FROM " + table_ + " WHERE mark=" + std::to_string(mark) + " AND name IN (";
  append_list(packet, changes, [&](const Change& change) { append_hex(packet, change.name); });
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

std::vector<std::string> MysqlSql::schema() const {
  const std::string text = " CHARACTER SET utf8mb4 COLLATE utf8mb4_bin";
  return {
      "CREATE TABLE IF NOT EXISTS " + schema_table_ +
          " (\n"
          "  id TINYINT NOT NULL PRIMARY KEY,\n"
          "  version INT NOT NULL\n"
          ") ENGINE=InnoDB",
      "CREATE TABLE IF NOT EXISTS " + table_ +
          " (\n"
          "  name VARBINARY(255) NOT NULL PRIMARY KEY,\n"
          "  holder VARCHAR(64)" +
          text +
          " NOT NULL,\n"
          "  host VARCHAR(64)" +
          text +
          " NOT NULL,\n"
          "  pid BIGINT NOT NULL,\n"
          "  held_since DATETIME(6) NOT NULL COMMENT 'UTC',\n"
          "  held_until DATETIME(6) NOT NULL COMMENT 'UTC; in the past: free',\n"
          "  waiting INT UNSIGNED NOT NULL COMMENT 'how many stand in the queue',\n"
          "  queue TEXT" +
          text +
          " NULL COMMENT 'who, first in line first',\n"
          "  token BIGINT UNSIGNED NOT NULL COMMENT 'the last one given out',\n"
          "  ttl_us BIGINT NOT NULL,\n"
          "  request_id BINARY(16) NOT NULL,\n"
          "  session_id BINARY(16) NOT NULL,\n"
          "  version BIGINT UNSIGNED NOT NULL,\n"
          "  mark BIGINT UNSIGNED NOT NULL,\n"
          "  rest MEDIUMBLOB NULL COMMENT 'several holders, or a queue'\n"
          ") ENGINE=InnoDB COMMENT='locks of holdfast'",
      "CREATE TABLE IF NOT EXISTS " + notes_ +
          " (\n"
          "  session_id BINARY(16) NOT NULL,\n"
          "  request_id BINARY(16) NOT NULL,\n"
          "  noted DATETIME(6) NOT NULL,\n"
          "  PRIMARY KEY (session_id, request_id)\n"
          ") ENGINE=InnoDB COMMENT='holdfast: revoked locks whose holders were not told yet'",
      "CREATE TABLE IF NOT EXISTS " + fences_ +
          " (\n"
          "  name VARBINARY(255) NOT NULL PRIMARY KEY,\n"
          "  token BIGINT UNSIGNED NOT NULL COMMENT 'of the oldest grant that may still commit'\n"
          ") ENGINE=InnoDB COMMENT='holdfast: locks that are checked in transactions'",
      "INSERT IGNORE INTO " + schema_table_ + " (id, version) VALUES (1, " +
          std::to_string(kMysqlSchemaVersion) + ")",
  };
}

}  // namespace holdfast::engines
