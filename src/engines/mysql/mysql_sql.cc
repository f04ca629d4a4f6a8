#include "engines/mysql/mysql_sql.h"

#include <array>
#include <utility>

#include "engines/mysql/mysql_next.h"
#include "engines/mysql/mysql_text.h"

namespace holdfast::engines {
namespace {

// Of a row that never was taken: whoever takes it begins at the clock.
const std::string kLowestToken = std::to_string(core::kTokenStride);
const std::string kRestOfBlock = std::to_string(core::kTokenStride - 1);

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
      party_{clipped(party)},
      keep_idle_{options.keep_idle} {
  append_hex(us_.session, session);
  append_text(us_.label, party_.label);
  append_text(us_.host, party_.host);
  us_.pid = std::to_string(party_.pid);
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

// @holdfast_bell is found by the condition itself: a statement less for those who wait.
std::size_t MysqlSql::pass_on(std::string& packet, const Wish& give_back, std::uint64_t mark,
                              bool on_mariadb) const {
  const mysql::NextSql next{give_back.request, party_};
  const std::string now = this->now();
  std::string name = "name=";
  append_hex(name, give_back.name);
  begin(packet);
  packet += "SET @holdfast_bell=NULL;START TRANSACTION;UPDATE " + table_ + " SET ";
  const auto set = [&](const char* column, std::string_view given_back, const std::string& passed) {
    packet.append(column).append("=IF(rest IS NULL,").append(given_back);
    packet.append(",").append(passed).append("),");
  };
  set("request_id", "request_id", next.request);
  set("holder", "holder", next.label);
  set("host", "host", next.host);
  set("pid", "pid", next.pid);
  set("ttl_us", "ttl_us", next.ttl);
  set("held_since", "held_since", now);
  set("held_until", kEpoch, now + "+INTERVAL " + next.ttl_at_first + " MICROSECOND");
  packet += "version=version+1,mark=" + std::to_string(mark) +
            ",waiting=0,queue=NULL,rest=NULL WHERE " + name + " AND held_until>" + now +
            " AND IF(rest IS NULL,request_id=";
  append_hex(packet, give_back.request);
  packet += ",session_id NOT IN (";
  append_hex(packet, core::SessionId{});
  packet += ',' + us_.session + ") AND " + next.is_held + " AND " + next.heard +
            "<=" + microseconds() + " AND " + next.waits_until + '>' + microseconds() +
            " AND IFNULL(@holdfast_bell:=" + bell_in_use("session_id") + ",0)>0)";
  const std::size_t rings = ring(packet, on_mariadb);
  packet += ";COMMIT";
  select(packet);
  packet += " WHERE " + name + " AND mark<>" + std::to_string(mark);
  return 3 + rings;
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

void MysqlSql::read_rows(std::string& packet, std::span<const std::string_view> names) const {
  select(packet);
  packet += " WHERE name IN (";
  append_list(packet, names, [&](std::string_view name) { append_hex(packet, name); });
  packet += ')';
}

void MysqlSql::read_settled(std::string& packet, std::string_view name) const {
  select(packet);
  packet += " WHERE name=";
  append_hex(packet, name);
  packet += " LOCK IN SHARE MODE";
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

}  // namespace holdfast::engines
