#pragma once

#include <holdfast/error.h>
#include <holdfast/job_table.h>
#include <holdfast/lease.h>
#include <holdfast/own_row.h>
#include <holdfast/versioned.h>
#include <cstdint>
#include <string_view>

struct pg_conn;  // PGconn, as libpq-fe.h calls it

// For data in the PostgreSQL database that also keeps the locks: the lock is
// checked where the data is, in the transaction that changes it. That closes
// the gap in which a paused process does not know that it lost the lock.
//
// The connection is the caller's own, blocking, with a transaction open on it
// (else invalid_argument); it must not be used by another thread meanwhile. At
// REPEATABLE READ and above, begin the transaction after the lock was acquired.
namespace holdfast::postgres {

// Succeeds while the lease's grant is the current one, and from then until the
// transaction ends nobody else can be granted the lock, even if the lease runs
// out. Renewals, and other names, do not notice.
// lease_lost: somebody else has, or had, the lock; the transaction was rolled
// back. unavailable: it was rolled back and may be tried again.
Result<void> guard(const Lease& lease, pg_conn* connection);

// guard(), then COMMIT. outcome_unknown: no answer to the COMMIT.
Result<void> guarded_commit(const Lease& lease, pg_conn* connection);

// Changes a row of your own table if it still has the version that you read,
// and counts the version up: optimistic locking where your data is. Needs no
// lock and no Client, and no transaction, but works inside one. Names are
// checked and quoted, values are always bound. See docs/versioned.md.
// Not stored: the row has another version, or is not there; `version` is 0.
// invalid_argument names the field. unavailable: the statement failed; what it
// says of the transaction is the server's. outcome_unknown: no answer came.
Result<WriteOutcome> update_row(pg_conn* connection, const RowUpdate& update);

// Takes up to `at_most` open rows of a job table of your own, rows that nobody
// else takes (FOR UPDATE SKIP LOCKED): marks them as taken by a new claim and
// returns their keys, in their order. Empty if none is open. No Client is
// needed. In a transaction that is open on the connection the marks belong to
// it, else they are committed at once.
// invalid_argument names the field; unsupported before PostgreSQL 9.5;
// unavailable; outcome_unknown.
Result<ClaimedJobs> claim(pg_conn* connection, const JobTable& table, std::uint32_t at_most = 1);

// Gives a claimed row its final status, if it still is that claim's.
// lease_lost: somebody else took it over (see JobTable::again_after).
Result<void> complete(pg_conn* connection, const JobTable& table, std::string_view claim,
                      std::string_view key, std::string_view status);

}  // namespace holdfast::postgres
