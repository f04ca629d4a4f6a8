#pragma once

#include <holdfast/error.h>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proof/fault_proxy.h"

namespace holdfast::command::torture {

struct Endpoint {
  std::string host;
  std::uint16_t port = 0;
};

// A store URL, taken apart at its hosts.
struct StoreAddress {
  std::string head;  // "mysql://user:secret@"
  std::vector<Endpoint> endpoints;
  std::string tail;  // "/db?strategy=lease"

  std::string with(const std::vector<Endpoint>& others) const;
};

// Nothing if the store is not reached over TCP, or is by a line that cannot be
// intercepted: TLS would notice, and so would a Unix socket.
std::optional<StoreAddress> address_of(std::string_view url);

// All connections of the workers, through fault proxies: one a host.
class Line {
 public:
  static Result<Line> to(const std::string& url);

  const std::string& url() const noexcept { return url_; }  // for the workers
  bool can_be_broken() const noexcept { return !proxies_.empty(); }
  const std::vector<std::unique_ptr<proof::FaultProxy>>& proxies() const noexcept {
    return proxies_;
  }

 private:
  std::string url_;
  std::vector<std::unique_ptr<proof::FaultProxy>> proxies_;
};

}  // namespace holdfast::command::torture
