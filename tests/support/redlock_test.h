#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "support/engine_driver.h"
#include "support/eventually.h"
#include "support/needs.h"
#include "support/raw_redis.h"
#include "support/server.h"

namespace holdfast::test {

// Three nodes of the test's own.
class Redlock : public ::testing::Test {
 protected:
  void SetUp() override {
    HOLDFAST_SKIP_IF_MISSING(missing_program("redis-server"));
    for (auto& node : nodes_) {
      node = std::make_unique<PrivateServer>("redis");
    }
  }

  static std::string url_of(const std::array<std::uint16_t, 3>& ports, const std::string& options) {
    std::string hosts;
    for (const std::uint16_t port : ports) {
      hosts += (hosts.empty() ? "" : ",") + std::string{"127.0.0.1:"} + std::to_string(port);
    }
    return "redlock://" + hosts + "/0?" + options;
  }
  std::string bare_url(const std::string& options) const {
    return url_of({nodes_[0]->port(), nodes_[1]->port(), nodes_[2]->port()}, options);
  }
  std::string url(const std::string& options) const {
    return bare_url("node_timeout=3s&timeout=5s&" + options);
  }
  std::unique_ptr<engine::Engine> open(const std::string& options, std::uint32_t session = 1) {
    return open_engine(url(options), session);
  }
  RawRedis raw(std::size_t node) { return RawRedis{std::to_string(nodes_[node]->port())}; }

  // What a node's INFO says under that word, followed by the number.
  static std::uint64_t told(RawRedis& node, const char* section, const std::string& word) {
    const std::string info = node.ask({"INFO", section}).text;
    const auto at = info.find(word);
    return at == std::string::npos ? 0 : std::stoull(info.substr(at + word.size()));
  }
  // A majority is waited for, the others hear of it in their own time.
  bool comes_free(std::size_t node, const char* key) {
    return eventually([&] { return raw(node).ask({"EXISTS", key}).integer == 0; });
  }

  static core::Acquire lasting(std::uint32_t number, base::Duration ttl) {
    core::Acquire made = try_acquire(number);
    made.ttl = ttl;
    made.window = ttl;
    return made;
  }
  core::Outcome until_granted(engine::Engine& engine, const core::Acquire& request) {
    core::Outcome outcome;
    EXPECT_TRUE(eventually([&] {
      outcome = submit(engine, "x", request);
      return outcome.status == core::Status::granted;
    }));
    return outcome;
  }

  std::array<std::unique_ptr<PrivateServer>, 3> nodes_;
};

}  // namespace holdfast::test
