// What LeaseEngine finds when it looks at its server.
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "engine/batch.h"
#include "engines/postgres/postgres_engine.h"
#include "engines/postgres/postgres_errors.h"

namespace holdfast::engines::postgres {
namespace {

using engine::Talk;
using Level = Finding::Level;
using namespace std::chrono_literals;

constexpr int kOldestVersion = 120000;
constexpr int kRounds = 5;
constexpr std::chrono::microseconds kClockOffset = 2s;

const std::string kServer = R"sql(
SELECT pg_is_in_recovery(), current_setting('server_version'),
  (SELECT reset_val FROM pg_settings WHERE name = 'default_transaction_isolation'),
  (SELECT reset_val FROM pg_settings WHERE name = 'synchronous_commit'),
  current_setting('fsync'), current_setting('synchronous_standby_names'),
  current_setting('server_encoding'), current_setting('max_connections')::int,
  (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
  (SELECT count(*) FROM pg_stat_replication), clock_timestamp(),
  current_setting('transaction_read_only'))sql";

constexpr int kInRecovery = 0;
constexpr int kVersionText = 1;
constexpr int kIsolation = 2;
constexpr int kSyncCommit = 3;
constexpr int kFsync = 4;
constexpr int kSyncStandbys = 5;
constexpr int kEncoding = 6;
constexpr int kMaxConnections = 7;
constexpr int kConnections = 8;
constexpr int kReplicas = 9;
constexpr int kClockNow = 10;
constexpr int kReadOnly = 11;

class Findings {
 public:
  void add(Level level, std::string topic, std::string text, std::string advice = "") {
    all.push_back({.level = level,
                   .topic = std::move(topic),
                   .text = std::move(text),
                   .advice = std::move(advice)});
  }
  void ok(std::string topic, std::string text) {
    add(Level::ok, std::move(topic), std::move(text));
  }

  std::vector<Finding> all;
};

std::string milliseconds(base::Duration time) {
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(time).count();
  return std::to_string(micros / 1000) + "." + std::to_string(micros / 100 % 10) + " ms";
}

void judge_server(const Rows& rows, int version, Findings& found) {
  const std::string name = "PostgreSQL " + std::string{rows.text(0, kVersionText)} + ", encoding " +
                           std::string{rows.text(0, kEncoding)};
  if (version < kOldestVersion) {
    found.add(Level::problem, "version", name, "holdfast needs PostgreSQL 12 or later");
  } else {
    found.ok("version", name);
  }
  if (rows.integer(0, kInRecovery) != 0 || rows.text(0, kReadOnly) == "on") {
    found.add(Level::problem, "role", "this server only reads",
              "connect to the primary, for instance with target_session_attrs=read-write");
  } else {
    found.ok("role", "primary, accepts writes");
  }
}

void judge_durability(const Rows& rows, bool ours, Findings& found) {
  const auto replicas = rows.integer(0, kReplicas);
  if (rows.text(0, kFsync) == "off") {
    found.add(Level::warning, "durability", "fsync is off",
              "after a crash of the machine locks and tokens may be lost: switch fsync on");
  } else if (rows.text(0, kSyncCommit) == "off" && !ours) {
    found.add(Level::warning, "durability",
              "synchronous_commit is off, and behind a pooler it is not ours to change",
              "after a crash of the server a lock may be held by two: switch it on for this user "
              "(ALTER ROLE ... SET synchronous_commit = on)");
  } else {
    found.ok("durability",
             "grants are on disk before they are answered (synchronous_commit " +
                 std::string{rows.text(0, kSyncCommit) == "off" ? "on, for us; else off"
                                                                : rows.text(0, kSyncCommit)} +
                 "); releases follow");
  }
  if (replicas > 0 && rows.text(0, kSyncStandbys).empty()) {
    found.add(Level::warning, "replication", std::to_string(replicas) + " asynchronous standby(s)",
              "after a fail-over two may hold a lock: check the fencing token, or name the "
              "standby in synchronous_standby_names");
  } else {
    found.ok("replication", replicas == 0 ? "none seen" : "synchronous");
  }
}

void judge_connections(const Rows& rows, Findings& found) {
  const auto used = rows.integer(0, kConnections);
  const auto most = rows.integer(0, kMaxConnections);
  const std::string text =
      std::to_string(used) + " of " + std::to_string(most) + " connections in use";
  if (used * 10 > most * 9) {
    found.add(Level::warning, "connections", text,
              "a client needs up to three; raise "
              "max_connections or use a pooler");
  } else {
    found.ok("connections", text);
  }
}

void judge_clock(base::Duration offset, Findings& found) {
  const bool apart = offset > kClockOffset || offset < -kClockOffset;
  const std::string text = milliseconds(offset < base::Duration{} ? -offset : offset) +
                           (offset < base::Duration{} ? " behind" : " ahead of") + " this machine";
  if (apart) {
    found.add(Level::warning, "clock", "the server's clock is " + text,
              "locks only need the server's clock, but logs are easier to read if both agree");
  } else {
    found.ok("clock", "the server's, " + text);
  }
}

void judge_privileges(const Rows& rows, Findings& found) {
  static constexpr std::array<const char*, 4> kWanted{
      "USAGE on the schema", "SELECT, INSERT, UPDATE, DELETE on locks",
      "SELECT, INSERT, UPDATE, DELETE on fences", "SELECT, UPDATE on meta"};
  std::string missing;
  for (int i = 0; i < 4; ++i) {
    if (rows.integer(0, i) == 0) {
      missing +=
          (missing.empty() ? "" : "; ") + std::string{kWanted.at(static_cast<std::size_t>(i))};
    }
  }
  if (missing.empty()) {
    found.ok("privileges", "all that is needed");
  } else {
    found.add(Level::problem, "privileges", "missing: " + missing, "grant them to this user");
  }
  if (rows.integer(0, 4) == 0) {
    found.add(Level::warning, "values", "this user cannot use versioned values and tasks",
              "run `holdfast init`, and grant it SELECT, INSERT, UPDATE, DELETE on "
              "versioned_values");
  }
}

// What lies between us and the server.
void judge_line(const Options& options, Session& session, Findings& found) {
  const auto& connection = options.connection;
  const auto mode = connection.find("sslmode");
  const bool unverified = mode != connection.end() && !mode->second.starts_with("verify") &&
                          mode->second != "prefer" &&
                          (connection.contains("host") || connection.contains("hostaddr"));
  if (session.has_tls()) {
    found.add(unverified ? Level::warning : Level::ok, "encryption",
              unverified ? "TLS, but the server's certificate is not verified" : "TLS",
              unverified ? "use sslmode=verify-full" : "");
  } else {
    found.add(unverified ? Level::warning : Level::ok, "encryption", "none",
              unverified ? "INSECURE unless the network is yours: use sslmode=verify-full" : "");
  }
  if (session.is_pooled()) {
    found.add(Level::warning, "pooler",
              "a pooler answers in the server's place: waiters look once a second, and no "
              "statement is prepared",
              "connect directly, or with pooler=session if it gives each client a server "
              "connection of its own");
  } else {
    found.ok("pooler", "none: waiters are woken by NOTIFY");
  }
}

}  // namespace

std::vector<Finding> LeaseEngine::doctor() {
  if (inherited()) {
    return {{.level = Level::problem,
             .topic = "store",
             .text = engine::inherited_by_fork().text,
             .advice = ""}};
  }
  return desk_.run<std::vector<Finding>>(*driver_, [&] { return examine(); });
}

Talk<std::vector<Finding>> LeaseEngine::examine() {
  Findings found;
  Session& session = desk_.session();
  if (auto connected = co_await session.connect(); !connected) {
    found.add(Level::problem, "connection", connected.error().text, "see the message");
    co_return found.all;
  }
  base::Duration fastest = shared_.options.timeout;
  base::Duration offset{};
  for (int i = 0; i < kRounds; ++i) {
    const base::Time before = base::BootClock::now();
    const auto here = std::chrono::microseconds{base::wall_microseconds()};
    auto rows = co_await session.ask({.sql = &kServer});
    if (!rows) {
      found.add(Level::problem, "server", rows.error().text, "see the message");
      co_return found.all;
    }
    const base::Duration took = base::BootClock::now() - before;
    if (took <= fastest) {
      fastest = took;
      offset = to_time(rows->text(0, kClockNow)).time_since_epoch() - here - took / 2;
    }
    if (i + 1 == kRounds) {
      judge_server(*rows, session.server_version(), found);
      const bool ours = session.has_our_settings();
      judge_durability(*rows, ours, found);
      found.ok("isolation", "the default is " + std::string{rows->text(0, kIsolation)} +
                                (ours ? "; holdfast uses read committed" : ""));
      judge_connections(*rows, found);
      judge_clock(offset, found);
      found.ok("latency", milliseconds(fastest) + " for a round trip");
    }
  }
  judge_line(shared_.options, session, found);
  co_await examine_schema(found.all);
  co_return found.all;
}

Talk<bool> LeaseEngine::examine_schema(std::vector<Finding>& findings) {
  Session& session = desk_.session();
  Findings found;
  auto version = co_await session.ask({.sql = &shared_.sql.version});
  if (!version || version->size() != 1) {
    found.add(Level::problem, "schema", version ? "its version is missing" : version.error().text,
              "run `holdfast init`");
    findings.push_back(std::move(found.all.back()));
    co_return false;
  }
  const auto number = version->integer(0, 0);
  const std::string name = shared_.options.schema + ", version " + std::to_string(number);
  if (number == kSchemaVersion) {
    found.ok("schema", name);
  } else if (number > kSchemaVersion) {  // later versions only add to it
    found.add(Level::warning, "schema", name, "a newer holdfast made it: update this one soon");
  } else {
    found.add(Level::problem, "schema", name, "run `holdfast init`");
  }
  auto privileges = co_await session.ask({.sql = &shared_.sql.privileges});
  if (privileges && privileges->size() == 1) {
    judge_privileges(*privileges, found);
  }
  findings.insert(findings.end(), found.all.begin(), found.all.end());
  co_return true;
}

}  // namespace holdfast::engines::postgres
