#include "support/postgres_store.h"

#include <holdfast/client.h>
#include <filesystem>
#include <stdexcept>

#include "base/ids.h"
#include "support/server.h"

namespace holdfast::test {

PostgresStore::PostgresStore() : PostgresStore{shared_server_port("postgres")} {}

PostgresStore::PostgresStore(const std::string& port, std::string strategy)
    : port_{port},
      strategy_{std::move(strategy)},
      schema_{"t_" + base::Id::random().hex().substr(0, 16)} {
  sql().run("CREATE SCHEMA " + schema_);
  auto client = Client::open(url());
  if (!client) {
    throw std::runtime_error{client.error().text};
  }
  if (auto made = client->init(); !made) {
    throw std::runtime_error{made.error().text};
  }
}

PostgresStore::~PostgresStore() {
  try {
    sql().run("DROP SCHEMA " + schema_ + " CASCADE");
  } catch (const std::exception&) {
    // The server is gone, and the schema with it.
  }
}

std::string PostgresStore::url(const std::string& options) const {
  return url_of("postgres", options);
}

std::string PostgresStore::url_of(const std::string& user, const std::string& options) const {
  return "postgres://" + user + "@127.0.0.1:" + port_ + "/postgres?strategy=" + strategy_ +
         "&schema=" + schema_ + (options.empty() ? "" : "&" + options);
}

std::string PostgresStore::conninfo() const {
  return "host=127.0.0.1 user=postgres dbname=postgres port=" + port_;
}

RawPostgres& PostgresStore::sql() {
  if (!sql_) {
    sql_.emplace(conninfo());
  }
  return *sql_;
}

std::optional<std::string> missing_postgres() {
  std::error_code ignored;
  for (const auto& version : std::filesystem::directory_iterator{"/usr/lib/postgresql", ignored}) {
    if (std::filesystem::exists(version.path() / "bin" / "postgres")) {
      return std::nullopt;
    }
  }
  return "postgresql is not installed";
}

}  // namespace holdfast::test
