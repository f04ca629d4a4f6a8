#include "engines/zookeeper/zookeeper_options.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "engine/credentials.h"
#include "engine/query.h"

namespace holdfast::engines {
namespace {

constexpr std::uint16_t kPort = 2181;
constexpr Duration kShortestSession = std::chrono::milliseconds{100};
constexpr Duration kLongestSession = std::chrono::hours{1};
// A tick of this part of the session time-out is the longest that a server
// allows by default: at least two fit.
constexpr int kTicksInSession = 4;

std::string host_list(const engine::Url& url) {
  std::string list;
  for (const engine::Url::Host& host : url.hosts) {
    list += list.empty() ? "" : ",";
    const bool v6 = host.name.find(':') != std::string::npos;
    list.append(v6 ? "[" + host.name + "]" : host.name);
    list.append(":").append(std::to_string(host.port == 0 ? kPort : host.port));
  }
  return list;
}

Result<std::string> checked_root(std::string path) {
  while (path.ends_with('/')) {
    path.pop_back();
  }
  const bool odd = std::ranges::any_of(path, [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f;
  });
  if (odd || path.find("//") != std::string::npos ||
      (path + "/").find("/./") != std::string::npos ||
      (path + "/").find("/../") != std::string::npos) {
    return fail(ErrorCode::invalid_argument,
                "the path of a zookeeper store must be a plain node path such as /locks");
  }
  return path;
}

}  // namespace

Result<ZookeeperOptions> ZookeeperOptions::from(const engine::Url& url) {
  if (url.hosts.empty()) {
    return fail(ErrorCode::invalid_argument,
                "zookeeper needs a server; write zookeeper://host:2181/locks");
  }
  ZookeeperOptions options;
  options.hosts = host_list(url);
  auto root = checked_root(url.path);
  if (!root) {
    return tl::unexpected{std::move(root.error())};
  }
  options.root = *std::move(root);

  engine::Query query{url};
  options.session_timeout = query.duration("session_timeout", kDefaultTtl);
  options.tick = query.duration(
      "tick",
      std::min<Duration>(std::chrono::seconds{2}, options.session_timeout / kTicksInSession));
  options.timeout = query.duration("timeout", std::chrono::seconds{5});
  using Words = std::array<std::string_view, 2>;
  options.layout =
      query.choice("layout", Words{"curator", "kazoo"}) == 0 ? Layout::curator : Layout::kazoo;
  options.strategy =
      query.choice("strategy", Words{"queue", "simple"}) == 0 ? Strategy::queue : Strategy::simple;
  options.kind = static_cast<Kind>(
      query.choice("kind", std::array<std::string_view, 3>{"either", "mutex", "rw"}));
  options.verbatim = query.choice("names", Words{"escaped", "verbatim"}) == 1;
  const bool insecure = query.flag("insecure", false);
  auto password = engine::password_for(url, query);
  if (auto good = query.finish(); !good) {
    return tl::unexpected{std::move(good.error())};
  }
  if (!password) {
    return tl::unexpected{std::move(password.error())};
  }
  if (!url.user.empty()) {
    options.auth = url.user + ":" + *password;
  }
  if (options.session_timeout < kShortestSession || options.session_timeout > kLongestSession) {
    return fail(ErrorCode::invalid_argument, "session_timeout must be from 100ms to 1h");
  }
  if (options.tick > options.session_timeout / 2) {
    return fail(ErrorCode::invalid_argument, "tick must be at most half the session_timeout");
  }
  if (!insecure && !std::ranges::all_of(url.hosts, [](const auto& host) {
        return engine::is_loopback(host.name);
      })) {
    return fail(ErrorCode::unsupported,
                "Debian's ZooKeeper library has no TLS: write insecure=true if you trust the "
                "network between here and the servers");
  }
  return options;
}

}  // namespace holdfast::engines
