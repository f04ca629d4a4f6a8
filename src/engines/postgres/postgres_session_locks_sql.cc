#include <string>
#include <string_view>

#include "engines/postgres/postgres_session_locks.h"

namespace holdfast::engines::postgres {
namespace {

constexpr std::string_view kCreate = R"sql(
CREATE SCHEMA IF NOT EXISTS {s};
-- The names of session locks. strategy=row locks a row of it; strategy=advisory locks the hash,
-- which no two names share.
CREATE TABLE IF NOT EXISTS {s}.session_names (
  name text COLLATE "C" PRIMARY KEY,
  hash bigint NOT NULL UNIQUE
);
-- Who holds and who waits, for people. A line counts while the connection holds its beacon, an
-- advisory lock of its own.
CREATE TABLE IF NOT EXISTS {s}.session_locks (
  request    uuid PRIMARY KEY,
  name       text COLLATE "C" NOT NULL,
  waiting    boolean NOT NULL,
  shared     boolean NOT NULL,
  revoked    boolean NOT NULL DEFAULT false,
  since      timestamptz NOT NULL,
  ttl        interval NOT NULL,
  holder     text NOT NULL,
  host       text NOT NULL,
  pid        bigint NOT NULL,
  connection int NOT NULL,
  beacon     bigint NOT NULL
);
CREATE INDEX IF NOT EXISTS session_locks_name ON {s}.session_locks (name);
)sql";

// Nothing but its own end may end it; and who waits has no other way to notice
// that its client has died. Its number is the server's: a pooler tells its own.
constexpr std::string_view kSettle = R"sql(
SELECT pg_backend_pid(), set_config('statement_timeout', '0', false),
  set_config('idle_in_transaction_session_timeout', '0', false),
  set_config('lock_timeout', '60s', false),
  CASE WHEN current_setting('transaction_timeout', true) IS NULL THEN ''
    ELSE set_config('transaction_timeout', '0', false) END,
  CASE WHEN current_setting('client_connection_check_interval', true) IS NULL THEN ''
    ELSE set_config('client_connection_check_interval', '1000', false) END
FROM pg_advisory_lock($1::bigint))sql";

// The first 64 bits of SHA-256: anybody can compute it.
constexpr std::string_view kHash =
    "('x' || encode(substr(sha256(convert_to('{s}.' || $1::text, 'UTF8')), 1, 8), "
    "'hex'))::bit(64)::bigint";

constexpr std::string_view kKnow = R"sql(
WITH t AS (INSERT INTO {s}.session_names (name, hash) VALUES ($1::text, {hash})
  ON CONFLICT DO NOTHING RETURNING hash)
SELECT hash FROM t UNION ALL
SELECT hash FROM {s}.session_names WHERE name = $1::text AND NOT EXISTS (SELECT FROM t))sql";

constexpr std::string_view kWrite = R"sql(
INSERT INTO {s}.session_locks
  (request, name, waiting, shared, since, ttl, holder, host, pid, connection, beacon)
VALUES ($1::uuid, $2::text, $3::int = 1, $4::int = 1, clock_timestamp(), $5::interval, $6::text,
  $7::text, $8::bigint, $9::int, $10::bigint)
ON CONFLICT (request) DO UPDATE SET waiting = excluded.waiting, since = excluded.since,
  connection = excluded.connection, beacon = excluded.beacon)sql";

// n: a note; l: the beacon's lock.
constexpr std::string_view kAlive =
    "l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted AND l.database = (SELECT oid FROM "
    "pg_database WHERE datname = current_database()) AND l.pid = n.connection AND "
    "((l.classid::bigint << 32) | l.objid::bigint) = n.beacon";

constexpr std::string_view kFind = R"sql(
SELECT n.name, n.waiting, n.shared, n.revoked, clock_timestamp() - n.since, n.ttl, n.holder,
  n.host, n.pid
FROM {s}.session_locks n JOIN pg_locks l ON {alive}
WHERE starts_with(n.name, $1::text) ORDER BY n.name, n.since)sql";

void fill(std::string& text, std::string_view hole, std::string_view with) {
  for (auto at = text.find(hole); at != std::string::npos; at = text.find(hole, at + with.size())) {
    text.replace(at, hole.size(), with);
  }
}

}  // namespace

SessionLockSql::SessionLockSql(const Options& options)
    : schema_{options.schema},
      table_{options.schema + "." + (options.table.empty() ? "session_names" : options.table)},
      settle{kSettle} {
  create = filled(kCreate);
  know = filled(kKnow);
  if (!options.table.empty()) {
    add_row = filled("INSERT INTO {t} (name) VALUES ($1::text) ON CONFLICT DO NOTHING");
  }
  keep_books();
  end_others();
  if (options.strategy == Strategy::row) {
    lock_rows();
  } else {
    lock_numbers(options.scope);
  }
}

std::string SessionLockSql::filled(std::string_view text) const {
  std::string made{text};
  fill(made, "{hash}", kHash);
  fill(made, "{alive}", kAlive);
  fill(made, "{s}", schema_);
  fill(made, "{t}", table_);
  return made;
}

void SessionLockSql::keep_books() {
  write = filled(kWrite);
  strike = filled("DELETE FROM {s}.session_locks WHERE request = ANY($1::uuid[])");
  look = filled(
      "SELECT n.beacon FROM unnest($1::int[], $2::bigint[]) n(connection, beacon) "
      "JOIN pg_locks l ON {alive}");
  revoked =
      filled("SELECT request FROM {s}.session_locks WHERE revoked AND request = ANY($1::uuid[])");
  is_revoked = filled(
      "SELECT 1 FROM {s}.session_locks n JOIN pg_locks l ON {alive} "
      "WHERE n.name = $1::text AND n.revoked AND NOT n.waiting LIMIT 1");
  find = filled(kFind);
  tidy = filled(
      "DELETE FROM {s}.session_locks n WHERE since < clock_timestamp() - interval '1 minute' AND "
      "NOT EXISTS (SELECT FROM pg_locks l WHERE {alive})");
  // One that is wanted again meanwhile is made again.
  forget_names = filled(
      "DELETE FROM {s}.session_names WHERE name IN (SELECT name FROM {s}.session_names n "
      "WHERE NOT EXISTS (SELECT FROM {s}.session_locks l WHERE l.name = n.name) "
      "ORDER BY name LIMIT 1000 FOR UPDATE SKIP LOCKED)");
}

void SessionLockSql::end_others() {
  interrupt = filled(
      "SELECT pg_cancel_backend(l.pid) FROM (SELECT $1::int AS connection, $2::bigint AS beacon) n "
      "JOIN pg_locks l ON {alive}");
  revoke = filled(
      "UPDATE {s}.session_locks n SET revoked = true FROM pg_locks l "
      "WHERE {alive} AND n.name = $1::text AND NOT n.waiting RETURNING 1");
  terminate = filled(
      "SELECT l.pid, n.beacon, pg_terminate_backend(l.pid) FROM {s}.session_locks n "
      "JOIN pg_locks l ON {alive} WHERE n.name = $1::text AND NOT n.waiting");
}

void SessionLockSql::lock_rows() {
  try_exclusive = filled(
      "WITH got AS (SELECT 1 FROM {t} WHERE name = $1::text FOR UPDATE SKIP LOCKED) "
      "SELECT EXISTS (SELECT FROM got), EXISTS (SELECT FROM {t} WHERE name = $1::text)");
  wait_exclusive = filled("SELECT true, true FROM {t} WHERE name = $1::text FOR UPDATE");
}

void SessionLockSql::lock_numbers(Scope scope) {
  const std::string kind = scope == Scope::transaction ? "_xact_lock" : "_lock";
  try_exclusive = "SELECT pg_try_advisory" + kind + "($1::bigint), true";
  try_shared = "SELECT pg_try_advisory" + kind + "_shared($1::bigint), true";
  wait_exclusive = "SELECT true, true FROM pg_advisory" + kind + "($1::bigint)";
  wait_shared = "SELECT true, true FROM pg_advisory" + kind + "_shared($1::bigint)";
  if (scope == Scope::session) {
    free_exclusive = "SELECT pg_advisory_unlock($1::bigint)";
    free_shared = "SELECT pg_advisory_unlock_shared($1::bigint)";
  }
}

}  // namespace holdfast::engines::postgres
