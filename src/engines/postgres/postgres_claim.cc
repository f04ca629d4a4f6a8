// On the user's connection, with the user's patience: these calls block.
#include <holdfast/job_table.h>
#include <libpq-fe.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <string>
#include <vector>

#include "base/ids.h"
#include "engines/postgres/postgres_errors.h"
#include "engines/postgres/postgres_values.h"
#include "engines/relational/job_table.h"

namespace holdfast::engines::postgres {
namespace {

constexpr int kSkipsLocked = 90500;

struct Clear {
  void operator()(PGresult* result) const noexcept { PQclear(result); }
};
using Answer = std::unique_ptr<PGresult, Clear>;

Answer ask(pg_conn* connection, const std::string& sql, const std::vector<std::string>& values) {
  std::vector<const char*> bound;
  for (const std::string& value : values) {
    bound.push_back(value.c_str());
  }
  return Answer{PQexecParams(connection, sql.c_str(), static_cast<int>(bound.size()), nullptr,
                             bound.data(), nullptr, nullptr, 0)};
}

bool is_good(const Answer& answer) {
  const ExecStatusType status = PQresultStatus(answer.get());
  return status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
}

Error error_of(pg_conn* connection, const Answer& answer) {
  const char* state = PQresultErrorField(answer.get(), PG_DIAG_SQLSTATE);
  const char* text = PQresultErrorField(answer.get(), PG_DIAG_MESSAGE_PRIMARY);
  if (state == nullptr || text == nullptr) {
    return lost_connection(ErrorCode::outcome_unknown, PQerrorMessage(connection));
  }
  return server_error(state, text);
}

Result<void> check_words(const JobTable& table) {
  for (const std::string* word : {&table.open, &table.taken}) {
    if (word->find('\0') != std::string::npos) {
      return fail(ErrorCode::invalid_argument, "open and taken cannot have a zero byte in them");
    }
  }
  return {};
}

Result<QuotedJobTable> names_of(pg_conn* connection, const JobTable& table) {
  if (connection == nullptr) {
    return fail(ErrorCode::invalid_argument, "connection is null; open one first");
  }
  return check_words(table).and_then([&] { return quote(table, kPostgresQuoting); });
}

// One statement: the rows are chosen and locked, then marked.
std::string claim_sql(const QuotedJobTable& names, bool again) {
  std::string open = names.status + " = $1";
  if (again) {
    open = "(" + open + " OR (" + names.status + " = $2 AND " + names.claimed_at +
           " < clock_timestamp() - $5::interval))";
  }
  std::string sql = "WITH chosen AS (SELECT " + names.key + " FROM " + names.table + " WHERE " +
                    open + " ORDER BY " + names.key +
                    " LIMIT $4::bigint FOR UPDATE SKIP LOCKED), marked AS (UPDATE " + names.table +
                    " AS job SET " + names.status + " = $2, " + names.claimed_by + " = $3";
  if (!names.claimed_at.empty()) {
    sql += ", " + names.claimed_at + " = clock_timestamp()";
  }
  return sql + " FROM chosen WHERE job." + names.key + " = chosen." + names.key +
         " RETURNING job." + names.key + ") SELECT " + names.key + "::text FROM marked ORDER BY " +
         "marked." + names.key;
}

Result<ClaimedJobs> claim_jobs(pg_conn* connection, const JobTable& table, std::uint32_t at_most) {
  const auto names = check_count(at_most).and_then([&] { return names_of(connection, table); });
  if (!names) {
    return tl::unexpected{names.error()};
  }
  if (PQserverVersion(connection) != 0 && PQserverVersion(connection) < kSkipsLocked) {
    return fail(ErrorCode::unsupported, "claim() needs PostgreSQL 9.5 or later");
  }
  ClaimedJobs claimed{.claim = base::Id::random().hex(), .keys = {}};
  std::vector<std::string> values{table.open, table.taken, claimed.claim, std::to_string(at_most)};
  if (table.again_after) {
    values.push_back(interval_text(*table.again_after));
  }
  const Answer answer = ask(connection, claim_sql(*names, table.again_after.has_value()), values);
  if (!is_good(answer)) {
    return tl::unexpected{error_of(connection, answer)};
  }
  for (int row = 0; row < PQntuples(answer.get()); ++row) {
    claimed.keys.emplace_back(PQgetvalue(answer.get(), row, 0));
  }
  return claimed;
}

Result<void> complete_job(pg_conn* connection, const JobTable& table, std::string_view claim,
                          std::string_view key, std::string_view status) {
  const auto names = names_of(connection, table);
  if (!names) {
    return tl::unexpected{names.error()};
  }
  if (status == table.taken || status == table.open) {
    return fail(ErrorCode::invalid_argument, "status must differ from open and taken");
  }
  const Answer answer =
      ask(connection,
          "UPDATE " + names->table + " SET " + names->status + " = $1 WHERE " + names->key +
              " = $2 AND " + names->claimed_by + " = $3 AND " + names->status + " = $4",
          {std::string{status}, std::string{key}, std::string{claim}, table.taken});
  if (!is_good(answer)) {
    return tl::unexpected{error_of(connection, answer)};
  }
  if (std::string_view{PQcmdTuples(answer.get())} != "1") {
    return fail(ErrorCode::lease_lost, "the job is not ours any more: somebody else took it over");
  }
  return {};
}

}  // namespace
}  // namespace holdfast::engines::postgres

// Declared in <holdfast/postgres.h>, which stands above the engines.
namespace holdfast::postgres {

Result<ClaimedJobs> claim(pg_conn* connection, const JobTable& table, std::uint32_t at_most) {
  return engines::postgres::claim_jobs(connection, table, at_most);
}

Result<void> complete(pg_conn* connection, const JobTable& table, std::string_view claim,
                      std::string_view key, std::string_view status) {
  return engines::postgres::complete_job(connection, table, claim, key, status);
}

}  // namespace holdfast::postgres
