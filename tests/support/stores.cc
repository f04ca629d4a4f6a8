#include "support/stores.h"

#include <memory>
#include <stdexcept>
#include <vector>

#include "base/ids.h"
#include "support/server.h"
#ifndef HOLDFAST_WITHOUT_POSTGRES
#include "support/postgres_store.h"
#endif

namespace holdfast::test {

std::string store_url(const std::string& engine, const TempDir& dir) {
  const std::string unique = base::Id::random().hex();
  if (engine == "memory") {
    return "memory:" + unique;
  }
  if (engine == "sqlite") {
    return "sqlite:" + (dir / (unique + ".db")).string();
  }
#ifndef HOLDFAST_WITHOUT_REDIS
  if (engine == "redis") {
    return "redis://127.0.0.1:" + shared_server_port("redis") + "/0?prefix=" + unique + ":";
  }
#endif
#ifndef HOLDFAST_WITHOUT_MYSQL
  if (engine.starts_with("mysql")) {
    return "mysql://app@127.0.0.1:" + shared_server_port("mariadb") + "/holdfast?prefix=t_" +
           unique.substr(0, 12) + "_" + (engine == "mysql" ? "" : "&returning=false");
  }
#endif
#ifndef HOLDFAST_WITHOUT_POSTGRES
  if (engine == "postgres") {
    static std::vector<std::unique_ptr<PostgresStore>> schemas;  // dropped when the tests are over
    return schemas.emplace_back(std::make_unique<PostgresStore>())->url();
  }
#endif
  throw std::runtime_error{"no store of " + engine};
}

std::vector<std::string> engines_of_the_record() {
  std::vector<std::string> all{"memory", "sqlite"};
#ifndef HOLDFAST_WITHOUT_REDIS
  all.emplace_back("redis");
#endif
#ifndef HOLDFAST_WITHOUT_MYSQL
  all.emplace_back("mysql");
  all.emplace_back("mysql_without_returning");
#endif
#ifndef HOLDFAST_WITHOUT_POSTGRES
  all.emplace_back("postgres");
#endif
  return all;
}

}  // namespace holdfast::test
