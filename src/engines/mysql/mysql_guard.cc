#include "engines/mysql/mysql_guard.h"

#include <mariadb/mysql.h>

#include "engines/mysql/mysql_errors.h"
#include "engines/mysql/mysql_sql.h"

namespace holdfast::engines {
namespace {

// Whatever the user asked of the connection, an error is one of these.
Error error_of(MYSQL* connection, ErrorCode if_lost) {
  const MysqlError error{.code = mysql_errno(connection), .text = mysql_error(connection)};
  constexpr unsigned kClientErrors = 2000;
  const bool lost = error.code >= kClientErrors && error.code < kClientErrors + 1000;
  return {lost ? if_lost : ErrorCode::unavailable,
          error.text + " (error " + std::to_string(error.code) + ")", static_cast<int>(error.code)};
}

std::string quoted(std::string_view identifier) {
  std::string text = "`";
  for (const char c : identifier) {
    text.append(c == '`' ? 2 : 1, c);
  }
  return text + "`";
}

}  // namespace

MysqlFence::MysqlFence(const MysqlOptions& options, std::string_view name, std::uint64_t token)
    : select_{"SELECT 1 FROM " + quoted(options.database) + "." + options.fences_table() +
              " WHERE name="} {
  append_hex(select_, name);
  select_ += " AND token<=" + std::to_string(token) + " LOCK IN SHARE MODE";
}

Result<void> check_transaction(st_mysql* connection) {
  const bool open = (connection->server_status & SERVER_STATUS_IN_TRANS) != 0 ||
                    (connection->server_status & SERVER_STATUS_AUTOCOMMIT) == 0;
  if (!open) {
    return fail(ErrorCode::invalid_argument,
                "guard() belongs into a transaction: there is none open on this connection");
  }
  return {};
}

Result<void> guard_transaction(st_mysql* connection, const MysqlFence& fence,
                               engine::AfterGuard after) {
  const std::string& check = fence.select();
  MYSQL_RES* rows = nullptr;
  if (mysql_real_query(connection, check.data(), check.size()) == 0) {
    rows = mysql_store_result(connection);
  }
  if (rows == nullptr) {
    Error error = error_of(connection, ErrorCode::unavailable);
    roll_back(connection);  // a deadlock has done so already
    error.text += "; the transaction was rolled back";
    return tl::unexpected{std::move(error)};
  }
  const bool holds = mysql_num_rows(rows) > 0;
  mysql_free_result(rows);
  if (!holds) {
    roll_back(connection);
    return fail(ErrorCode::lease_lost,
                "the lock is not ours any more; the transaction was rolled back");
  }
  if (after == engine::AfterGuard::commit && mysql_commit(connection) != 0) {
    return tl::unexpected{error_of(connection, ErrorCode::outcome_unknown)};
  }
  return {};
}

void roll_back(st_mysql* connection) {
  mysql_rollback(connection);
}

}  // namespace holdfast::engines
