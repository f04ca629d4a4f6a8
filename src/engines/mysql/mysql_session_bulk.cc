#include "engines/mysql/mysql_session_bulk.h"

#include <mariadb/errmsg.h>
#include <mariadb/mysql.h>

#include <utility>

namespace holdfast::engines {
namespace {

std::size_t rows_of(const MysqlColumn& column) {
  return std::visit([](const auto& values) { return values.size(); }, column);
}

}  // namespace

bool MysqlBulk::is_known_to(st_mysql* mysql) {
  unsigned long extended = 0;  // NOLINT: the library's type
  mariadb_get_infov(mysql, MARIADB_CONNECTION_EXTENDED_SERVER_CAPABILITIES, &extended);
  return (extended & (MARIADB_CLIENT_STMT_BULK_OPERATIONS >> 32U)) != 0;
}

void MysqlBulk::begin(st_mysql* mysql, std::string statement, std::vector<MysqlColumn> columns) {
  columns_ = std::move(columns);
  answers_.clear();
  if (statement_ == nullptr) {
    statement_ = mysql_stmt_init(mysql);
    prepared_ = false;
  }
  if (!prepared_) {
    sql_ = std::move(statement);
  }
  step_ = prepared_ ? Step::execute : Step::prepare;
}

int MysqlBulk::take_step(bool first, int events) {
  if (statement_ == nullptr) {
    result_ = 1;
    return 0;
  }
  switch (step_) {
    case Step::prepare:
      return first ? mysql_stmt_prepare_start(&result_, statement_, sql_.data(), sql_.size())
                   : mysql_stmt_prepare_cont(&result_, statement_, events);
    case Step::execute:
      if (first && !bind()) {
        result_ = 1;
        return 0;
      }
      return first ? mysql_stmt_execute_start(&result_, statement_)
                   : mysql_stmt_execute_cont(&result_, statement_, events);
    case Step::store:
      return first ? mysql_stmt_store_result_start(&result_, statement_)
                   : mysql_stmt_store_result_cont(&result_, statement_, events);
  }
  return 0;
}

bool MysqlBulk::finish_step() {
  if (result_ != 0) {
    return true;
  }
  switch (step_) {
    case Step::prepare:
      prepared_ = true;
      step_ = Step::execute;
      return false;
    case Step::execute:
      step_ = Step::store;
      return false;
    case Step::store:
      read_answers();
      return true;
  }
  return true;
}

bool MysqlBulk::bind() {
  std::vector<MYSQL_BIND> binds(columns_.size());
  pointers_.assign(columns_.size(), {});
  lengths_.assign(columns_.size(), {});
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (auto* bytes = std::get_if<std::vector<std::string>>(&columns_[i])) {
      for (const std::string& each : *bytes) {
        pointers_[i].push_back(each.data());
        lengths_[i].push_back(each.size());
      }
      binds[i].buffer_type = MYSQL_TYPE_BLOB;
      binds[i].buffer = pointers_[i].data();
      binds[i].length = lengths_[i].data();
    } else if (auto* numbers = std::get_if<std::vector<std::int64_t>>(&columns_[i])) {
      binds[i].buffer_type = MYSQL_TYPE_LONGLONG;
      binds[i].buffer = numbers->data();
    } else {
      binds[i].buffer_type = MYSQL_TYPE_LONGLONG;
      binds[i].is_unsigned = 1;
      binds[i].buffer = std::get<std::vector<std::uint64_t>>(columns_[i]).data();
    }
  }
  auto rows = static_cast<unsigned>(rows_of(columns_.front()));
  return mysql_stmt_param_count(statement_) == columns_.size() &&
         mysql_stmt_attr_set(statement_, STMT_ATTR_ARRAY_SIZE, &rows) == 0 &&
         mysql_stmt_bind_param(statement_, binds.data()) == 0;
}

void MysqlBulk::read_answers() {
  Answer answer{};
  std::array<MYSQL_BIND, kAnswered> binds{};
  for (std::size_t i = 0; i < binds.size(); ++i) {
    binds.at(i).buffer_type = MYSQL_TYPE_LONGLONG;
    binds.at(i).is_unsigned = 1;
    binds.at(i).buffer = &answer.at(i);
  }
  if (mysql_stmt_field_count(statement_) == binds.size() &&
      mysql_stmt_bind_result(statement_, binds.data()) == 0) {
    int state = mysql_stmt_fetch(statement_);
    while (state == 0 || state == MYSQL_DATA_TRUNCATED) {  // it calls a negative number that
      answers_.push_back(answer);
      state = mysql_stmt_fetch(statement_);
    }
  }
  mysql_stmt_free_result(statement_);
}

unsigned MysqlBulk::code() const {
  return statement_ == nullptr ? CR_OUT_OF_MEMORY : mysql_stmt_errno(statement_);
}

std::string MysqlBulk::text() const {
  return statement_ == nullptr ? "out of memory" : mysql_stmt_error(statement_);
}

void MysqlBulk::close() noexcept {
  if (statement_ != nullptr) {
    mysql_stmt_close(std::exchange(statement_, nullptr));
  }
  prepared_ = false;
}

}  // namespace holdfast::engines
