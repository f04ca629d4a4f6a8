#include "engines/mysql/mysql_options.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "engine/credentials.h"
#include "engine/query.h"
#include "engines/mysql/mysql_classic_sql.h"
#include "engines/mysql/mysql_session_locks.h"

namespace holdfast::engines {
namespace {

constexpr std::size_t kMaxPrefix = 32;
constexpr std::size_t kMaxName = 56;  // the server's 64, less what we may hang on

bool is_plain_identifier(std::string_view text, std::size_t longest) {
  return !text.empty() && text.size() <= longest &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_';
         });
}

Result<void> check(const MysqlOptions& options) {
  if (options.database.empty()) {
    return fail(ErrorCode::invalid_argument,
                "mysql: needs a database, as in mysql://user@host/database");
  }
  if (options.database.find('\0') != std::string::npos) {
    return fail(ErrorCode::invalid_argument, "a database's name cannot contain a zero byte");
  }
  if (!is_plain_identifier(options.prefix, kMaxPrefix)) {
    return fail(ErrorCode::invalid_argument,
                "the option 'prefix' takes 1 to 32 letters, digits and underscores");
  }
  if (options.timeout < std::chrono::milliseconds{10}) {
    return fail(ErrorCode::invalid_argument, "the option 'timeout' must be at least 10ms");
  }
  return {};
}

// Tables and columns that somebody else may have made.
Result<void> read_classic(MysqlOptions& options, engine::Query& query) {
  static constexpr std::array<std::string_view, 1> kRowColumns{"name"};
  const ClassicForm* form = classic_form(options.strategy);
  const bool by_session = is_session_strategy(options.strategy);
  if (form == nullptr && !by_session) {
    std::string known = "lease";
    for (const ClassicForm& each : classic_forms()) {
      known.append(", ").append(each.strategy);
    }
    for (const std::string_view each : kMysqlSessionStrategies) {
      known.append(", ").append(each);
    }
    return fail(ErrorCode::invalid_argument, "the option 'strategy' takes one of: " + known);
  }
  const auto read = [&](const std::string& option, std::string& name) -> Result<void> {
    name = query.text(option);
    if (!name.empty() && !is_plain_identifier(name, kMaxName)) {
      return fail(ErrorCode::invalid_argument,
                  "the option '" + option + "' takes 1 to 56 letters, digits and underscores");
    }
    return {};
  };
  if (by_session) {
    options.max_sessions = query.number("max_sessions", options.max_sessions, 1, 1000);
  }
  if (options.strategy == "advisory") {
    return {};  // it locks no row
  }
  if (auto good = read("table", options.table); !good) {
    return good;
  }
  const std::span<const std::string_view> columns =
      by_session ? std::span<const std::string_view>{kRowColumns} : form->columns;
  for (const std::string_view column : columns) {
    std::string name;
    if (auto good = read("column_" + std::string{column}, name); !good) {
      return good;
    }
    if (!name.empty()) {
      options.columns.emplace(column, name);
    }
  }
  if (options.strategy == "shedlock") {
    options.lock_at_least = query.duration("lock_at_least", options.lock_at_least);
  }
  if (options.strategy == "status") {
    options.period = query.duration("period", options.period);
  }
  return {};
}

}  // namespace

Result<MysqlOptions> MysqlOptions::from(const engine::Url& url) {
  if (url.hosts.size() > 1) {
    return fail(ErrorCode::invalid_argument,
                "mysql: takes one host; write mysql://user@host:3306/database");
  }
  MysqlOptions options;
  engine::Query query{url};
  if (!url.hosts.empty()) {
    options.host = url.hosts.front().name;
    options.port = url.hosts.front().port != 0 ? url.hosts.front().port : options.port;
  }
  if (options.host.empty()) {
    options.host = "127.0.0.1";
  }
  options.user = url.user;
  options.database = url.path.empty() ? "" : url.path.substr(1);
  auto password = engine::password_for(url, query);
  if (!password) {
    return tl::unexpected{password.error()};
  }
  options.password = *password;
  options.socket = query.text("socket");
  options.prefix = query.text("prefix", options.prefix);
  options.timeout = query.duration("timeout", options.timeout);
  options.max_skew = query.duration("max_skew", options.max_skew);
  options.keep_idle = query.duration("keep_idle", options.keep_idle);
  options.doorbell = query.flag("doorbell", options.doorbell);
  options.returning = query.flag("returning", options.returning);
  options.ca = query.text("ca");
  options.strategy = query.text("strategy", options.strategy);
  if (options.strategy != "lease") {
    if (auto good = read_classic(options, query); !good) {
      return tl::unexpected{good.error()};
    }
  }
  // Nobody can listen between us and this machine's own server.
  const bool is_near = !options.socket.empty() || engine::is_loopback(options.host);
  const bool tls = query.flag("tls", !is_near);
  const bool insecure = query.flag("insecure", false);
  options.tls = !tls ? Tls::off : insecure ? Tls::unverified : Tls::verify;
  if (!tls && !is_near && !insecure) {
    return fail(
        ErrorCode::invalid_argument,
        "another machine is reached with TLS; drop tls=false, or write insecure=true as well");
  }
  if (auto good = query.finish(); !good) {
    return tl::unexpected{good.error()};
  }
  if (auto good = check(options); !good) {
    return tl::unexpected{good.error()};
  }
  return options;
}

}  // namespace holdfast::engines
