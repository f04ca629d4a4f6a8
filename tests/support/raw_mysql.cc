#include "support/raw_mysql.h"

#include <mariadb/mysql.h>

#include <stdexcept>

namespace holdfast::test {

void RawMysql::Close::operator()(st_mysql* mysql) const noexcept {
  mysql_close(mysql);
}

RawMysql::RawMysql(const std::string& port, const std::string& user, const std::string& database)
    : mysql_{mysql_init(nullptr)} {
  if (mysql_real_connect(mysql_.get(), "127.0.0.1", user.c_str(), "", database.c_str(),
                         static_cast<unsigned>(std::stoul(port)), nullptr, 0) == nullptr) {
    throw std::runtime_error{mysql_error(mysql_.get())};
  }
}

unsigned RawMysql::error_of(const std::string& statement) {
  if (mysql_real_query(mysql_.get(), statement.data(), statement.size()) != 0) {
    return mysql_errno(mysql_.get());
  }
  mysql_free_result(mysql_store_result(mysql_.get()));
  return 0;
}

std::vector<std::vector<std::string>> RawMysql::ask(const std::string& statement) {
  if (mysql_real_query(mysql_.get(), statement.data(), statement.size()) != 0) {
    throw std::runtime_error{statement + ": " + mysql_error(mysql_.get())};
  }
  std::vector<std::vector<std::string>> rows;
  if (MYSQL_RES* result = mysql_store_result(mysql_.get())) {
    while (char** cells = mysql_fetch_row(result)) {
      const unsigned long* lengths = mysql_fetch_lengths(result);
      auto& row = rows.emplace_back();
      for (unsigned i = 0; i < mysql_num_fields(result); ++i) {
        row.push_back(cells[i] == nullptr ? "NULL" : std::string(cells[i], lengths[i]));
      }
    }
    mysql_free_result(result);
  }
  return rows;
}

std::string RawMysql::ask_one(const std::string& statement) {
  const auto rows = ask(statement);
  return rows.empty() ? "" : rows.front().front();
}

std::uint64_t RawMysql::change(const std::string& statement) {
  ask(statement);
  return mysql_affected_rows(mysql_.get());
}

}  // namespace holdfast::test
