#include "engines/redis/redis_options.h"

#include <array>
#include <charconv>
#include <utility>

#include "engine/credentials.h"
#include "engine/query.h"

namespace holdfast::engines {
namespace {

constexpr std::uint16_t kRedisPort = 6379;
constexpr std::uint16_t kSentinelPort = 26379;
constexpr unsigned kMostDatabases = 10'000;
constexpr unsigned kMostReplicas = 64;
constexpr std::string_view kDefaultPrefix = "holdfast:";
constexpr std::array<std::string_view, 3> kStrategies{"fair", "simple", "redisson"};

// Braces around the name make it the key's hash tag: all that belongs to one
// lock lives on one node. So the name itself must not have any.
constexpr std::string_view kOdd = "{}%";

bool parse_number(std::string_view text, unsigned& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

void append_escaped(std::string& out, std::string_view name) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  for (const char c : name) {
    if (kOdd.find(c) == std::string_view::npos) {
      out.push_back(c);
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += {'%', kDigits[byte >> 4U], kDigits[byte & 15U]};
    }
  }
}

bool unescape(std::string_view text, std::string& name) {
  name.clear();
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned byte = 0;
    if (text[i] != '%') {
      name.push_back(text[i]);
      continue;
    }
    const char* const digits = text.data() + i + 1;
    if (i + 2 >= text.size() || std::from_chars(digits, digits + 2, byte, 16).ptr != digits + 2) {
      return false;
    }
    name.push_back(static_cast<char>(byte));
    i += 2;
  }
  return true;
}

std::string glob_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view{"*?[]\\^-"}.find(c) != std::string_view::npos) {
      out.push_back('\\');
    }
    out.push_back(c);
  }
  return out;
}

// Nobody listens in between, or the user said that he does not mind.
Result<void> check_secrecy(const engine::Url& url, const RedisAccess& access) {
  for (const engine::Url::Host& host : url.hosts) {
    if (!access.tls && !access.insecure && !engine::is_loopback(host.name)) {
      return fail(ErrorCode::invalid_argument,
                  "a Redis on another machine is reached with TLS: write rediss:// (with "
                  "sentinels: tls=true), or insecure=true if the network is trusted");
    }
  }
  return {};
}

// "/3" is a database, "/run/redis.sock" a socket.
Result<void> read_server(const engine::Url& url, RedisOptions& options) {
  std::string_view path = url.path;
  if (path.starts_with('/')) {
    path.remove_prefix(1);
  }
  const bool is_number = path.empty() || parse_number(path, options.access.database);
  if (url.hosts.size() > 1) {
    return fail(ErrorCode::invalid_argument,
                "one Redis has one host; for several write redis+sentinel:// or redlock://");
  }
  if (url.hosts.empty() && !is_number) {
    options.server.socket = url.path;
    return {};
  }
  if (!is_number || options.access.database > kMostDatabases) {
    return fail(ErrorCode::invalid_argument,
                "after the host stands the number of the database, as in redis://localhost/0");
  }
  options.server.host = url.hosts.empty() ? "127.0.0.1" : url.hosts.front().name;
  options.server.port =
      url.hosts.empty() || url.hosts.front().port == 0 ? kRedisPort : url.hosts.front().port;
  return {};
}

Result<void> read_sentinels(const engine::Url& url, RedisOptions& options) {
  for (const engine::Url::Host& host : url.hosts) {
    options.sentinels.push_back(
        {.host = host.name, .port = host.port == 0 ? kSentinelPort : host.port, .socket = ""});
  }
  const std::string_view path = url.path;
  options.master = path.starts_with('/') ? path.substr(1) : path;
  if (const std::size_t slash = options.master.find('/'); slash != std::string::npos) {
    if (!parse_number(std::string_view{options.master}.substr(slash + 1),
                      options.access.database)) {
      options.master.clear();
    }
    options.master.resize(std::min(slash, options.master.size()));
  }
  if (options.sentinels.empty() || options.master.empty()) {
    return fail(ErrorCode::invalid_argument,
                "write the sentinels and what they call the master, as in "
                "redis+sentinel://a:26379,b:26379,c:26379/mymaster/0");
  }
  return {};
}

}  // namespace

std::string RedisAddress::text() const {
  if (!socket.empty()) {
    return socket;
  }
  const bool brackets = host.find(':') != std::string::npos;
  return (brackets ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<RedisOptions> RedisOptions::from(const engine::Url& url) {
  RedisOptions options;
  engine::Query query{url};
  auto read =
      url.scheme == "redis+sentinel" ? read_sentinels(url, options) : read_server(url, options);
  if (!read) {
    return tl::unexpected{read.error()};
  }
  RedisAccess& access = options.access;
  access.tls = query.flag("tls", url.scheme == "rediss");
  access.insecure = query.flag("insecure", false);
  access.ca_file = query.text("ca");
  access.timeout = query.duration("timeout", access.timeout);
  access.user = url.user;
  access.database =
      static_cast<unsigned>(query.number("database", access.database, 0, kMostDatabases));
  options.strategy = static_cast<RedisStrategyKind>(query.choice("strategy", kStrategies));
  const bool fair = options.strategy == RedisStrategyKind::fair;
  options.prefix = query.text("prefix", fair ? kDefaultPrefix : "");
  options.wait_replicas = static_cast<unsigned>(query.number("wait_replicas", 0, 0, kMostReplicas));
  auto password = engine::password_for(url, query);
  if (!password) {
    return tl::unexpected{password.error()};
  }
  access.password = *std::move(password);
  if (auto good = query.finish().and_then([&] { return check_secrecy(url, access); }); !good) {
    return tl::unexpected{good.error()};
  }
  if (access.timeout <= Duration::zero()) {
    return fail(ErrorCode::invalid_argument, "the option 'timeout' must be longer than nothing");
  }
  if (options.prefix.find_first_of("{}") != std::string::npos) {
    return fail(ErrorCode::invalid_argument, "the option 'prefix' takes no braces");
  }
  return options;
}

std::string RedisOptions::key(std::string_view name) const {
  std::string key = prefix;
  if (strategy == RedisStrategyKind::fair) {
    key.push_back('{');
    append_escaped(key, name);
    key.push_back('}');
  } else {
    key.append(name);  // as the others spell it
  }
  return key;
}

bool RedisOptions::name_of(std::string_view key, std::string& name) const {
  if (!key.starts_with(prefix)) {
    return false;
  }
  key.remove_prefix(prefix.size());
  if (strategy != RedisStrategyKind::fair) {
    name = key;
    return !name.empty() && name.size() <= kMaxNameBytes;
  }
  if (key.size() < 3 || key.front() != '{' || key.back() != '}') {
    return false;
  }
  return unescape(key.substr(1, key.size() - 2), name);
}

std::string RedisOptions::pattern(std::string_view name_prefix) const {
  std::string start = prefix;
  if (strategy == RedisStrategyKind::fair) {
    start.push_back('{');
    append_escaped(start, name_prefix);
  } else {
    start.append(name_prefix);
  }
  return glob_escaped(start) + "*";
}

}  // namespace holdfast::engines
