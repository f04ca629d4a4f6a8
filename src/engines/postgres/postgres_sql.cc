#include "engines/postgres/postgres_sql.h"

namespace holdfast::engines::postgres {
namespace {

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
  return text;
}

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

// The time, once a statement, and from it the least token of a new row.
constexpr std::string_view kClock =
    R"sql(c AS MATERIALIZED (SELECT n.now, greatest(
  least((extract(epoch FROM n.now) * 1000000)::bigint, 4503599627370496),
  (SELECT m.token_floor FROM {s}.meta m)) AS floor{more}
  FROM (SELECT coalesce($1::timestamptz, clock_timestamp()) AS now) n))sql";

constexpr std::string_view kColumns =
    "l.version, l.last_token, l.request, l.session, l.token, l.ttl, l.holder, l.host, l.pid, "
    "l.since, l.until, l.fenced, l.record, l.parties";

// What was done, and for the rest the rows as they are: whoever finds that the
// short way is not open has what the long way needs.
constexpr std::string_view kDoneOrAsItIs = R"sql(
SELECT l.name, true, c.now, c.floor, {columns} FROM t l, c
UNION ALL
SELECT l.name, false, c.now, c.floor, {columns} FROM u JOIN {s}.locks l ON l.name = u.name, c
WHERE NOT EXISTS (SELECT FROM t WHERE t.name = u.name))sql";

constexpr std::string_view kTake = R"sql(
WITH {clock},
u AS MATERIALIZED (SELECT * FROM unnest($2::text[], $3::uuid[], $4::uuid[], $5::interval[])
  AS u (name, request, session, ttl)),
t AS (INSERT INTO {s}.locks AS l
    (name, version, last_token, request, session, token, ttl, holder, host, pid, since, until)
  SELECT u.name, c.floor, c.floor + 63, u.request, u.session, c.floor, u.ttl,
    $6::text, $7::text, $8::bigint, c.now, c.now + u.ttl FROM u, c
  ON CONFLICT (name) DO UPDATE SET version = l.version + 1,
    last_token = greatest(l.last_token + 1, excluded.token) + 63,
    token = greatest(l.last_token + 1, excluded.token),
    request = excluded.request, session = excluded.session, ttl = excluded.ttl,
    holder = excluded.holder, host = excluded.host, pid = excluded.pid,
    since = excluded.since, until = excluded.until
  WHERE l.record IS NULL AND NOT l.fenced AND l.last_token < 9007199254740000
    AND (l.request IS NULL OR l.until <= excluded.since)
  RETURNING l.name, {columns})
{done})sql";

constexpr std::string_view kOne =
    R"sql(u AS MATERIALIZED (SELECT $2::text AS name, $3::uuid AS request))sql";
constexpr std::string_view kMany =
    R"sql(u AS MATERIALIZED (SELECT * FROM unnest($2::text[], $3::uuid[]) AS u (name, request)))sql";

// Several rows are locked in the order of their names, whatever the plan: two
// processes never wait for each other.
constexpr std::string_view kLockedInOrder = R"sql(,
p AS MATERIALIZED (SELECT l.name FROM u JOIN {s}.locks l ON l.name = u.name, c
  WHERE l.request = u.request AND l.record IS NULL AND l.until > c.now
  ORDER BY l.name FOR NO KEY UPDATE OF l))sql";

constexpr std::string_view kLetGo =
    "version = l.version + 1, request = NULL, session = NULL, token = NULL, ttl = NULL, "
    "holder = NULL, host = NULL, pid = NULL, since = NULL, until = NULL";
constexpr std::string_view kProlong = "version = l.version + 1, until = c.now + l.ttl";

// Back and taken again, by the same process: $4 is the new request.
constexpr std::string_view kPassOn =
    "version = l.version + 1, last_token = greatest(l.last_token + 1, c.floor) + 63, "
    "token = greatest(l.last_token + 1, c.floor), request = $4::uuid, session = $5::uuid, "
    "ttl = $6::interval, holder = $7::text, host = $8::text, pid = $9::bigint, since = c.now, "
    "until = c.now + $6::interval";

constexpr std::string_view kChangeOne = R"sql(
WITH {clock}, {u},
t AS (UPDATE {s}.locks l SET {set} FROM c
  WHERE l.name = $2::text AND l.request = $3::uuid AND l.record IS NULL AND l.until > c.now{and}
  RETURNING l.name, {columns})
{done})sql";
constexpr std::string_view kAndUnfenced = " AND NOT l.fenced AND l.last_token < 9007199254740000";
constexpr std::string_view kChangeMany = R"sql(
WITH {clock}, {u}{p},
t AS (UPDATE {s}.locks l SET {set} FROM p, c WHERE l.name = p.name RETURNING l.name, {columns})
{done})sql";

// Releases (0), renewals (1) and grants of locks that are free (2), all in one go.
constexpr std::string_view kExchange = R"sql(
WITH {clock},
u AS MATERIALIZED (SELECT * FROM unnest($2::text[], $3::int[], $4::uuid[], $5::uuid[],
    $6::interval[]) AS u (name, kind, request, session, ttl)),
p AS MATERIALIZED (SELECT u.* FROM u JOIN {s}.locks l ON l.name = u.name, c
  WHERE l.record IS NULL AND CASE WHEN u.kind < 2 THEN l.request = u.request AND l.until > c.now
    ELSE NOT l.fenced AND l.last_token < 9007199254740000
      AND (l.request IS NULL OR l.until <= c.now) END
  ORDER BY l.name FOR NO KEY UPDATE OF l),
t AS (UPDATE {s}.locks l SET version = l.version + 1,
    last_token = CASE WHEN p.kind = 2 THEN greatest(l.last_token + 1, c.floor) + 63
      ELSE l.last_token END,
    token = CASE p.kind WHEN 2 THEN greatest(l.last_token + 1, c.floor) WHEN 1 THEN l.token END,
    request = CASE WHEN p.kind > 0 THEN p.request END,
    session = CASE p.kind WHEN 2 THEN p.session WHEN 1 THEN l.session END,
    ttl = CASE p.kind WHEN 2 THEN p.ttl WHEN 1 THEN l.ttl END,
    holder = CASE p.kind WHEN 2 THEN $7::text WHEN 1 THEN l.holder END,
    host = CASE p.kind WHEN 2 THEN $8::text WHEN 1 THEN l.host END,
    pid = CASE p.kind WHEN 2 THEN $9::bigint WHEN 1 THEN l.pid END,
    since = CASE p.kind WHEN 2 THEN c.now WHEN 1 THEN l.since END,
    until = CASE p.kind WHEN 2 THEN c.now + p.ttl WHEN 1 THEN c.now + l.ttl END
  FROM p, c WHERE l.name = p.name RETURNING l.name, {columns})
{done})sql";

// The same for one ($2, held by $3) that is given back and one ($4) that is taken, as a thread
// does that goes from lock to lock; each if it can be. The index has them in order.
constexpr std::string_view kSwap = R"sql(
WITH {clock}
UPDATE {s}.locks l SET version = l.version + 1,
  last_token = CASE l.name WHEN $4::text THEN greatest(l.last_token + 1, c.floor) + 63
    ELSE l.last_token END,
  token = CASE l.name WHEN $4::text THEN greatest(l.last_token + 1, c.floor) END,
  request = CASE l.name WHEN $4::text THEN $5::uuid END,
  session = CASE l.name WHEN $4::text THEN $6::uuid END,
  ttl = CASE l.name WHEN $4::text THEN $7::interval END,
  holder = CASE l.name WHEN $4::text THEN $8::text END,
  host = CASE l.name WHEN $4::text THEN $9::text END,
  pid = CASE l.name WHEN $4::text THEN $10::bigint END,
  since = CASE l.name WHEN $4::text THEN c.now END,
  until = CASE l.name WHEN $4::text THEN c.now + $7::interval END
FROM c WHERE l.name = ANY (ARRAY[$2::text, $4::text]) AND l.record IS NULL
  AND CASE l.name WHEN $2::text THEN l.request = $3::uuid AND l.until > c.now
    ELSE NOT l.fenced AND l.last_token < 9007199254740000
      AND (l.request IS NULL OR l.until <= c.now) END
RETURNING l.name, true, c.now, c.floor, {columns})sql";

constexpr std::string_view kRead = R"sql(
WITH {clock}
SELECT l.name, false, c.now, c.floor, {columns}
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
WITH {clock}
SELECT l.name, false, c.now, c.floor, {columns} FROM {s}.locks l, c
WHERE starts_with(l.name, $2::text)
  AND greatest(l.until, l.idle_at) > c.now ORDER BY l.name)sql";

// $2: a row goes when it is idle for this long and its tokens are that far
// behind the clock, which new rows start at.
constexpr std::string_view kTidy = R"sql(
WITH {clock},
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
WITH {clock}
SELECT v.name, v.version, v.written,
  greatest(0, coalesce((extract(epoch FROM v.hold_off_until - c.now) * 1000000)::bigint, 0)),
  v.writer, v.value
FROM {s}.versioned_values v, c WHERE {which})sql";
constexpr std::string_view kThisValue = "v.name = $2::text";
constexpr std::string_view kTheseValues =
    "starts_with(v.name, $2::text) AND v.value IS NOT NULL ORDER BY v.name";

constexpr std::string_view kCreateValue = R"sql(
WITH {clock}
INSERT INTO {s}.versioned_values AS v (name, value, version, writer, written, hold_off_until)
SELECT $2::text, $3::bytea, c.floor, $4::uuid, c.now, c.now + $5::interval FROM c
ON CONFLICT (name) DO UPDATE SET value = excluded.value, version = v.version + 1,
  writer = excluded.writer, written = excluded.written, hold_off_until = excluded.hold_off_until
WHERE v.value IS NULL AND v.writer <> excluded.writer
RETURNING v.version, v.written)sql";

constexpr std::string_view kChangeValue = R"sql(
WITH {clock}
UPDATE {s}.versioned_values v SET value = $3::bytea, version = v.version + 1, writer = $4::uuid,
  written = c.now, hold_off_until = c.now + $5::interval FROM c
WHERE v.name = $2::text AND v.version = $6::bigint AND v.value IS NOT NULL AND v.writer <> $4::uuid
RETURNING v.version, v.written)sql";

constexpr std::string_view kForgetValues = R"sql(
WITH {clock},
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

LeaseSql::LeaseSql(std::string_view schema) {
  const auto complete = [&](std::string_view text, std::string_view more = "") {
    std::string made{text};
    made = replaced(std::move(made), "{done}", kDoneOrAsItIs);
    made = replaced(std::move(made), "{clock}", kClock);
    made = replaced(std::move(made), "{more}", more);
    made = replaced(std::move(made), "{columns}", kColumns);
    return replaced(std::move(made), "{s}", schema);
  };
  const auto change_one = [&](std::string_view set, std::string_view more,
                              std::string_view condition = "") {
    std::string made = replaced(std::string{kChangeOne}, "{u}", kOne);
    made = replaced(std::move(made), "{and}", condition);
    return complete(replaced(std::move(made), "{set}", set), more);
  };
  const auto change_many = [&](std::string_view set, std::string_view more) {
    std::string made = replaced(std::string{kChangeMany}, "{u}", kMany);
    made = replaced(std::move(made), "{p}", kLockedInOrder);
    return complete(replaced(std::move(made), "{set}", set), more);
  };
  const auto write_with = [&](std::string_view fences, std::string_view where,
                              std::string_view raise, std::string_view held) {
    std::string made = replaced(std::string{kWrite}, "{fences}", fences);
    made = replaced(std::move(made), "{where}", where);
    made = replaced(std::move(made), "{raise}", raise);
    return complete(replaced(std::move(made), "{held}", held));
  };
  // A release need not reach the disk before it is answered: lost in a crash,
  // it leaves the lock taken until its lease ends. Whatever follows it in the
  // log and does reach the disk, takes it along.
  constexpr std::string_view kNoFlush = ", set_config('synchronous_commit', 'off', true)";

  create = complete(kCreate);
  take = complete(kTake);
  exchange = complete(kExchange);
  swap = complete(kSwap);
  release_one = change_one(kLetGo, kNoFlush);
  release = change_many(kLetGo, kNoFlush);
  renew_one = change_one(kProlong, "");
  requeue_one = change_one(kPassOn, "", kAndUnfenced);
  renew = change_many(kProlong, "");
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
