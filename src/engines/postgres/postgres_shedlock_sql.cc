#include <string>
#include <string_view>

#include "engines/postgres/postgres_shedlock.h"

namespace holdfast::engines::postgres {
namespace {

// The first is ShedLock's own, but for the longer names. The second is ours
// and for people alone: who of us waits.
constexpr std::string_view kCreate = R"sql(
CREATE TABLE IF NOT EXISTS {t} (
  name       varchar(765) NOT NULL PRIMARY KEY,
  lock_until timestamp    NOT NULL,
  locked_at  timestamp    NOT NULL,
  locked_by  varchar(255) NOT NULL
);
CREATE TABLE IF NOT EXISTS {t}_waiting (
  request uuid PRIMARY KEY,
  name    text NOT NULL,
  who     text NOT NULL,
  since   timestamp NOT NULL,
  until   timestamp NOT NULL
);
)sql";

// ShedLock keeps UTC in columns without a time zone.
constexpr std::string_view kClock =
    "c AS MATERIALIZED (SELECT timezone('utc', coalesce($1::timestamptz, clock_timestamp())) AS "
    "now)";

// Answers: what is left of the lock (NULL: it was not there), who has it, and
// whether this statement gave it to us.
constexpr std::string_view kTake = R"sql(
WITH {clock},
t AS (INSERT INTO {t} AS l (name, lock_until, locked_at, locked_by)
  SELECT $2::text, c.now + $4::interval, c.now, $3::text FROM c
  ON CONFLICT (name) DO UPDATE SET lock_until = excluded.lock_until,
    locked_at = excluded.locked_at, locked_by = excluded.locked_by
  WHERE l.lock_until <= excluded.locked_at
  RETURNING l.lock_until, l.locked_by)
SELECT t.lock_until - c.now, t.locked_by, true FROM t, c
UNION ALL SELECT l.lock_until - c.now, l.locked_by, false FROM {t} l, c
WHERE l.name = $2::text AND NOT EXISTS (SELECT FROM t))sql";

constexpr std::string_view kRenew = R"sql(
WITH {clock}
UPDATE {t} l SET lock_until = c.now + $4::interval FROM c
WHERE l.name = $2::text AND l.locked_by = $3::text AND l.lock_until > c.now
RETURNING l.lock_until - c.now, l.locked_by, true)sql";

// $4: lockAtLeastFor.
constexpr std::string_view kRelease = R"sql(
WITH {clock}
UPDATE {t} l SET lock_until = greatest(l.locked_at + $4::interval, c.now) FROM c
WHERE l.name = $2::text AND l.locked_by IN ($3::text, $3::text || ' (revoked)')
  AND l.lock_until > c.now
RETURNING l.lock_until - c.now, l.locked_by, true)sql";

constexpr std::string_view kLook = R"sql(
WITH {clock}
SELECT l.lock_until - c.now, l.locked_by, false FROM {t} l, c
WHERE l.name = $2::text AND l.lock_until > c.now)sql";

// Another name in `locked_by` ends the holder's renewals.
constexpr std::string_view kRevoke = R"sql(
WITH {clock}
UPDATE {t} l SET locked_by = left(l.locked_by, 245) || ' (revoked)' FROM c
WHERE l.name = $2::text AND l.lock_until > c.now AND l.locked_by NOT LIKE '% (revoked)'
RETURNING 1)sql";

constexpr std::string_view kFreeNow = R"sql(
WITH {clock}
UPDATE {t} l SET lock_until = c.now FROM c WHERE l.name = $2::text AND l.lock_until > c.now
RETURNING 1)sql";

constexpr std::string_view kNoteWaiter = R"sql(
WITH {clock}
INSERT INTO {t}_waiting AS w (request, name, who, since, until)
SELECT $3::uuid, $2::text, $4::text, c.now, c.now + $5::interval FROM c
ON CONFLICT (request) DO UPDATE SET until = excluded.until)sql";

constexpr std::string_view kForgetWaiter = R"sql(
DELETE FROM {t}_waiting WHERE request = $1::uuid
  OR until < timezone('utc', coalesce($2::timestamptz, clock_timestamp())) - interval '1 minute')sql";

constexpr std::string_view kList = R"sql(
WITH {clock}
SELECT l.name, l.locked_by, c.now - l.locked_at, l.lock_until - c.now FROM {t} l, c
WHERE starts_with(l.name, $2::text) AND l.lock_until > c.now)sql";

constexpr std::string_view kWaiters = R"sql(
WITH {clock}
SELECT w.name, w.who, c.now - w.since FROM {t}_waiting w, c
WHERE starts_with(w.name, $2::text) AND w.until > c.now ORDER BY w.since)sql";

std::string complete(std::string_view text, const std::string& table) {
  std::string made{text};
  for (const auto& [what, by] :
       {std::pair<std::string_view, std::string_view>{"{clock}", kClock}, {"{t}", table}}) {
    for (auto at = made.find(what); at != std::string::npos; at = made.find(what, at + by.size())) {
      made.replace(at, what.size(), by);
    }
  }
  return made;
}

}  // namespace

ShedlockSql::ShedlockSql(const Options& options) {
  const std::string table =
      options.schema + "." + (options.table.empty() ? "shedlock" : options.table);
  create = complete(kCreate, table);
  take = complete(kTake, table);
  renew = complete(kRenew, table);
  release = complete(kRelease, table);
  look = complete(kLook, table);
  revoke = complete(kRevoke, table);
  free_now = complete(kFreeNow, table);
  note_waiter = complete(kNoteWaiter, table);
  forget_waiter = complete(kForgetWaiter, table);
  list = complete(kList, table);
  waiters = complete(kWaiters, table);
}

}  // namespace holdfast::engines::postgres
