#include "engines/redlock/redlock_options.h"

#include <algorithm>
#include <charconv>

#include "engine/batch.h"
#include "engine/credentials.h"
#include "engine/query.h"
#include "engines/redlock/redlock_script.h"

namespace holdfast::engines {
namespace {

constexpr std::uint16_t kRedisPort = 6379;
constexpr std::size_t kFewestNodes = 3;
constexpr std::size_t kMostNodes = 9;
constexpr unsigned kMostDatabases = 10'000;
constexpr Duration kShortestNodeTimeout = std::chrono::milliseconds{1};

Result<void> check(const engine::Url& url, const RedlockOptions& options) {
  if (options.nodes.size() < kFewestNodes || options.nodes.size() > kMostNodes) {
    return fail(ErrorCode::invalid_argument,
                "redlock:// takes 3 to 9 independent Redis servers, best 5, as in "
                "redlock://a:6379,b:6379,c:6379,d:6379,e:6379/0");
  }
  for (std::size_t i = 0; i < options.nodes.size(); ++i) {
    if (std::count(options.nodes.begin(), options.nodes.end(), options.nodes[i]) > 1) {
      return fail(ErrorCode::invalid_argument, "a node is named twice: it would vote twice");
    }
    if (!options.access.tls && !options.access.insecure &&
        !engine::is_loopback(options.nodes[i].host)) {
      return fail(ErrorCode::invalid_argument,
                  "nodes on other machines are reached with tls=true, or with insecure=true if "
                  "the network is trusted");
    }
  }
  if (url.path.size() > 1 && url.path.find_first_not_of("0123456789", 1) != std::string::npos) {
    return fail(ErrorCode::invalid_argument, "after the nodes stands the number of the database");
  }
  if (options.max_ttl < kMinTtl || options.max_ttl > kMaxTtl ||
      options.node_timeout < kShortestNodeTimeout || options.access.timeout <= Duration::zero()) {
    return fail(ErrorCode::invalid_argument,
                "max_ttl is 20ms to a week; node_timeout and timeout are longer than nothing");
  }
  return {};
}

}  // namespace

Result<RedlockOptions> RedlockOptions::from(const engine::Url& url) {
  RedlockOptions options;
  engine::Query query{url};
  for (const engine::Url::Host& host : url.hosts) {
    options.nodes.push_back(
        {.host = host.name, .port = host.port == 0 ? kRedisPort : host.port, .socket = ""});
  }
  RedisAccess& access = options.access;
  access.user = url.user;
  access.tls = query.flag("tls", false);
  access.insecure = query.flag("insecure", false);
  access.ca_file = query.text("ca");
  access.timeout = query.duration("timeout", access.timeout);
  unsigned path_database = 0;
  if (url.path.size() > 1) {
    std::from_chars(url.path.data() + 1, url.path.data() + url.path.size(), path_database);
  }
  access.database =
      static_cast<unsigned>(query.number("database", path_database, 0, kMostDatabases));
  options.prefix = query.text("prefix");
  options.node_timeout = query.duration("node_timeout", options.node_timeout);
  options.max_ttl = query.duration("max_ttl", options.max_ttl);
  options.first_start = query.flag("first_start", false);
  auto password = engine::password_for(url, query);
  if (!password) {
    return tl::unexpected{password.error()};
  }
  access.password = *std::move(password);
  if (auto good = query.finish().and_then([&] { return check(url, options); }); !good) {
    return tl::unexpected{good.error()};
  }
  return options;
}

Result<void> RedlockOptions::check_name(std::string_view name) {
  if (is_redlock_key(name)) {
    return fail(ErrorCode::invalid_argument,
                "names that begin with holdfast:redlock, holdfast:token: or holdfast:waiters: are "
                "keys that the nodes keep for themselves: choose another");
  }
  return engine::check_name(name);
}

RedisOptions RedlockOptions::node(std::size_t which) const {
  RedisOptions one;
  one.server = nodes[which];
  one.access = access;
  one.strategy = RedisStrategyKind::simple;
  one.prefix = prefix;
  return one;
}

}  // namespace holdfast::engines
