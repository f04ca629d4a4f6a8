#include "engines/mysql/mysql_classic_sql.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>

#include "engines/mysql/mysql_sql.h"

namespace holdfast::engines {
namespace {

// --- shedlock: what Java's ShedLock does with usingDbTime(). Its columns are
// TIMESTAMP as a rule, so the session needs the time zone of everybody else.

constexpr std::array<std::string_view, 4> kShedlockColumns{"name", "lock_until", "locked_at",
                                                           "locked_by"};
constexpr ClassicForm kShedlock{
    .strategy = "shedlock",
    .default_table = "shedlock",
    .columns = kShedlockColumns,
    .create =
        "CREATE TABLE IF NOT EXISTS {t} ("
        "{name} VARCHAR(765) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,"
        "{lock_until} TIMESTAMP(3) NOT NULL DEFAULT '1971-01-01',"
        "{locked_at} TIMESTAMP(3) NOT NULL DEFAULT '1971-01-01',"
        "{locked_by} VARCHAR(255) NOT NULL) ENGINE=InnoDB",
    .now = "UTC_TIMESTAMP(3)",
    .take =
        "INSERT INTO {t} ({name},{lock_until},{locked_at},{locked_by}) SELECT "
        "{n},TIMESTAMPADD(MICROSECOND,{ttl},{now}),{now},{o} FROM DUAL "
        "WHERE NOT EXISTS (SELECT 1 FROM {t} x WHERE x.{name}={n});"
        "UPDATE {t} SET {lock_until}=TIMESTAMPADD(MICROSECOND,{ttl},{now}),{locked_at}={now},"
        "{locked_by}={o} WHERE {name}={n} AND {lock_until}<={now}",
    .renew =
        "UPDATE {t} SET {lock_until}=TIMESTAMPADD(MICROSECOND,{ttl},{now}) "
        "WHERE {name}={n} AND {locked_by}={o} AND {lock_until}>{now}",
    .release =
        "UPDATE {t} SET {lock_until}=IF(TIMESTAMPADD(MICROSECOND,{least},{locked_at})>{now},"
        "TIMESTAMPADD(MICROSECOND,{least},{locked_at}),{now}) WHERE {name}={n} AND "
        "{locked_by} IN ({o},CONCAT({o},' (revoked)')) AND {lock_until}>{now}",
    .revoke =
        "UPDATE {t} SET {locked_by}=CONCAT(LEFT({locked_by},245),' (revoked)') "
        "WHERE {name}={n} AND {lock_until}>{now} AND {locked_by} NOT LIKE '% (revoked)'",
    .free_now = "UPDATE {t} SET {lock_until}={now} WHERE {name}={n} AND {lock_until}>{now}",
    .look =
        "TIMESTAMPDIFF(MICROSECOND,UTC_TIMESTAMP(6),{lock_until}),{locked_by},0,"
        "TIMESTAMPDIFF(MICROSECOND,{locked_at},UTC_TIMESTAMP(6))",
    .prelude = "SET time_zone=@@GLOBAL.time_zone",
};

// --- insert: the row is the lock. Its id is the right to end it, and the token.

constexpr std::array<std::string_view, 5> kInsertColumns{"name", "id", "created_at", "timeout",
                                                         "owner"};
constexpr ClassicForm kInsert{
    .strategy = "insert",
    .token = TokenKind::row_id,
    .default_table = "holdfast_insert",
    .columns = kInsertColumns,
    .create =
        "CREATE TABLE IF NOT EXISTS {t} ("
        "{id} BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,"
        "{name} VARCHAR(765) CHARACTER SET ascii COLLATE ascii_bin NOT NULL UNIQUE,"
        "{created_at} DATETIME(6) NOT NULL,"
        "{timeout} BIGINT NOT NULL COMMENT 'microseconds',"
        "{owner} VARCHAR(255) NOT NULL) ENGINE=InnoDB",
    .now = "UTC_TIMESTAMP(6)",
    .take =
        "INSERT INTO {t} ({name},{created_at},{timeout},{owner}) SELECT {n},{now},{ttl},{o} "
        "FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM {t} x WHERE x.{name}={n})",
    .take_over =
        "DELETE FROM {t} WHERE {id}={row} AND "
        "TIMESTAMPADD(MICROSECOND,{timeout},{created_at})<={now}",
    .renew =
        "UPDATE {t} SET {timeout}=TIMESTAMPDIFF(MICROSECOND,{created_at},{now})+{ttl} "
        "WHERE {name}={n} AND {owner}={o} "
        "AND TIMESTAMPADD(MICROSECOND,{timeout},{created_at})>{now}",
    .release =
        "DELETE FROM {t} WHERE {id}={row} AND {owner} IN ({o},CONCAT({o},' (revoked)')) "
        "AND TIMESTAMPADD(MICROSECOND,{timeout},{created_at})>{now}",
    .revoke =
        "UPDATE {t} SET {owner}=CONCAT(LEFT({owner},245),' (revoked)') WHERE {name}={n} AND "
        "TIMESTAMPADD(MICROSECOND,{timeout},{created_at})>{now} AND "
        "{owner} NOT LIKE '% (revoked)'",
    .free_now =
        "DELETE FROM {t} WHERE {name}={n} AND "
        "TIMESTAMPADD(MICROSECOND,{timeout},{created_at})>{now}",
    .look =
        "TIMESTAMPDIFF(MICROSECOND,{now},TIMESTAMPADD(MICROSECOND,{timeout},{created_at})),"
        "{owner},{id},TIMESTAMPDIFF(MICROSECOND,{created_at},{now})",
};

// --- timestamp: one row a name for good; free when the holder was not heard
// of for as long as it said.

constexpr std::array<std::string_view, 4> kTimestampColumns{"lock_key", "holder", "last_lock_time",
                                                            "timeout"};
constexpr ClassicForm kTimestamp{
    .strategy = "timestamp",
    .default_table = "holdfast_timestamp",
    .columns = kTimestampColumns,
    .create =
        "CREATE TABLE IF NOT EXISTS {t} ("
        "{lock_key} VARCHAR(765) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,"
        "{holder} VARCHAR(255) NOT NULL,"
        "{last_lock_time} DATETIME(6) NOT NULL,"
        "{timeout} BIGINT NOT NULL COMMENT 'microseconds') ENGINE=InnoDB",
    .now = "UTC_TIMESTAMP(6)",
    .take =
        "INSERT INTO {t} ({lock_key},{holder},{last_lock_time},{timeout}) SELECT "
        "{n},{o},{now},{ttl} FROM DUAL WHERE NOT EXISTS "
        "(SELECT 1 FROM {t} x WHERE x.{lock_key}={n});"
        "UPDATE {t} SET {holder}={o},{last_lock_time}={now},{timeout}={ttl} WHERE "
        "{lock_key}={n} AND TIMESTAMPADD(MICROSECOND,{timeout},{last_lock_time})<={now}",
    .renew =
        "UPDATE {t} SET {last_lock_time}={now},{timeout}={ttl} WHERE {lock_key}={n} AND "
        "{holder}={o} AND TIMESTAMPADD(MICROSECOND,{timeout},{last_lock_time})>{now}",
    .release =
        "UPDATE {t} SET {holder}='',{last_lock_time}='1971-01-01' WHERE {lock_key}={n} AND "
        "{holder} IN ({o},CONCAT({o},' (revoked)')) AND "
        "TIMESTAMPADD(MICROSECOND,{timeout},{last_lock_time})>{now}",
    .revoke =
        "UPDATE {t} SET {holder}=CONCAT(LEFT({holder},245),' (revoked)') WHERE "
        "{lock_key}={n} AND {holder} NOT LIKE '% (revoked)' AND "
        "TIMESTAMPADD(MICROSECOND,{timeout},{last_lock_time})>{now}",
    .free_now =
        "UPDATE {t} SET {holder}='',{last_lock_time}='1971-01-01' WHERE {lock_key}={n} AND "
        "TIMESTAMPADD(MICROSECOND,{timeout},{last_lock_time})>{now}",
    .look =
        "TIMESTAMPDIFF(MICROSECOND,{now},TIMESTAMPADD(MICROSECOND,{timeout},{last_lock_time})),"
        "{holder},0,TIMESTAMPDIFF(MICROSECOND,{last_lock_time},{now})",
};

// --- slots: a central row a slot of names, locked while one of its locks
// changes. Only that row is shared: two names in one slot are two locks.

constexpr std::array<std::string_view, 6> kSlotsColumns{"lock_name", "status",     "deadline",
                                                        "locked_at", "lock_count", "request_id"};
constexpr ClassicForm kSlots{
    .strategy = "slots",
    .default_table = "holdfast_slots",
    .columns = kSlotsColumns,
    .create =
        "CREATE TABLE IF NOT EXISTS {t} ("
        "{lock_name} VARCHAR(765) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,"
        "{status} TINYINT NOT NULL COMMENT '1: locked',"
        "{deadline} DATETIME(6) NOT NULL,"
        "{locked_at} DATETIME(6) NOT NULL,"
        "{lock_count} INT NOT NULL,"
        "{request_id} VARCHAR(255) NOT NULL) ENGINE=InnoDB;"
        "CREATE TABLE IF NOT EXISTS {center} (slot INT NOT NULL PRIMARY KEY) ENGINE=InnoDB;"
        "INSERT IGNORE INTO {center} (slot) SELECT a.d+4*b.d+16*c.d FROM "
        "(SELECT 0 AS d UNION SELECT 1 UNION SELECT 2 UNION SELECT 3) a,"
        "(SELECT 0 AS d UNION SELECT 1 UNION SELECT 2 UNION SELECT 3) b,"
        "(SELECT 0 AS d UNION SELECT 1 UNION SELECT 2 UNION SELECT 3) c",
    .now = "UTC_TIMESTAMP(6)",
    .take =
        "START TRANSACTION;SELECT slot FROM {center} WHERE slot=CRC32({n})%64 FOR UPDATE;"
        "INSERT INTO {t} ({lock_name},{status},{deadline},{locked_at},{lock_count},"
        "{request_id}) SELECT {n},1,TIMESTAMPADD(MICROSECOND,{ttl},{now}),{now},1,{o} FROM "
        "DUAL WHERE NOT EXISTS (SELECT 1 FROM {t} x WHERE x.{lock_name}={n});"
        "UPDATE {t} SET {deadline}=TIMESTAMPADD(MICROSECOND,{ttl},{now}),{locked_at}={now},"
        "{lock_count}=1,{request_id}={o},{status}=1 WHERE {lock_name}={n} AND "
        "({status}=0 OR {deadline}<={now});COMMIT",
    .renew =
        "UPDATE {t} SET {deadline}=TIMESTAMPADD(MICROSECOND,{ttl},{now}) WHERE "
        "{lock_name}={n} AND {request_id}={o} AND {status}=1 AND {deadline}>{now}",
    .release =
        "UPDATE {t} SET {status}=0,{lock_count}=0,{deadline}={now} WHERE {lock_name}={n} "
        "AND {request_id} IN ({o},CONCAT({o},' (revoked)')) AND {status}=1 AND "
        "{deadline}>{now}",
    .revoke =
        "UPDATE {t} SET {request_id}=CONCAT(LEFT({request_id},245),' (revoked)') WHERE "
        "{lock_name}={n} AND {status}=1 AND {deadline}>{now} AND "
        "{request_id} NOT LIKE '% (revoked)'",
    .free_now =
        "UPDATE {t} SET {status}=0,{lock_count}=0,{deadline}={now} WHERE {lock_name}={n} "
        "AND {status}=1 AND {deadline}>{now}",
    .look =
        "IF({status}=1,TIMESTAMPDIFF(MICROSECOND,{now},{deadline}),0),{request_id},0,"
        "TIMESTAMPDIFF(MICROSECOND,{locked_at},{now})",
    .prelude = "ROLLBACK",
};

// --- status: t_resource_lock. At most one run a period, and how the last run
// went: P while it runs, S after a release, F after one that was revoked.

constexpr std::array<std::string_view, 6> kStatusColumns{"key_resource", "status",   "lock_flag",
                                                         "begin_time",   "end_time", "client_ip"};
constexpr ClassicForm kStatus{
    .strategy = "status",
    .default_table = "t_resource_lock",
    .columns = kStatusColumns,
    .create =
        "CREATE TABLE IF NOT EXISTS {t} ("
        "{key_resource} VARCHAR(765) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,"
        "{status} CHAR(1) NOT NULL COMMENT 'P: runs, S: succeeded, F: failed',"
        "{lock_flag} INT UNSIGNED NOT NULL COMMENT '1: locked',"
        "{begin_time} DATETIME(6) NOT NULL,"
        "{end_time} DATETIME(6) NOT NULL COMMENT 'while locked: when that ends by itself',"
        "{client_ip} VARCHAR(255) NOT NULL) ENGINE=InnoDB",
    .now = "UTC_TIMESTAMP(6)",
    .take =
        "INSERT INTO {t} ({key_resource},{status},{lock_flag},{begin_time},{end_time},"
        "{client_ip}) SELECT {n},'P',1,{now},TIMESTAMPADD(MICROSECOND,{ttl},{now}),{o} FROM "
        "DUAL WHERE NOT EXISTS (SELECT 1 FROM {t} x WHERE x.{key_resource}={n});"
        "UPDATE {t} SET {status}='P',{client_ip}={o},{end_time}=TIMESTAMPADD(MICROSECOND,{ttl},"
        "{now}),{lock_flag}=1,{begin_time}={now} WHERE {key_resource}={n} AND "
        "{end_time}<={now} AND ({lock_flag}=1 OR {status}='F' OR "
        "TIMESTAMPADD(MICROSECOND,{period},{begin_time})<={now})",
    .renew =
        "UPDATE {t} SET {end_time}=TIMESTAMPADD(MICROSECOND,{ttl},{now}) WHERE "
        "{key_resource}={n} AND {client_ip}={o} AND {lock_flag}=1 AND {end_time}>{now}",
    .release =
        "UPDATE {t} SET {lock_flag}=0,{status}=IF({client_ip}={o},'S','F'),{end_time}={now} "
        "WHERE {key_resource}={n} AND {client_ip} IN ({o},CONCAT({o},' (revoked)')) AND "
        "{lock_flag}=1 AND {end_time}>{now}",
    .revoke =
        "UPDATE {t} SET {client_ip}=CONCAT(LEFT({client_ip},245),' (revoked)') WHERE "
        "{key_resource}={n} AND {lock_flag}=1 AND {end_time}>{now} AND "
        "{client_ip} NOT LIKE '% (revoked)'",
    .free_now =
        "UPDATE {t} SET {lock_flag}=0,{status}='F',{end_time}={now} WHERE "
        "{key_resource}={n} AND {lock_flag}=1 AND {end_time}>{now}",
    .look =
        "IF({lock_flag}=1,TIMESTAMPDIFF(MICROSECOND,{now},{end_time}),0),{client_ip},0,"
        "TIMESTAMPDIFF(MICROSECOND,{begin_time},{now})",
};

constexpr std::array kForms{kShedlock, kInsert, kTimestamp, kSlots, kStatus};

void put(std::string& packet, std::string_view statement) {
  if (!packet.empty()) {
    packet += ';';
  }
  packet += statement;
}

std::string text(std::string_view bytes) {
  std::string literal = "_utf8mb4 ";
  append_hex(literal, bytes);
  return literal;
}

// Whatever stands in braces is replaced; what a hole holds may have holes.
std::string filled(std::string_view statement,
                   const std::function<std::string_view(std::string_view)>& hole) {
  std::string made;
  while (!statement.empty()) {
    const auto open = std::min(statement.find('{'), statement.size());
    made += statement.substr(0, open);
    statement.remove_prefix(open);
    if (!statement.empty()) {
      const auto close = statement.find('}');
      made += hole(statement.substr(1, close - 1));
      statement.remove_prefix(close + 1);
    }
  }
  return made;
}

}  // namespace

std::span<const ClassicForm> classic_forms() {
  return kForms;
}

const ClassicForm* classic_form(std::string_view strategy) {
  const auto* found = std::find_if(kForms.begin(), kForms.end(), [&](const ClassicForm& form) {
    return form.strategy == strategy;
  });
  return found == kForms.end() ? nullptr : found;
}

ClassicSql::ClassicSql(const ClassicForm& form, const MysqlOptions& options) : form_{form} {
  const std::string table = options.table.empty() ? std::string{form.default_table} : options.table;
  holes_["t"] = "`" + table + "`";
  holes_["now"] = form.now;
  holes_["center"] = "`" + table + "_center`";
  holes_["least"] = micros(options.lock_at_least);
  holes_["period"] = micros(options.period);
  for (const std::string_view column : form.columns) {
    const auto named = options.columns.find(column);
    holes_[std::string{column}] =
        "`" + (named == options.columns.end() ? std::string{column} : named->second) + "`";
  }
  waiting_ = "`" + table + "_waiting`";
}

void ClassicSql::append(std::string& packet, std::string_view statement,
                        const Values& values) const {
  if (packet.empty() && !form_.prelude.empty()) {
    put(packet, form_.prelude);
  }
  const std::map<std::string_view, std::string> now{{"n", text(values.key)},
                                                    {"o", text(values.owner)},
                                                    {"ttl", micros(values.ttl)},
                                                    {"row", std::string{values.id}}};
  put(packet, filled(statement, [&](std::string_view hole) -> std::string_view {
        const auto found = now.find(hole);
        return found != now.end() ? std::string_view{found->second} : holes_.find(hole)->second;
      }));
}

void ClassicSql::look(std::string& packet, const Values& values) const {
  append(packet,
         "SELECT " + std::string{form_.look} + " FROM {t} WHERE {" +
             std::string{form_.columns.front()} + "}={n}",
         values);
}

void ClassicSql::take(std::string& packet, const Values& values) const {
  append(packet, form_.take, values);
  look(packet, values);
}

bool ClassicSql::take_over(std::string& packet, const Values& values) const {
  if (form_.take_over.empty()) {
    return false;
  }
  append(packet, form_.take_over, values);
  take(packet, values);
  return true;
}

void ClassicSql::renew(std::string& packet, const Values& values) const {
  append(packet, form_.renew, values);
  look(packet, values);
}

void ClassicSql::release(std::string& packet, const Values& values) const {
  append(packet, form_.release, values);
}

void ClassicSql::revoke(std::string& packet, const Values& values) const {
  append(packet, form_.revoke, values);
}

void ClassicSql::free_now(std::string& packet, const Values& values) const {
  append(packet, form_.free_now, values);
}

void ClassicSql::list(std::string& packet, std::string_view prefix) const {
  const std::string name = "{" + std::string{form_.columns.front()} + "}";
  append(packet,
         "SELECT " + name + "," + std::string{form_.look} + " FROM {t} WHERE LEFT(" + name + "," +
             std::to_string(prefix.size()) + ")={n} ORDER BY " + name,
         {.key = prefix, .owner = ""});
}

void ClassicSql::note_waiter(std::string& packet, const Values& values, std::string_view request,
                             std::string_view who) const {
  put(packet, "INSERT INTO " + waiting_ + " (request,name,who,since,until) VALUES (" +
                  text(request) + "," + text(values.key) + "," + text(who) +
                  ",UTC_TIMESTAMP(6),TIMESTAMPADD(MICROSECOND," + micros(values.ttl) +
                  ",UTC_TIMESTAMP(6))) ON DUPLICATE KEY UPDATE until=VALUES(until)");
}

void ClassicSql::forget_waiter(std::string& packet, std::string_view request) const {
  put(packet, "DELETE FROM " + waiting_ + " WHERE request=" + text(request));
  put(packet,
      "DELETE FROM " + waiting_ + " WHERE until<UTC_TIMESTAMP(6)-INTERVAL 1 MINUTE LIMIT 10");
}

void ClassicSql::list_waiters(std::string& packet, std::string_view prefix) const {
  put(packet, "SELECT name,who,TIMESTAMPDIFF(MICROSECOND,since,UTC_TIMESTAMP(6)) FROM " + waiting_ +
                  " WHERE LEFT(name," + std::to_string(prefix.size()) + ")=" + text(prefix) +
                  " AND until>UTC_TIMESTAMP(6) ORDER BY since");
}

std::string ClassicSql::create() const {
  std::string packet;
  append(packet, form_.create, {.key = "", .owner = ""});
  put(packet, "CREATE TABLE IF NOT EXISTS " + waiting_ +
                  " (request CHAR(32) CHARACTER SET ascii NOT NULL PRIMARY KEY,"
                  "name VARCHAR(765) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,"
                  "who VARCHAR(255) NOT NULL,since DATETIME(6) NOT NULL,until DATETIME(6) NOT NULL"
                  ") ENGINE=InnoDB COMMENT='holdfast: who waits; for people'");
  return packet;
}

}  // namespace holdfast::engines
