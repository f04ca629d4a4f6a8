// The short ways: one conditional statement on plain columns.
#include "engines/postgres/postgres_next.h"
#include "engines/postgres/postgres_sql.h"
#include "engines/postgres/postgres_sql_parts.h"

namespace holdfast::engines::postgres {
namespace {

// What was done, with no more than its answer needs, and for the rest the rows as they are:
// whoever finds that the short way is not open has what the long way needs.
constexpr std::string_view kDoneOrAsItIs = R"sql(
SELECT t.name, true, t.token, t.ttl, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
  NULL, NULL, NULL, NULL FROM t
UNION ALL
SELECT l.name, false, {columns} FROM u JOIN {s}.locks l ON l.name = u.name, c
WHERE u.name NOT IN (SELECT t.name FROM t))sql";

// A release need not reach the disk before it is answered: lost in a crash, it leaves the lock
// taken until its lease ends. Whatever follows it in the log and does reach the disk, takes it
// along.
constexpr std::string_view kNoFlush = ", set_config('synchronous_commit', 'off', true)";

// One release. If the next is a simple case (postgres_next.h), the lock passes to it, and it hears
// so; otherwise there is nothing to read in `parties`, and the columns are NULL.
constexpr std::string_view kReleaseOne = R"sql(
WITH {time}, {u},
t AS (UPDATE {s}.locks l SET version = l.version + 1, token = {next token},
    request = {next request}, session = {next session}, ttl = {next ttl}, holder = {next label},
    host = {next host}, pid = {next pid}, since = CASE WHEN l.parties IS NOT NULL THEN c.now END,
    until = c.now + {next ttl at first},
    waiting = 0, queue = NULL, idle_at = NULL, parties = NULL, record = NULL
  FROM c WHERE l.name = $2::text AND l.until > c.now AND CASE
    WHEN l.record IS NULL THEN l.request = $3::uuid AND l.parties IS NULL
    WHEN l.fenced THEN false
    WHEN starts_with(l.parties, $3::uuid::text || E'\tpasses on to\t')
      THEN {next waits until} > c.now AND {next was heard} <= c.now
    ELSE false END
  RETURNING l.name, l.token, l.ttl,
    CASE WHEN l.request IS NOT NULL THEN pg_notify('holdfast_' || replace(l.session::text, '-', ''),
      replace(l.request::text, '-', '') || ' ' || l.token) END)
{done})sql";

constexpr std::string_view kTake = R"sql(
WITH {time and floor},
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
  RETURNING l.name, l.token, l.ttl)
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
WITH {time}, {u},
t AS (UPDATE {s}.locks l SET {set} FROM c
  WHERE l.name = $2::text AND l.request = $3::uuid AND l.record IS NULL AND l.until > c.now{and}
  RETURNING l.name, l.token, l.ttl)
{done})sql";
constexpr std::string_view kAndUnfenced = " AND NOT l.fenced AND l.last_token < 9007199254740000";
constexpr std::string_view kChangeMany = R"sql(
WITH {time}, {u}{p},
t AS (UPDATE {s}.locks l SET {set} FROM p, c WHERE l.name = p.name RETURNING l.name, l.token, l.ttl)
{done})sql";

// Releases (0), renewals (1) and grants of locks that are free (2), all in one go. The names come
// in order, and a session that plans by the index alone goes through them as they come; behind a
// pooler it may not be ours to say, and the rows are locked in order first.
constexpr std::string_view kExchange = R"sql(
WITH {time},
u AS MATERIALIZED (SELECT u.*, c.now, c.floor FROM c, unnest($2::text[], $3::int[], $4::uuid[],
    $5::uuid[], $6::interval[]) AS u (name, kind, request, session, ttl)),
{lock}t AS (UPDATE {s}.locks l SET version = l.version + 1,
    last_token = CASE WHEN p.kind = 2 THEN greatest(l.last_token + 1, p.floor) + 63
      ELSE l.last_token END,
    token = CASE p.kind WHEN 2 THEN greatest(l.last_token + 1, p.floor) WHEN 1 THEN l.token END,
    request = CASE WHEN p.kind > 0 THEN p.request END,
    session = CASE p.kind WHEN 2 THEN p.session WHEN 1 THEN l.session END,
    ttl = CASE p.kind WHEN 2 THEN p.ttl WHEN 1 THEN l.ttl END,
    holder = CASE p.kind WHEN 2 THEN $7::text WHEN 1 THEN l.holder END,
    host = CASE p.kind WHEN 2 THEN $8::text WHEN 1 THEN l.host END,
    pid = CASE p.kind WHEN 2 THEN $9::bigint WHEN 1 THEN l.pid END,
    since = CASE p.kind WHEN 2 THEN p.now WHEN 1 THEN l.since END,
    until = CASE p.kind WHEN 2 THEN p.now + p.ttl WHEN 1 THEN p.now + l.ttl END
  FROM {those} WHERE l.name = p.name AND {open} RETURNING l.name, l.token, l.ttl)
SELECT t.name, true, t.token, t.ttl FROM t)sql";
constexpr std::string_view kExchangeOpen =
    R"sql(l.record IS NULL AND CASE WHEN p.kind < 2 THEN l.request = p.request AND l.until > p.now
    ELSE NOT l.fenced AND l.last_token < 9007199254740000
      AND (l.request IS NULL OR l.until <= p.now) END)sql";
constexpr std::string_view kExchangeLock = R"sql(p AS MATERIALIZED (SELECT p.* FROM u p
  JOIN {s}.locks l ON l.name = p.name WHERE {open} ORDER BY l.name FOR NO KEY UPDATE OF l),
)sql";

// The same for one ($2, held by $3) that is given back and one ($4) that is taken, as a thread
// does that goes from lock to lock; each if it can be. The index has them in order.
constexpr std::string_view kSwap = R"sql(
WITH {time}
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
RETURNING l.name, true, l.token, l.ttl)sql";

std::string without_flush(std::string sql) {
  return replaced(replaced(std::move(sql), "{time}", kTime), "{also}", kNoFlush);
}

std::string exchanging(std::string_view lock, std::string_view those) {
  std::string made = replaced(std::string{kExchange}, "{lock}", lock);
  made = replaced(std::move(made), "{those}", those);
  return replaced(std::move(made), "{open}", kExchangeOpen);
}

}  // namespace

void LeaseSql::add_short_ways(std::string_view schema) {
  const auto complete = [&](std::string text) {
    return completed(replaced(std::move(text), "{done}", kDoneOrAsItIs), schema);
  };
  const auto change_one = [&](std::string_view set, std::string_view condition) {
    std::string made = replaced(std::string{kChangeOne}, "{u}", kOne);
    made = replaced(std::move(made), "{and}", condition);
    return complete(replaced(std::move(made), "{set}", set));
  };
  const auto change_many = [&](std::string_view set) {
    std::string made = replaced(std::string{kChangeMany}, "{u}", kMany);
    made = replaced(std::move(made), "{p}", kLockedInOrder);
    return replaced(std::move(made), "{set}", set);
  };
  take = complete(std::string{kTake});
  exchange = complete(exchanging("", "u p"));
  exchange_in_order = complete(exchanging(kExchangeLock, "p"));
  swap = complete(std::string{kSwap});
  release_one = complete(without_flush(with_next(replaced(std::string{kReleaseOne}, "{u}", kOne))));
  release = complete(without_flush(change_many(kLetGo)));
  renew_one = change_one(kProlong, "");
  requeue_one = change_one(kPassOn, kAndUnfenced);
  renew = complete(change_many(kProlong));
}

}  // namespace holdfast::engines::postgres
