#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "support/raw_mysql.h"
#include "support/server.h"

namespace holdfast::test {

// Tables of a test's own in a MariaDB: in the server that all share, or with
// options in one of its own. Gone with the object.
class MysqlStore {
 public:
  MysqlStore();
  explicit MysqlStore(std::vector<std::string> server_options);
  ~MysqlStore();
  MysqlStore(const MysqlStore&) = delete;
  MysqlStore& operator=(const MysqlStore&) = delete;

  std::uint16_t port() const { return port_; }
  std::string port_text() const { return std::to_string(port_); }
  const std::string& prefix() const { return prefix_; }
  PrivateServer& server() { return *own_; }  // only of its own

  std::string url() const { return url(port_); }
  std::string url(std::uint16_t port) const;  // over a proxy
  std::string url_of(const std::string& user) const;

  // Somebody who may do what docs/engines/mysql.md says, and nothing else.
  std::string add_least_user();
  void drop_user(const std::string& user);

  RawMysql& root();  // connects at the first use, and after restart()
  void forget_root() { root_ = nullptr; }
  bool is_mariadb();  // or MySQL, if HOLDFAST_MYSQLD names one

  // Ends the sessions of those who use these tables. How many there were.
  std::size_t kill_sessions();
  // How many of them are in that state: "User sleep".
  std::size_t sessions_in(const std::string& state);
  // What the last grant of the name got; 0 if there is no row.
  std::uint64_t token_of(const std::string& name);
  std::size_t rows();  // in the table of locks

 private:
  std::unique_ptr<PrivateServer> own_;
  std::uint16_t port_ = 0;
  std::string prefix_;
  std::string account_;  // a name of our own, so that our sessions can be told from others
  std::unique_ptr<RawMysql> root_;
};

}  // namespace holdfast::test
