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
                           static_cast<unsigned>(std::stoul(port)), nullptr,
                           CLIENT_MULTI_STATEMENTS) == nullptr) {
      give_up(mysql_error(mysql_));
    }
  }
  ~MysqlConnection() { mysql_close(mysql_); }
  MysqlConnection(const MysqlConnection&) = delete;
  MysqlConnection& operator=(const MysqlConnection&) = delete;

  void run(const std::string& sql) {
    if (!try_to_run(sql)) {
      give_up(mysql_error(mysql_));
    }
  }
  bool try_to_run(const std::string& sql) {
    int state = mysql_real_query(mysql_, sql.data(), sql.size());
    while (state == 0) {
      mysql_free_result(mysql_store_result(mysql_));
      state = mysql_next_result(mysql_);  // -1: that was all
    }
    return state < 0;
  }
  std::string id() const { return std::to_string(mysql_thread_id(mysql_)); }

 private:
  MYSQL* mysql_;
};

}  // namespace baselines
