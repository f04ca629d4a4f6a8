#include "support/stores.h"

#include <memory>
#include <stdexcept>
#include <vector>

#include "base/ids.h"
#include "support/postgres_store.h"
#include "support/server.h"

namespace holdfast::test {

std::string store_url(const std::string& engine, const TempDir& dir) {
  const std::string unique = base::Id::random().hex();
  if (engine == "memory") {
    return "memory:" + unique;
  }
  if (engine == "sqlite") {
    return "sqlite:" + (dir / (unique + ".db")).string();
  }
  if (engine == "redis") {
    return "redis://127.0.0.1:" + shared_server_port("redis") + "/0?prefix=" + unique + ":";
  }
  if (engine == "mysql") {
    return "mysql://app@127.0.0.1:" + shared_server_port("mariadb") + "/holdfast?prefix=t_" +
           unique.substr(0, 12) + "_";
  }
  if (engine == "postgres") {
    static std::vector<std::unique_ptr<PostgresStore>> schemas;  // dropped when the tests are over
    return schemas.emplace_back(std::make_unique<PostgresStore>())->url();
  }
  throw std::runtime_error{"no store of " + engine};
}

}  // namespace holdfast::test
