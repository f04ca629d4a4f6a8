#include "engines/postgres/postgres_sql.h"

#include "engines/postgres/postgres_sql_parts.h"

namespace holdfast::engines::postgres {
namespace {

constexpr std::string_view kCreate = R"sql(
CREATE SCHEMA IF NOT EXISTS {s};

-- One row a lock. Without `record`, the plain columns say everything: held by
-- `request` until `until`, or by nobody. With it (several holders, a queue),
-- they are for people, and `record` is the truth. Idle rows go after a while.
CREATE TABLE IF NOT EXISTS {s}.locks (
  name       text COLLATE "C" PRIMARY KEY,     -- odd bytes as %XX
  holder     text,                             -- who it says it is
  host       text,
  pid        bigint,
  since      timestamptz,
  until      timestamptz,                      -- free from then on, unless renewed
  ttl        interval,
  waiting    integer NOT NULL DEFAULT 0,
  queue      text,                             -- first in line first
  token      bigint,                           -- the fencing token
  last_token bigint NOT NULL,                  -- the end of the newest grant's block
  request    uuid,
  session    uuid,
  version    bigint NOT NULL,                  -- another one with every change
  fenced     boolean NOT NULL DEFAULT false,   -- has a row in `fences`
  idle_at    timestamptz,
  parties    text,
  record     bytea
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 2000);

-- The token of the latest grant of names that a transaction was guarded for.
-- Renewals do not touch it.
CREATE TABLE IF NOT EXISTS {s}.fences (
  name  text COLLATE "C" PRIMARY KEY,
  token bigint NOT NULL
) WITH (fillfactor = 50);

-- Versioned values. `value` is NULL if it was erased a while ago; the row goes later.
CREATE TABLE IF NOT EXISTS {s}.versioned_values (
  name           text COLLATE "C" PRIMARY KEY, -- odd bytes as %XX
  value          bytea,
  version        bigint NOT NULL,
  writer         uuid NOT NULL,                -- another one with every write
  written        timestamptz NOT NULL,
  hold_off_until timestamptz                   -- for tasks
);

-- token_floor: above every token, and version, of names that were forgotten.
CREATE TABLE IF NOT EXISTS {s}.meta (
  only_row       boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  schema_version integer NOT NULL,
  token_floor    bigint NOT NULL DEFAULT 0
);
INSERT INTO {s}.meta (schema_version) VALUES (1) ON CONFLICT DO NOTHING;
)sql";

constexpr std::string_view kRead = R"sql(
WITH {time and floor}
SELECT l.name, false, {columns}
FROM c LEFT JOIN {s}.locks l ON l.name = ANY ($2::text[]))sql";

constexpr std::string_view kWrite = R"sql(
WITH u AS MATERIALIZED (SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::uuid[],
    $5::uuid[], $6::bigint[], $7::interval[], $8::text[], $9::text[], $10::bigint[],
    $11::timestamptz[], $12::timestamptz[], $13::timestamptz[], $14::int[], $15::text[],
    $16::text[], $17::bytea[], $18::bigint[])
  AS u (name, version, last_token, request, session, token, ttl, holder, host, pid, since, until,
    idle_at, waiting, queue, parties, record, fence)),
{fences}t AS (INSERT INTO {s}.locks AS l (name, version, last_token, request, session, token, ttl,
    holder, host, pid, since, until, idle_at, waiting, queue, parties, record)
  SELECT u.name, u.version, u.last_token, u.request, u.session, u.token, u.ttl, u.holder, u.host,
    u.pid, u.since, u.until, u.idle_at, u.waiting, u.queue, u.parties, u.record FROM u {where}
  ON CONFLICT (name) DO UPDATE SET version = excluded.version, last_token = excluded.last_token,
    request = excluded.request, session = excluded.session, token = excluded.token,
    ttl = excluded.ttl, holder = excluded.holder, host = excluded.host, pid = excluded.pid,
    since = excluded.since, until = excluded.until, idle_at = excluded.idle_at,
    waiting = excluded.waiting, queue = excluded.queue, parties = excluded.parties,
    record = excluded.record
  WHERE l.version = excluded.version - 1
  RETURNING l.name),
{raise}n AS MATERIALIZED (SELECT pg_notify(w.channel, w.payload)
  FROM unnest($19::text[], $20::text[], $21::text[]) AS w (name, channel, payload)
  JOIN t ON t.name = w.name)
SELECT t.name, true, (SELECT count(*) FROM n) FROM t{held})sql";

// A fence that a transaction keeps locked is left alone, with its lock.
constexpr std::string_view kFences = R"sql(f AS MATERIALIZED (SELECT f.name FROM u
  JOIN {s}.fences f ON f.name = u.name WHERE u.fence IS NOT NULL
  FOR NO KEY UPDATE OF f SKIP LOCKED),
)sql";
constexpr std::string_view kWithFence =
    "WHERE u.fence IS NULL OR EXISTS (SELECT FROM f WHERE f.name = u.name)";
constexpr std::string_view kRaise = R"sql(g AS (UPDATE {s}.fences f SET token = u.fence
  FROM u JOIN t ON t.name = u.name WHERE f.name = u.name AND u.fence IS NOT NULL),
)sql";
constexpr std::string_view kHeld = R"sql(
UNION ALL SELECT u.name, false, 0 FROM u
WHERE u.fence IS NOT NULL AND NOT EXISTS (SELECT FROM f WHERE f.name = u.name))sql";

constexpr std::string_view kList = R"sql(
WITH {time}
SELECT l.name, false, {columns} FROM {s}.locks l, c
WHERE starts_with(l.name, $2::text)
  AND greatest(l.until, l.idle_at) > c.now ORDER BY l.name)sql";

// $2: a row goes when it is idle for this long and its tokens are that far
// behind the clock, which new rows start at.
constexpr std::string_view kTidy = R"sql(
WITH {time},
idle AS MATERIALIZED (SELECT l.name FROM {s}.locks l, c
  WHERE l.last_token < (extract(epoch FROM c.now - $2::interval) * 1000000)::bigint
    AND coalesce(greatest(l.until, l.idle_at) < c.now - $2::interval, true)
    AND (NOT l.fenced OR l.last_token < (extract(epoch FROM c.now - $3::interval) * 1000000))
  LIMIT 500 FOR UPDATE OF l SKIP LOCKED),
gone AS (DELETE FROM {s}.locks l USING idle WHERE l.name = idle.name
  RETURNING l.name, l.last_token, l.fenced),
unfenced AS (DELETE FROM {s}.fences f USING gone WHERE gone.fenced AND f.name = gone.name)
UPDATE {s}.meta SET token_floor = greatest(token_floor,
  (SELECT max(gone.last_token) + 1 FROM gone))
WHERE EXISTS (SELECT FROM gone))sql";

constexpr std::string_view kReadValue = R"sql(
WITH {time}
SELECT v.name, v.version, v.written,
  greatest(0, coalesce((extract(epoch FROM v.hold_off_until - c.now) * 1000000)::bigint, 0)),
  v.writer, v.value
FROM {s}.versioned_values v, c WHERE {which})sql";
constexpr std::string_view kThisValue = "v.name = $2::text";
constexpr std::string_view kTheseValues =
    "starts_with(v.name, $2::text) AND v.value IS NOT NULL ORDER BY v.name";

constexpr std::string_view kCreateValue = R"sql(
WITH {time and floor}
INSERT INTO {s}.versioned_values AS v (name, value, version, writer, written, hold_off_until)
SELECT $2::text, $3::bytea, c.floor, $4::uuid, c.now, c.now + $5::interval FROM c
ON CONFLICT (name) DO UPDATE SET value = excluded.value, version = v.version + 1,
  writer = excluded.writer, written = excluded.written, hold_off_until = excluded.hold_off_until
WHERE v.value IS NULL AND v.writer <> excluded.writer
RETURNING v.version, v.written)sql";

constexpr std::string_view kChangeValue = R"sql(
WITH {time}
UPDATE {s}.versioned_values v SET value = $3::bytea, version = v.version + 1, writer = $4::uuid,
  written = c.now, hold_off_until = c.now + $5::interval FROM c
WHERE v.name = $2::text AND v.version = $6::bigint AND v.value IS NOT NULL AND v.writer <> $4::uuid
RETURNING v.version, v.written)sql";

constexpr std::string_view kForgetValues = R"sql(
WITH {time},
gone AS (DELETE FROM {s}.versioned_values v USING c
  WHERE v.value IS NULL AND v.written <= c.now - $2::interval RETURNING v.version)
UPDATE {s}.meta SET token_floor = greatest(token_floor,
  (SELECT max(gone.version) + 1 FROM gone))
WHERE EXISTS (SELECT FROM gone))sql";

// The row changes with it, so that whoever is about to take the lock over is
// either first or sees that there is a fence.
constexpr std::string_view kMakeFence = R"sql(
WITH l AS (UPDATE {s}.locks l SET fenced = true, version = l.version + 1
  WHERE l.name = $1::text AND l.version = $2::bigint RETURNING l.name)
INSERT INTO {s}.fences AS f (name, token) SELECT l.name, $3::bigint FROM l
ON CONFLICT (name) DO UPDATE SET token = greatest(f.token, excluded.token)
RETURNING f.token)sql";

constexpr std::string_view kPrivileges = R"sql(
SELECT has_schema_privilege('{s}', 'USAGE'),
  has_table_privilege('{s}.locks', 'SELECT') AND has_table_privilege('{s}.locks', 'INSERT')
    AND has_table_privilege('{s}.locks', 'UPDATE') AND has_table_privilege('{s}.locks', 'DELETE'),
  has_table_privilege('{s}.fences', 'SELECT') AND has_table_privilege('{s}.fences', 'INSERT')
    AND has_table_privilege('{s}.fences', 'UPDATE') AND has_table_privilege('{s}.fences', 'DELETE'),
  has_table_privilege('{s}.meta', 'SELECT') AND has_table_privilege('{s}.meta', 'UPDATE'),
  (SELECT coalesce(bool_and(has_table_privilege(t.id, p.name)), false)
   FROM (SELECT to_regclass('{s}.versioned_values')::oid AS id) t,
     unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS p (name)))sql";

}  // namespace

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
  return text;
}

std::string completed(std::string_view text, std::string_view schema) {
  std::string made = replaced(replaced(std::string{text}, "{time}", kTime), "{also}", "");
  made = replaced(std::move(made), "{time and floor}", kTimeAndFloor);
  made = replaced(std::move(made), "{columns}", kColumns);
  return replaced(std::move(made), "{s}", schema);
}

LeaseSql::LeaseSql(std::string_view schema) {
  const auto complete = [&](std::string_view text) { return completed(text, schema); };
  const auto write_with = [&](std::string_view fences, std::string_view where,
                              std::string_view raise, std::string_view held) {
    std::string made = replaced(std::string{kWrite}, "{fences}", fences);
    made = replaced(std::move(made), "{where}", where);
    made = replaced(std::move(made), "{raise}", raise);
    return complete(replaced(std::move(made), "{held}", held));
  };
  create = complete(kCreate);
  add_short_ways(schema);
  read = complete(kRead);
  write = write_with("", "", "", "");
  write_fenced = write_with(kFences, kWithFence, kRaise, kHeld);
  list = complete(kList);
  tidy = complete(kTidy);
  version = complete("SELECT schema_version FROM {s}.meta");
  privileges = complete(kPrivileges);
  make_fence = complete(kMakeFence);
  read_value = complete(replaced(std::string{kReadValue}, "{which}", kThisValue));
  list_values = complete(replaced(std::string{kReadValue}, "{which}", kTheseValues));
  create_value = complete(kCreateValue);
  change_value = complete(kChangeValue);
  forget_values = complete(kForgetValues);
}

}  // namespace holdfast::engines::postgres
