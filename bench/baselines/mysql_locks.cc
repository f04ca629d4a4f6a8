// The locks that MySQL or MariaDB has of its own.
#include <memory>

#include "mysql_connection.h"
#include "native_locks.h"

namespace baselines {
namespace {

NativeLock on(const std::string& port) {
  NativeLock lock;
  lock.connect = [port] {
    return [connection = std::make_shared<MysqlConnection>(port)](const std::string& sql) {
      connection->run(sql);
    };
  };
  return lock;
}

}  // namespace

NativeLock mysql_get_lock(const std::string& port) {
  NativeLock lock = on(port);
  lock.take = [](const std::string& name) -> Statements {
    return {"SELECT GET_LOCK('" + name + "',600)"};
  };
  lock.free = [](const std::string& name) -> Statements {
    return {"SELECT RELEASE_LOCK('" + name + "')"};
  };
  return lock;
}

NativeLock mysql_for_update(const std::string& port) {
  NativeLock lock = on(port);
  lock.prepare = [](const std::vector<std::string>& names) {
    Statements all{"CREATE TABLE IF NOT EXISTS bench_locks (name VARCHAR(64) PRIMARY KEY)",
                   "BEGIN"};
    for (const std::string& name : names) {
      all.push_back("INSERT IGNORE INTO bench_locks VALUES ('" + name + "')");
    }
    all.push_back("COMMIT");
    return all;
  };
  lock.take = [](const std::string& name) -> Statements {
    return {"BEGIN", "SELECT name FROM bench_locks WHERE name='" + name + "' FOR UPDATE"};
  };
  lock.free = [](const std::string&) -> Statements { return {"COMMIT"}; };
  return lock;
}

}  // namespace baselines
