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
  const bool near = std::ranges::all_of(
      url.hosts, [](const auto& host) { return engine::is_loopback(host.name); });
  TlsOptions security{.ca_file = query.text("ca"),
                      .certificate = query.text("cert"),
                      .key = query.text("key"),
                      .protocol = "h2"};
  const bool tls =
      query.flag("tls", !near || !security.ca_file.empty() || !security.certificate.empty());
  const bool insecure = query.flag("insecure", false);
  security.verify = !insecure;
  options.has_identity = !url.user.empty() || !security.certificate.empty();
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
  if (!tls && !near && !insecure) {
    return fail(
        ErrorCode::invalid_argument,
        "another machine is reached with TLS; drop tls=false, or write insecure=true as well");
  }
  if (tls) {
    auto made = Tls::make(security);
    if (!made) {
      return tl::unexpected{std::move(made.error())};
    }
    options.tls = *std::move(made);
  }
  return options;
}

}  // namespace holdfast::engines
