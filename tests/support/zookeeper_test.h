#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

#include "base/ids.h"
#include "engine/engine.h"
#include "support/fault_proxy.h"
#include "support/needs.h"
#include "support/quorum_servers.h"
#include "support/server.h"

namespace holdfast::test {

// Locks of its own on the shared ZooKeeper, and lines to it that can be broken.
class ZookeeperTest : public ::testing::Test {
 protected:
  void SetUp() override {
    HOLDFAST_SKIP_IF_MISSING(missing_quorum("zookeeper"));
    port_ = shared_server_port("zookeeper");
  }
  std::string url(const std::string& more = "", const std::string& user = "") const {
    return url_at(port_, more, user);
  }
  std::string url_at(const std::string& port, const std::string& more = "",
                     const std::string& user = "") const {
    return "zookeeper://" + user + "127.0.0.1:" + port + root_ +
           "?session_timeout=10s&tick=200ms&timeout=10s" + more;
  }
  std::unique_ptr<FaultProxy> proxy() const {
    return proxy_to(static_cast<std::uint16_t>(std::stoi(port_)));
  }
  static std::string port_of(const FaultProxy& proxy) { return std::to_string(proxy.port()); }
  static std::size_t nodes_of(engine::Engine& engine, const std::string& name) {
    const auto info = engine.show(name).value();
    return info.holders.size() + info.queue.size();
  }

  std::string port_;
  const std::string root_ = "/t-" + base::Id::random().hex().substr(0, 12);
};

}  // namespace holdfast::test
