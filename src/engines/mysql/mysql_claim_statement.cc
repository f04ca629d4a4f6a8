#include "engines/mysql/mysql_claim_statement.h"

#include <mariadb/mysql.h>

#include <array>
#include <charconv>

namespace holdfast::engines {
namespace {

constexpr std::size_t kLongestKey = 4096;

bool is_integer(enum_field_types type) {
  return type == MYSQL_TYPE_TINY || type == MYSQL_TYPE_SHORT || type == MYSQL_TYPE_INT24 ||
         type == MYSQL_TYPE_LONG || type == MYSQL_TYPE_LONGLONG;
}

// Bound as what it is, so that the server compares numbers with numbers.
MysqlStatement::Value value_of(std::string text, bool integer) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  if (integer && std::from_chars(text.data(), end, number) == std::from_chars_result{end, {}}) {
    return number;
  }
  return text;
}

}  // namespace

MysqlStatement::MysqlStatement(st_mysql* connection) noexcept
    : connection_{connection}, statement_{mysql_stmt_init(connection)} {}

MysqlStatement::~MysqlStatement() {
  if (statement_ != nullptr) {
    mysql_stmt_close(statement_);
  }
}

Error MysqlStatement::error_of(unsigned code, const char* text) {
  constexpr unsigned kClientErrors = 2000;
  const bool lost = code >= kClientErrors && code < kClientErrors + 1000;
  return {lost ? ErrorCode::outcome_unknown : ErrorCode::unavailable,
          std::string{text} + " (error " + std::to_string(code) + ")", static_cast<int>(code)};
}

Error MysqlStatement::error() const {
  return statement_ == nullptr
             ? error_of(mysql_errno(connection_), mysql_error(connection_))
             : error_of(mysql_stmt_errno(statement_), mysql_stmt_error(statement_));
}

Result<void> MysqlStatement::run(std::string_view sql, const std::vector<Value>& values) {
  if (statement_ == nullptr || mysql_stmt_prepare(statement_, sql.data(), sql.size()) != 0) {
    return tl::unexpected{error()};
  }
  std::vector<Value> bound = values;
  std::vector<MYSQL_BIND> binds(bound.size());
  for (std::size_t i = 0; i < bound.size(); ++i) {
    if (auto* number = std::get_if<std::int64_t>(&bound[i])) {
      binds[i].buffer_type = MYSQL_TYPE_LONGLONG;
      binds[i].buffer = number;
    } else {
      auto& text = std::get<std::string>(bound[i]);
      binds[i].buffer_type = MYSQL_TYPE_STRING;
      binds[i].buffer = text.data();
      binds[i].buffer_length = text.size();
    }
  }
  const bool fine = (binds.empty() || mysql_stmt_bind_param(statement_, binds.data()) == 0) &&
                    mysql_stmt_execute(statement_) == 0;
  if (!fine) {
    return tl::unexpected{error()};
  }
  return {};
}

std::uint64_t MysqlStatement::rows_changed() const {
  return mysql_stmt_affected_rows(statement_);
}

Result<std::vector<MysqlStatement::Value>> MysqlStatement::first_column() {
  MYSQL_RES* const described = mysql_stmt_result_metadata(statement_);
  if (described == nullptr) {
    return tl::unexpected{error()};
  }
  const bool integer = is_integer(mysql_fetch_field_direct(described, 0)->type);
  mysql_free_result(described);
  std::array<char, kLongestKey> buffer{};
  unsigned long length = 0;  // NOLINT: the library's type
  MYSQL_BIND bind{};
  bind.buffer_type = MYSQL_TYPE_STRING;
  bind.buffer = buffer.data();
  bind.buffer_length = buffer.size();
  bind.length = &length;
  if (mysql_stmt_bind_result(statement_, &bind) != 0 || mysql_stmt_store_result(statement_) != 0) {
    return tl::unexpected{error()};
  }
  std::vector<Value> column;
  int state = 0;
  while ((state = mysql_stmt_fetch(statement_)) == 0) {
    column.push_back(value_of(std::string{buffer.data(), length}, integer));
  }
  if (state == MYSQL_DATA_TRUNCATED) {
    return fail(ErrorCode::invalid_argument,
                "key has a value of more than " + std::to_string(kLongestKey) + " bytes");
  }
  if (state != MYSQL_NO_DATA) {
    return tl::unexpected{error()};
  }
  return column;
}

}  // namespace holdfast::engines
