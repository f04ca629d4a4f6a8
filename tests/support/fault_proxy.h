#pragma once

#include <memory>
#include <stdexcept>

#include "proof/fault_proxy.h"

namespace holdfast::test {

using proof::FaultProxy;
using proof::Swallow;
using proof::Way;

// A line to a server of this machine that the test may break.
inline std::unique_ptr<FaultProxy> proxy_to(std::uint16_t port) {
  auto proxy = FaultProxy::start("127.0.0.1", port);
  if (!proxy) throw std::runtime_error{proxy.error().text};
  return std::move(*proxy);
}

}  // namespace holdfast::test
