// A row of the user's, on the user's connection: these calls block.
#include <mariadb/mysql.h>

#include <memory>
#include <string>
#include <vector>

#include "engines/mysql/mysql_row_update.h"
#include "engines/relational/row_statement.h"

namespace holdfast::engines {
namespace {

constexpr relational::Dialect kDialect{.quote = '`', .numbered = false, .longest_name = 64};

struct Close {
  void operator()(MYSQL_STMT* statement) const noexcept { mysql_stmt_close(statement); }
};
using Statement = std::unique_ptr<MYSQL_STMT, Close>;

Error error_of(MYSQL_STMT* statement) {
  const unsigned code = mysql_stmt_errno(statement);
  constexpr unsigned kClientErrors = 2000;
  const bool lost = code >= kClientErrors && code < kClientErrors + 1000;
  return {lost ? ErrorCode::outcome_unknown : ErrorCode::unavailable,
          std::string{mysql_stmt_error(statement)} + " (error " + std::to_string(code) + ")",
          static_cast<int>(code)};
}

// The values stay where they are until the statement has run.
std::vector<MYSQL_BIND> bound(std::vector<SqlValue>& values) {
  std::vector<MYSQL_BIND> binds(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    MYSQL_BIND& bind = binds[i];
    if (auto* number = std::get_if<std::int64_t>(&values[i])) {
      bind.buffer_type = MYSQL_TYPE_LONGLONG;
      bind.buffer = number;
    } else if (auto* real = std::get_if<double>(&values[i])) {
      bind.buffer_type = MYSQL_TYPE_DOUBLE;
      bind.buffer = real;
    } else if (auto* text = std::get_if<std::string>(&values[i])) {
      bind.buffer_type = MYSQL_TYPE_STRING;
      bind.buffer = text->data();
      bind.buffer_length = text->size();
    } else {
      bind.buffer_type = MYSQL_TYPE_NULL;
    }
  }
  return binds;
}

}  // namespace

Result<bool> update_row_on_mysql(void* connection, const RowUpdate& update) {
  auto made = relational::row_statement(update, kDialect);
  if (!made) {
    return tl::unexpected{std::move(made.error())};
  }
  const Statement statement{mysql_stmt_init(static_cast<MYSQL*>(connection))};
  if (!statement) {
    return fail(ErrorCode::unavailable, "no memory for a statement");
  }
  if (mysql_stmt_prepare(statement.get(), made->text.data(), made->text.size()) != 0) {
    Error error = error_of(statement.get());
    error.code = ErrorCode::unavailable;  // nothing was asked of the row yet
    return tl::unexpected{std::move(error)};
  }
  auto binds = bound(made->values);
  if (mysql_stmt_bind_param(statement.get(), binds.data()) != 0 ||
      mysql_stmt_execute(statement.get()) != 0) {
    return tl::unexpected{error_of(statement.get())};
  }
  return mysql_stmt_affected_rows(statement.get()) > 0;
}

}  // namespace holdfast::engines
