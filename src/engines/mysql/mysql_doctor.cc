// `holdfast doctor` on MySQL and MariaDB.
#include <algorithm>
#include <array>
#include <charconv>

#include "engine/credentials.h"
#include "engines/mysql/mysql_clerk.h"
#include "engines/mysql/mysql_features.h"

namespace holdfast::engines {
namespace {

using Level = Finding::Level;

std::string in_words(base::Duration time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(time).count()) +
         " us";
}

// What we make use of, where it is there.
std::string in_words(const MysqlFeatures& features) {
  const auto has = [](bool there, const char* what) {
    return std::string{there ? "" : "no "} + what;
  };
  return has(features.returning, "RETURNING") + ", " + has(features.nowait, "NOWAIT") + ", " +
         has(features.skip_locked, "SKIP LOCKED");
}

base::Duration median_of(std::vector<base::Duration> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

}  // namespace

std::vector<Finding> MysqlClerk::doctor() {
  const std::lock_guard lock{mutex_};
  std::vector<Finding> findings;
  if (auto connected = connect(); !connected) {
    findings.push_back({.level = Level::problem,
                        .topic = "connection",
                        .text = connected.error().text,
                        .advice = "check host, port, user and password of the URL"});
    return findings;
  }
  examine(findings);
  examine_settings(findings);
  examine_speed(findings);
  examine_doorbell(findings);
  return findings;
}

void MysqlClerk::examine(std::vector<Finding>& findings) {
  const std::string version = session_.server_version();
  const MysqlFeatures features = MysqlFeatures::of(version);
  findings.push_back({.level = Level::ok,
                      .topic = "server",
                      .text = (features.mariadb ? "" : "MySQL ") + version + ", strategy lease",
                      .advice = ""});
  findings.push_back(
      {.level = Level::ok, .topic = "features", .text = in_words(features), .advice = ""});
  if (options_.tls == MysqlOptions::Tls::unverified) {
    findings.push_back(
        {.level = Level::warning,
         .topic = "tls",
         .text = "insecure: the server's certificate is not verified",
         .advice = "drop insecure=true; write ca=FILE if the authority is your own"});
  } else if (options_.tls == MysqlOptions::Tls::off && options_.socket.empty() &&
             !engine::is_loopback(options_.host)) {
    findings.push_back({.level = Level::warning,
                        .topic = "tls",
                        .text = "insecure: names, labels and passwords travel unencrypted",
                        .advice = "drop tls=false and insecure=true"});
  }
  const auto schema = ask("SELECT version FROM " + options_.schema_table());
  if (!schema && no_tables()) {
    findings.push_back({.level = Level::warning,
                        .topic = "tables",
                        .text = "not there yet; the first lock makes them, if this user may",
                        .advice = "run: holdfast init, as a user who may create tables"});
    return;
  }
  if (!schema) {
    findings.push_back({.level = Level::problem,
                        .topic = "tables",
                        .text = schema.error().text,
                        .advice = "run: holdfast init --url URL, as a user who may create tables"});
    return;
  }
  findings.push_back(
      {.level = Level::ok, .topic = "tables", .text = "version " + *schema, .advice = ""});
  // As the engine writes: a row that cannot be anybody's lock, taken back at once.
  const auto write = run("START TRANSACTION;INSERT INTO " + options_.locks_table() +
                         " (name,holder,host,pid,held_since,held_until,waiting,token,ttl_us,"
                         "request_id,session_id,version,mark) VALUES ('','','',0,'1970-01-01',"
                         "'1970-01-01',0,0,0,'','',1,0);UPDATE " +
                         options_.locks_table() + " SET version=2 WHERE name='';DELETE FROM " +
                         options_.locks_table() + " WHERE name='';ROLLBACK");
  if (!write) {
    std::ignore = run("ROLLBACK");
    findings.push_back({.level = Level::problem,
                        .topic = "privileges",
                        .text = write.error().text,
                        .advice = "GRANT SELECT, INSERT, UPDATE, DELETE ON the holdfast tables"});
  } else {
    findings.push_back({.level = Level::ok,
                        .topic = "privileges",
                        .text = "SELECT, INSERT, UPDATE and DELETE on the lock table",
                        .advice = ""});
  }
}

void MysqlClerk::examine_settings(std::vector<Finding>& findings) {
  const auto clock = ask("SELECT TIMESTAMPDIFF(MICROSECOND,'1970-01-01',UTC_TIMESTAMP(6))");
  if (clock) {
    std::int64_t theirs = 0;
    std::from_chars(clock->data(), clock->data() + clock->size(), theirs);
    const auto ours = static_cast<std::int64_t>(base::wall_microseconds());
    const auto apart = std::chrono::milliseconds{std::abs(ours - theirs) / 1000};
    findings.push_back(
        {.level = apart > std::chrono::seconds{5} ? Level::warning : Level::ok,
         .topic = "clock",
         .text = std::to_string(apart.count()) + " ms apart from ours; only the server's decides",
         .advice = apart > std::chrono::seconds{5} ? "check NTP on both" : ""});
  }
  const auto read_only = ask("SELECT @@global.read_only");
  if (read_only && *read_only != "0") {
    findings.push_back({.level = Level::problem,
                        .topic = "read_only",
                        .text = "the server accepts no writes",
                        .advice = "use the URL of the primary"});
  }
  const auto isolation = ask_first({"@@global.transaction_isolation", "@@global.tx_isolation"});
  findings.push_back({.level = Level::ok,
                      .topic = "isolation",
                      .text = "our sessions use READ COMMITTED; the default is " + isolation,
                      .advice = ""});
  findings.push_back({.level = Level::ok,
                      .topic = "wait_timeout",
                      .text = "our connections may be idle for an hour; others for " +
                              ask_first({"@@global.wait_timeout"}) + " s",
                      .advice = ""});
  const auto flush = ask("SELECT @@global.innodb_flush_log_at_trx_commit");
  if (flush && *flush != "1") {
    findings.push_back({.level = Level::warning,
                        .topic = "durability",
                        .text = "innodb_flush_log_at_trx_commit=" + *flush +
                                ": a crash of the server can forget the last second of grants",
                        .advice = "set it to 1, or rely on the fencing token"});
  }
  const auto galera =
      ask("SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE "
          "VARIABLE_NAME='wsrep_cluster_size'");
  if (galera && !galera->empty() && *galera != "0") {
    findings.push_back(
        {.level = options_.max_skew.count() > 0 ? Level::ok : Level::warning,
         .topic = "galera",
         .text = "a cluster of " + *galera + " nodes, each with a clock of its own",
         .advice = options_.max_skew.count() > 0
                       ? ""
                       : "write max_skew=500ms, or more than their clocks may be apart"});
  }
  examine_replication(findings);
}

void MysqlClerk::examine_replication(std::vector<Finding>& findings) {
  const auto replicas =
      ask("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog Dump%'");
  if (!replicas || *replicas == "0") {
    findings.push_back({.level = Level::ok,
                        .topic = "replication",
                        .text = "no replica, as far as this user may see (PROCESS shows all)",
                        .advice = ""});
    return;
  }
  const std::string waits =
      ask_first({"@@global.rpl_semi_sync_source_enabled", "@@global.rpl_semi_sync_master_enabled"});
  const bool semi = waits == "1";
  findings.push_back(
      {.level = semi ? Level::ok : Level::warning,
       .topic = "replication",
       .text = *replicas + (semi ? " replicas, semi-synchronous: one has a grant before we do"
                                 : " replicas, asynchronous: a fail-over can forget grants"),
       .advice = semi ? "" : "check fencing tokens where the data is; see docs/fencing.md"});
}

// Of a variable that has one name here and another there.
std::string MysqlClerk::ask_first(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (auto value = ask(std::string{"SELECT "} + name)) {
      return *std::move(value);
    }
  }
  return "unknown";
}

void MysqlClerk::examine_speed(std::vector<Finding>& findings) {
  constexpr int kRounds = 11;
  std::vector<base::Duration> trips;
  for (int i = 0; i < kRounds; ++i) {
    const base::Time before = base::BootClock::now();
    if (!run("DO 0")) {
      return;
    }
    trips.push_back(base::BootClock::now() - before);
  }
  findings.push_back({.level = Level::ok,
                      .topic = "round trip",
                      .text = in_words(median_of(trips)),
                      .advice = ""});
  std::vector<base::Duration> commits;
  for (int i = 0; i < kRounds; ++i) {
    const base::Time before = base::BootClock::now();
    if (!run("UPDATE " + options_.schema_table() +
             " SET version=version+1 WHERE id=2;INSERT INTO " + options_.schema_table() +
             " VALUES (2,0) ON DUPLICATE KEY UPDATE version=version+1")) {
      return;
    }
    commits.push_back(base::BootClock::now() - before);
  }
  std::ignore = run("DELETE FROM " + options_.schema_table() + " WHERE id=2");
  findings.push_back(
      {.level = Level::ok, .topic = "commit", .text = in_words(median_of(commits)), .advice = ""});
}

void MysqlClerk::examine_doorbell(std::vector<Finding>& findings) {
  if (!options_.doorbell) {
    findings.push_back({.level = Level::warning,
                        .topic = "doorbell",
                        .text = "switched off: waiters look once a second",
                        .advice = "drop doorbell=false"});
    return;
  }
  // A statement that is gone by the time we look for it is found harmlessly.
  std::string packet;
  MysqlSql::wake(packet, core::SessionId::random(),
                 session_.server_version().find("MariaDB") != std::string::npos);
  const auto works = run(std::move(packet));
  findings.push_back({.level = works ? Level::ok : Level::warning,
                      .topic = "doorbell",
                      .text = works ? "waiters are woken by KILL QUERY; those of other accounts "
                                      "than this one only look once a second"
                                    : works.error().text,
                      .advice = works ? "" : "waiters look once a second instead"});
}

}  // namespace holdfast::engines
