#include "engines/etcd/etcd_options.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "engine/credentials.h"
#include "engine/query.h"

namespace holdfast::engines {
namespace {

constexpr std::uint16_t kPort = 2379;

}  // namespace

Result<EtcdOptions> EtcdOptions::from(const engine::Url& url) {
  if (url.hosts.empty()) {
    return fail(ErrorCode::invalid_argument, "etcd needs a server; write etcd://host:2379/locks");
  }
  EtcdOptions options;
  options.hosts = url.hosts;
  for (engine::Url::Host& host : options.hosts) {
    host.port = host.port == 0 ? kPort : host.port;
  }
  options.prefix = url.path.starts_with('/') ? url.path.substr(1) : url.path;
  if (!options.prefix.empty() && !options.prefix.ends_with('/')) {
    options.prefix.push_back('/');
  }
  options.user = url.user;

  engine::Query query{url};
  options.timeout = query.duration("timeout", std::chrono::seconds{5});
  options.verbatim =
      query.choice("names", std::array<std::string_view, 2>{"escaped", "verbatim"}) == 1;
  const bool insecure = query.flag("insecure", false);
  auto password = engine::password_for(url, query);
  if (auto good = query.finish(); !good) {
    return tl::unexpected{std::move(good.error())};
  }
  if (!password) {
    return tl::unexpected{std::move(password.error())};
  }
  options.password = *std::move(password);
  if (options.timeout <= Duration::zero()) {
    return fail(ErrorCode::invalid_argument, "timeout must be longer than zero");
  }
  const auto is_here = [](const auto& host) { return engine::is_loopback(host.name); };
  if (!insecure && !std::ranges::all_of(url.hosts, is_here)) {
    return fail(ErrorCode::unsupported,
                "this engine speaks to etcd without TLS yet: write insecure=true if you trust the "
                "network between here and the servers, or reach etcd through a TLS tunnel");
  }
  return options;
}

}  // namespace holdfast::engines
