#include "support/mysql_store.h"

#include "base/ids.h"
#include "core/commands.h"
#include "support/eventually.h"

namespace holdfast::test {
namespace {

std::string hex(const std::string& bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text = "x'";
  for (const char byte : bytes) {
    text += kDigits[static_cast<unsigned char>(byte) >> 4U];
    text += kDigits[static_cast<unsigned char>(byte) & 0xFU];
  }
  return text + "'";
}

std::string fresh(const std::string& start) {
  return start + base::Id::random().hex().substr(0, 12);
}

}  // namespace

MysqlStore::MysqlStore()
    : port_{static_cast<std::uint16_t>(std::stoul(shared_server_port("mariadb")))},
      prefix_{fresh("t_") + "_"},
      account_{fresh("user_")} {
  root().ask("CREATE USER " + account_);
  root().ask("GRANT ALL ON holdfast.* TO " + account_);
}

MysqlStore::MysqlStore(std::vector<std::string> server_options)
    : own_{std::make_unique<PrivateServer>("mariadb", std::move(server_options))},
      port_{own_->port()},
      prefix_{"holdfast_"},
      account_{"app"} {}

MysqlStore::~MysqlStore() {
  if (own_) {
    return;
  }
  for (const auto& row : root().ask("SHOW TABLES LIKE '" + prefix_ + "%'")) {
    root().ask("DROP TABLE `" + row.front() + "`");
  }
  root().ask("DROP USER " + account_);
}

RawMysql& MysqlStore::root() {
  if (!root_) {
    root_ = std::make_unique<RawMysql>(port_text());
    root_->ask("SET autocommit=1, sql_mode='', wait_timeout=28800");
  }
  return *root_;
}

bool MysqlStore::is_mariadb() {
  return root().ask_one("SELECT VERSION()").find("MariaDB") != std::string::npos;
}

std::string MysqlStore::url(std::uint16_t port) const {
  return "mysql://" + account_ + "@127.0.0.1:" + std::to_string(port) +
         "/holdfast?prefix=" + prefix_;
}

std::string MysqlStore::url_of(const std::string& user) const {
  return "mysql://" + user + "@127.0.0.1:" + port_text() + "/holdfast?prefix=" + prefix_;
}

std::string MysqlStore::add_least_user() {
  const std::string user = fresh("least_");
  root().ask("CREATE USER " + user);
  for (const char* table : {"locks", "notes", "fences", "values", "schema"}) {
    root().ask("GRANT SELECT, INSERT, UPDATE, DELETE ON holdfast." + prefix_ + table + " TO " +
               user);
  }
  return user;
}

void MysqlStore::drop_user(const std::string& user) {
  root().ask("DROP USER " + user);
}

std::size_t MysqlStore::kill_sessions() {
  const auto sessions =
      root().ask("SELECT ID FROM information_schema.PROCESSLIST WHERE USER='" + account_ + "'");
  std::string ids = "0";
  for (const auto& row : sessions) {
    root().error_of("KILL " + row.front());
    ids += "," + row.front();
  }
  eventually([&] {
    return root()
        .ask("SELECT 1 FROM information_schema.PROCESSLIST WHERE ID IN (" + ids + ")")
        .empty();
  });
  return sessions.size();
}

std::size_t MysqlStore::sessions_in(const std::string& state) {
  return root()
      .ask("SELECT 1 FROM information_schema.PROCESSLIST WHERE USER='" + account_ +
           "' AND STATE='" + state + "'")
      .size();
}

std::uint64_t MysqlStore::token_of(const std::string& name) {
  const std::string last =
      root().ask_one("SELECT token FROM " + prefix_ + "locks WHERE name=" + hex(name));
  return last.empty() ? 0 : std::stoull(last) - (core::kTokenStride - 1);
}

std::size_t MysqlStore::rows() {
  return std::stoull(root().ask_one("SELECT COUNT(*) FROM " + prefix_ + "locks"));
}

}  // namespace holdfast::test
