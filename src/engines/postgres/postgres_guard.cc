// On the user's connection, with the user's patience: these calls block.
#include "engines/postgres/postgres_guard.h"

#include <libpq-fe.h>

#include <memory>

#include "engines/postgres/postgres_errors.h"

namespace holdfast::engines::postgres {
namespace {

struct Clear {
  void operator()(PGresult* result) const noexcept { PQclear(result); }
};
using Answer = std::unique_ptr<PGresult, Clear>;

Answer ask(pg_conn* connection, const std::string& sql) {
  return Answer{PQexec(connection, sql.c_str())};
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

Error lost() {
  return {ErrorCode::lease_lost, "the lock is not ours any more; the transaction was rolled back",
          std::nullopt};
}

Error after_failed_check(pg_conn* connection, const Answer& answer, const std::string& check) {
  Error error = is_good(answer) ? lost() : error_of(connection, answer);
  if (PQstatus(connection) != CONNECTION_OK) {
    return {ErrorCode::unavailable, error.text, error.native};  // it took the transaction along
  }
  ask(connection, "ROLLBACK");
  if (!is_good(answer) && !is_contention(error)) {
    return error;
  }
  // A snapshot that is older than the grant does not see it: that is no loss,
  // and the next transaction will.
  const Answer again = ask(connection, check);
  if (!is_good(again) || PQntuples(again.get()) == 0) {
    return is_good(again) ? lost() : error_of(connection, again);
  }
  return {ErrorCode::unavailable,
          "the transaction began before the lock could be seen in it, and was rolled back; begin "
          "it again",
          std::nullopt};
}

}  // namespace

std::string fence_condition(std::string_view schema, std::string_view key, std::uint64_t token) {
  std::string condition =
      "EXISTS (SELECT FROM " + std::string{schema} + ".fences WHERE name = convert_from(decode('";
  static constexpr std::string_view kDigits = "0123456789abcdef";
  for (const char c : key) {
    const auto byte = static_cast<unsigned char>(c);
    condition += {kDigits[byte >> 4U], kDigits[byte & 15U]};
  }
  return condition + "', 'hex'), 'SQL_ASCII') AND token <= " + std::to_string(token) +
         " FOR SHARE)";
}

Result<void> guard_transaction(pg_conn* connection, const std::string& condition,
                               engine::AfterGuard after) {
  if (PQtransactionStatus(connection) != PQTRANS_INTRANS) {
    return fail(ErrorCode::invalid_argument,
                "guard() belongs into a transaction: there is none open on this connection, or "
                "it has failed");
  }
  const std::string check = "SELECT 1 WHERE " + condition;
  const Answer answer = ask(connection, check);
  if (!is_good(answer) || PQntuples(answer.get()) == 0) {
    return tl::unexpected{after_failed_check(connection, answer, check)};
  }
  if (after == engine::AfterGuard::commit) {
    const Answer committed = ask(connection, "COMMIT");
    if (!is_good(committed)) {
      return tl::unexpected{error_of(connection, committed)};
    }
  }
  return {};
}

void roll_back(pg_conn* connection) {
  ask(connection, "ROLLBACK");
}

}  // namespace holdfast::engines::postgres
