#include "engines/postgres/postgres_options.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "engine/credentials.h"
#include "engine/query.h"
#include "engines/postgres/postgres_session.h"

namespace holdfast::engines::postgres {
namespace {

using engine::Query;
using engine::Url;

// What libpq understands and we hand on as it is.
constexpr std::array<std::string_view, 22> kHandedOn{"host",
                                                     "hostaddr",
                                                     "port",
                                                     "user",
                                                     "dbname",
                                                     "service",
                                                     "passfile",
                                                     "sslmode",
                                                     "sslrootcert",
                                                     "sslcert",
                                                     "sslkey",
                                                     "sslcrl",
                                                     "sslcrldir",
                                                     "channel_binding",
                                                     "gssencmode",
                                                     "krbsrvname",
                                                     "options",
                                                     "keepalives",
                                                     "keepalives_idle",
                                                     "tcp_user_timeout",
                                                     "application_name",
                                                     "target_session_attrs"};

constexpr std::array<std::string_view, 4> kStrategies{"lease", "row", "advisory", "shedlock"};
constexpr std::array<std::string_view, 4> kPoolers{"detect", "none", "session", "transaction"};
constexpr std::array<std::string_view, 2> kScopes{"session", "transaction"};

constexpr const char* kSystemRoots = "/etc/ssl/certs/ca-certificates.crt";

// It goes into statements as it is.
bool is_plain_identifier(std::string_view word) {
  return !word.empty() && word.size() <= 48 && (word[0] < '0' || word[0] > '9') &&
         std::all_of(word.begin(), word.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
         });
}

void take_hosts(const Url& url, std::map<std::string, std::string>& connection) {
  std::string hosts;
  std::string ports;
  bool any_port = false;
  for (const Url::Host& host : url.hosts) {
    hosts += (hosts.empty() ? "" : ",") + host.name;
    ports += (&host == url.hosts.data() ? "" : ",") +
             (host.port == 0 ? std::string{} : std::to_string(host.port));
    any_port = any_port || host.port != 0;
  }
  if (!hosts.empty()) {
    connection["host"] = hosts;
  }
  if (any_port) {
    connection["port"] = ports;
  }
}

bool stays_on_this_machine(const std::string& hosts) {
  std::string_view rest = hosts;
  while (true) {
    const std::string_view host = rest.substr(0, rest.find(','));
    if (!host.empty() && host[0] != '/' && host[0] != '@' && !engine::is_loopback(host)) {
      return false;
    }
    if (host.size() == rest.size()) {
      return true;
    }
    rest.remove_prefix(host.size() + 1);
  }
}

// libpq by itself takes whatever encryption the server offers, and believes
// any certificate.
void require_verification(std::map<std::string, std::string>& connection) {
  const auto given = [&](const char* keyword, const char* variable) {
    return connection.contains(keyword) || std::getenv(variable) != nullptr;
  };
  const auto hosts = [&](const char* keyword, const char* variable) -> std::string {
    const char* from_environment = std::getenv(variable);
    return connection.contains(keyword)  ? connection[keyword]
           : from_environment != nullptr ? from_environment
                                         : "";
  };
  // The address is where it connects to, whatever the name.
  if (given("sslmode", "PGSSLMODE") || given("service", "PGSERVICE") ||
      (stays_on_this_machine(hosts("host", "PGHOST")) &&
       stays_on_this_machine(hosts("hostaddr", "PGHOSTADDR")))) {
    return;
  }
  connection["sslmode"] = "verify-full";
  const char* home = std::getenv("HOME");
  const std::string own = std::string{home == nullptr ? "" : home} + "/.postgresql/root.crt";
  if (!given("sslrootcert", "PGSSLROOTCERT") && access(own.c_str(), R_OK) != 0) {
    connection["sslrootcert"] = kSystemRoots;
  }
}

Result<std::map<std::string, std::string>> connection_of(const Url& url, Query& query) {
  std::map<std::string, std::string> connection;
  if (url.hosts.empty() && url.path.find('=') != std::string::npos) {
    auto parsed = Session::parse_keywords(url.path);
    if (!parsed) {
      return parsed;
    }
    connection = *std::move(parsed);
  } else {
    take_hosts(url, connection);
    if (const std::string name = url.path.substr(url.path.starts_with('/') ? 1 : 0);
        !name.empty()) {
      connection["dbname"] = name;
    }
  }
  if (!url.user.empty()) {
    connection["user"] = url.user;
  }
  for (const std::string_view keyword : kHandedOn) {
    if (auto value = query.text(keyword); !value.empty()) {
      connection[std::string{keyword}] = std::move(value);
    }
  }
  auto password = engine::password_for(url, query);
  if (!password) {
    return tl::unexpected{password.error()};
  }
  if (!password->empty()) {
    connection["password"] = *std::move(password);
  }
  connection.try_emplace("application_name", "holdfast");
  if (connection["host"].find(',') != std::string::npos) {
    // Of several servers only the primary can grant a lock.
    connection.try_emplace("target_session_attrs", "read-write");
  }
  require_verification(connection);
  std::erase_if(connection, [](const auto& entry) { return entry.second.empty(); });
  return connection;
}

}  // namespace

Result<Options> Options::from(const Url& url) {
  Options options;
  Query query{url};
  auto connection = connection_of(url, query);
  if (!connection) {
    return tl::unexpected{connection.error()};
  }
  options.connection = *std::move(connection);
  options.strategy = static_cast<Strategy>(query.choice("strategy", kStrategies));
  options.pooler = static_cast<Pooler>(query.choice("pooler", kPoolers));
  options.schema =
      query.text("schema", options.strategy == Strategy::shedlock ? "public" : options.schema);
  options.table = query.text("table");
  options.timeout = query.duration("timeout", options.timeout);
  options.lock_at_least = query.duration("lock_at_least", options.lock_at_least);
  options.scope = static_cast<Scope>(query.choice("scope", kScopes));
  options.max_sessions = query.number("max_sessions", options.max_sessions, 1, 1000);
  if (auto good = query.finish(); !good) {
    return tl::unexpected{good.error()};
  }
  if (options.timeout < std::chrono::milliseconds{1}) {
    return fail(ErrorCode::invalid_argument, "the option 'timeout' must be at least 1ms");
  }
  if (!is_plain_identifier(options.schema) ||
      (!options.table.empty() && !is_plain_identifier(options.table))) {
    return fail(ErrorCode::invalid_argument,
                "'schema' and 'table' take a-z, 0-9 and _, starting with a letter");
  }
  return options;
}

}  // namespace holdfast::engines::postgres
