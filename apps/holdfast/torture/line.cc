#include "torture/line.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace holdfast::command::torture {
namespace {

constexpr std::array<std::pair<std::string_view, std::uint16_t>, 8> kPorts{{
    {"mysql", 3306},
    {"mariadb", 3306},
    {"postgres", 5432},
    {"postgresql", 5432},
    {"redis", 6379},
    {"redlock", 6379},
    {"zookeeper", 2181},
    {"etcd", 2379},
}};

std::optional<std::uint16_t> usual_port(std::string_view scheme) {
  for (const auto& [known, port] : kPorts) {
    if (known == scheme) {
      return port;
    }
  }
  return std::nullopt;
}

std::optional<Endpoint> endpoint_of(std::string_view text, std::uint16_t usual) {
  Endpoint endpoint{.host = std::string{text}, .port = usual};
  const std::size_t bracket = text.rfind(']');
  const std::size_t colon = text.rfind(':');
  if (colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket)) {
    const std::string_view digits = text.substr(colon + 1);
    const auto [end, failure] =
        std::from_chars(digits.data(), digits.data() + digits.size(), endpoint.port);
    if (failure != std::errc{} || end != digits.data() + digits.size()) {
      return std::nullopt;
    }
    endpoint.host = text.substr(0, colon);
  }
  if (endpoint.host.size() > 2 && endpoint.host.front() == '[' && endpoint.host.back() == ']') {
    endpoint.host = endpoint.host.substr(1, endpoint.host.size() - 2);
  }
  return endpoint.host.empty() ? std::nullopt : std::optional{endpoint};
}

}  // namespace

std::string StoreAddress::with(const std::vector<Endpoint>& others) const {
  std::string hosts;
  for (const Endpoint& other : others) {
    hosts += (hosts.empty() ? "" : ",") + other.host + ":" + std::to_string(other.port);
  }
  return head + hosts + tail;
}

std::optional<StoreAddress> address_of(std::string_view url) {
  const std::size_t scheme_end = url.find("://");
  if (scheme_end == std::string_view::npos) {
    return std::nullopt;
  }
  const auto port = usual_port(url.substr(0, scheme_end));
  const std::size_t start = scheme_end + 3;
  std::size_t end = url.find_first_of("/?#", start);
  end = end == std::string_view::npos ? url.size() : end;
  const std::string_view tail = url.substr(end);
  if (!port || tail.find("tls") != std::string_view::npos ||
      tail.find("socket=") != std::string_view::npos) {
    return std::nullopt;
  }
  const std::size_t at = url.substr(start, end - start).rfind('@');
  const std::size_t hosts = at == std::string_view::npos ? start : start + at + 1;
  StoreAddress address{std::string{url.substr(0, hosts)}, {}, std::string{tail}};
  for (std::size_t begin = hosts; begin <= end;) {
    const std::size_t comma = std::min(url.find(',', begin), end);
    const auto endpoint = endpoint_of(url.substr(begin, comma - begin), *port);
    if (!endpoint) {
      return std::nullopt;
    }
    address.endpoints.push_back(*endpoint);
    begin = comma + 1;
  }
  return address;
}

Result<Line> Line::to(const std::string& url) {
  Line line;
  line.url_ = url;
  const auto address = address_of(url);
  if (!address) {
    return line;
  }
  std::vector<Endpoint> through;
  for (const Endpoint& endpoint : address->endpoints) {
    auto proxy = proof::FaultProxy::start(endpoint.host, endpoint.port);
    if (!proxy) {
      return tl::unexpected{std::move(proxy.error())};
    }
    through.push_back({"127.0.0.1", (*proxy)->port()});
    line.proxies_.push_back(std::move(*proxy));
  }
  line.url_ = address->with(through);
  return line;
}

}  // namespace holdfast::command::torture
