#include <algorithm>
#include <chrono>

#include "engines/mysql/mysql_features.h"
#include "engines/mysql/mysql_session_locks.h"
#include "engines/mysql/mysql_sql.h"
#include "engines/relational/odd_bytes.h"

namespace holdfast::engines {
namespace {

using relational::escaped;

// A wait is begun anew that often: a server that waits for a lock does not
// notice that its client has died.
constexpr std::string_view kLongestWait = "20";

std::string hex(std::string_view bytes) {
  std::string text;
  append_hex(text, bytes);
  return text;
}

// Most collations ignore spaces at the end.
std::string hex_key(std::string_view key) {
  if (!key.ends_with(' ')) {
    return hex(key);
  }
  return hex(std::string{key.substr(0, key.size() - 1)} + "%20");
}

std::string hex(const base::Id& id) {
  std::string text;
  append_hex(text, id);
  return text;
}

std::string beacon_name(const std::string& number) {
  return "CONCAT('holdfast-'," + number + ")";
}

std::string patience(std::string_view seconds) {
  return "SET SESSION innodb_lock_wait_timeout=" + std::string{seconds};
}

std::string quoted(const std::string& identifier) {
  return "`" + identifier + "`";
}

}  // namespace

MysqlSessionSql::MysqlSessionSql(const MysqlOptions& options, const Party& party)
    : strategy_{options.strategy},
      prefix_{options.prefix},
      rows_{quoted(options.table.empty() ? options.prefix + "session_names" : options.table)},
      name_{
          quoted(options.columns.contains("name") ? options.columns.find("name")->second : "name")},
      notes_{quoted(options.prefix + "session_locks")},
      own_rows_{options.table.empty() && in_transaction()},
      party_{party} {}

// A server may end sessions that are idle, transactions that are, and
// statements that take long: not these.
std::string MysqlSessionSql::settle(std::int64_t beacon) const {
  return "SET SESSION wait_timeout=2147483,autocommit=" +
         std::string{in_transaction() ? "0" : "1"} +
         "/*M!100300 ,idle_transaction_timeout=0,idle_readonly_transaction_timeout=0,"
         "idle_write_transaction_timeout=0,max_statement_time=0 */"
         "/*!50708 ,max_execution_time=0 */;"
         "SELECT GET_LOCK(" +
         beacon_name(std::to_string(beacon)) + ",0),CONNECTION_ID()";
}

// Locks of this kind are the whole server's, their names of 64 characters at
// most, and their case is ignored. MySQL 9.6 has no SHA1() any more.
std::string MysqlSessionSql::lock_name(const relational::Wanted& wanted) const {
  return "CONCAT('holdfast:',LEFT(SHA2(CONCAT(DATABASE(),'/'," + hex(prefix_ + wanted.key) +
         "),256),40))";
}

std::string MysqlSessionSql::try_lock(const relational::Wanted& wanted,
                                      std::string_view version) const {
  if (strategy_ == "advisory") {
    return "SELECT GET_LOCK(" + lock_name(wanted) + ",0)";
  }
  const std::string key = hex_key(wanted.key);
  const MysqlFeatures features = MysqlFeatures::of(version);
  // The shortest patience of MySQL is a second: the row is asked for first.
  const std::string look = select(key) + (features.nowait ? " NOWAIT" : "");
  if (strategy_ != "upsert") {
    return patience("1") + ";" + look;
  }
  return features.mariadb ? patience("0") + ";" + upsert(key)
                          : patience("1") + ";" + look + ";" + upsert(key);
}

std::string MysqlSessionSql::await_lock(const relational::Wanted& wanted) const {
  if (strategy_ == "advisory") {
    return "SELECT GET_LOCK(" + lock_name(wanted) + "," + std::string{kLongestWait} + ")";
  }
  const std::string key = hex_key(wanted.key);
  return strategy_ == "upsert" ? upsert(key) : select(key);
}

std::string MysqlSessionSql::before_await() const {
  return strategy_ == "advisory" ? "DO 0" : patience(kLongestWait);
}

std::string MysqlSessionSql::upsert(const std::string& key) const {
  return "INSERT INTO " + rows_ + " (" + name_ + ") VALUES (" + key + ") ON DUPLICATE KEY UPDATE " +
         name_ + "=" + name_;
}

std::string MysqlSessionSql::select(const std::string& key) const {
  return "SELECT 1 FROM " + rows_ + " WHERE " + name_ + "=" + key + " FOR UPDATE";
}

std::string MysqlSessionSql::free(const relational::Wanted& wanted) const {
  return in_transaction() ? "COMMIT" : "DO RELEASE_LOCK(" + lock_name(wanted) + ")";
}

// Before anybody locks it: a lock on a missing row would lock a gap.
std::string MysqlSessionSql::know(const relational::Wanted& wanted) const {
  if (strategy_ == "advisory") {
    return "";
  }
  if (strategy_ == "upsert") {
    return "SELECT 1 FROM " + rows_ + " LIMIT 0";  // the statement makes its row, not the table
  }
  const std::string key = hex_key(wanted.key);
  return "INSERT INTO " + rows_ + " (" + name_ + ") SELECT " + key +
         " FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM " + rows_ + " x WHERE x." + name_ + "=" + key +
         ")";
}

std::string MysqlSessionSql::write(const relational::Books::Note& note) const {
  return "INSERT INTO " + notes_ +
         " (request,name,waiting,since,ttl,holder,host,pid,connection,beacon) VALUES (" +
         hex(note.request) + "," + hex_key(note.wanted.key) + "," + (note.waiting ? "1" : "0") +
         ",UTC_TIMESTAMP(6)," + micros(note.ttl) + "," + hex(escaped(party_.label)) + "," +
         hex(escaped(party_.host)) + "," + std::to_string(party_.pid) + "," +
         std::to_string(note.session.connection) + "," + std::to_string(note.session.beacon) +
         ") ON DUPLICATE KEY UPDATE waiting=VALUES(waiting),since=VALUES(since),"
         "connection=VALUES(connection),beacon=VALUES(beacon)";
}

std::string MysqlSessionSql::strike(const std::vector<core::RequestId>& requests) const {
  std::string packet = "DELETE FROM " + notes_ + " WHERE request IN (";
  for (std::size_t i = 0; i < requests.size(); ++i) {
    packet += (i == 0 ? "" : ",") + hex(requests[i]);
  }
  return packet + ")";
}

std::string MysqlSessionSql::is_alive(const relational::Identity& session) {
  return "IFNULL(IS_USED_LOCK(" + beacon_name(std::to_string(session.beacon)) +
         ")=" + std::to_string(session.connection) + ",0)";
}

std::string MysqlSessionSql::look(
    const std::vector<std::pair<core::RequestId, relational::Identity>>& holds) const {
  std::string alive = "SELECT ";
  std::string revoked = ";SELECT request FROM " + notes_ + " WHERE revoked=1 AND request IN (";
  for (std::size_t i = 0; i < holds.size(); ++i) {
    const std::string comma = i == 0 ? "" : ",";
    alive += comma + is_alive(holds[i].second);
    revoked += comma + hex(holds[i].first);
  }
  return alive + revoked + ")";
}

namespace {

const std::string kAlive = "IS_USED_LOCK(" + beacon_name("beacon") + ")=connection";

}  // namespace

std::string MysqlSessionSql::revoke(std::string_view key) const {
  return "UPDATE " + notes_ + " SET revoked=revoked+1 WHERE name=" + hex_key(key) +
         " AND waiting=0 AND revoked=0 AND " + kAlive;
}

std::string MysqlSessionSql::holders(std::string_view key) const {
  return "SELECT connection,beacon FROM " + notes_ + " WHERE name=" + hex_key(key) +
         " AND waiting=0 AND " + kAlive;
}

std::string MysqlSessionSql::find(std::string_view prefix) const {
  return "SELECT name,waiting,revoked,TIMESTAMPDIFF(MICROSECOND,since,UTC_TIMESTAMP(6)),ttl,holder,"
         "host,pid FROM " +
         notes_ + " WHERE LEFT(name," + std::to_string(prefix.size()) + ")=" + hex(prefix) +
         " AND " + kAlive + " ORDER BY name,since";
}

std::string MysqlSessionSql::tidy() const {
  return "DELETE FROM " + notes_ +
         " WHERE since<UTC_TIMESTAMP(6)-INTERVAL 1 MINUTE AND NOT IFNULL(" + kAlive + ",0)";
}

std::string MysqlSessionSql::unused_names() const {
  return "SELECT n." + name_ + " FROM " + rows_ + " n WHERE NOT EXISTS (SELECT 1 FROM " + notes_ +
         " l WHERE l.name=n." + name_ + ") LIMIT 100";
}

std::string MysqlSessionSql::forget_name(std::string_view key) const {
  return patience("1") + ";DELETE FROM " + rows_ + " WHERE " + name_ + "=" + hex(key);
}

std::string MysqlSessionSql::create() const {
  std::string packet =
      "CREATE TABLE IF NOT EXISTS " + notes_ +
      " (request BINARY(16) NOT NULL PRIMARY KEY,"
      "name VARCHAR(765) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,"
      "waiting TINYINT NOT NULL,revoked TINYINT NOT NULL DEFAULT 0,since DATETIME(6) NOT NULL,"
      "ttl BIGINT NOT NULL COMMENT 'microseconds',"
      "holder VARCHAR(765) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,"
      "host VARCHAR(765) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,pid BIGINT NOT NULL,"
      "connection BIGINT NOT NULL,"
      "beacon BIGINT NOT NULL COMMENT 'counts while that connection holds holdfast-<this>',"
      "KEY (name)) ENGINE=InnoDB COMMENT='holdfast: who holds and waits; for people'";
  if (strategy_ != "advisory") {
    packet += ";CREATE TABLE IF NOT EXISTS " + rows_ + " (" + name_ +
              " VARCHAR(765) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY) "
              "ENGINE=InnoDB COMMENT='holdfast: rows that are locked'";
  }
  return packet;
}

}  // namespace holdfast::engines
