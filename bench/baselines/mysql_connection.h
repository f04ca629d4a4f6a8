#pragma once

#include <mariadb/mysql.h>

#include <string>

#include "baselines.h"

namespace baselines {

// Whatever fails ends the program.
class MysqlConnection {
 public:
  explicit MysqlConnection(const std::string& port) : mysql_{mysql_init(nullptr)} {
    if (mysql_real_connect(mysql_, "127.0.0.1", "app", "", "holdfast",
                           static_cast<unsigned>(std::stoul(port)), nullptr, 0) == nullptr) {
      give_up(mysql_error(mysql_));
    }
  }
  ~MysqlConnection() { mysql_close(mysql_); }
  MysqlConnection(const MysqlConnection&) = delete;
  MysqlConnection& operator=(const MysqlConnection&) = delete;

  void run(const std::string& sql) {
    if (mysql_real_query(mysql_, sql.data(), sql.size()) != 0) {
      give_up(mysql_error(mysql_));
    }
    mysql_free_result(mysql_store_result(mysql_));
  }

 private:
  MYSQL* mysql_;
};

}  // namespace baselines
