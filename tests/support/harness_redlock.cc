#include <memory>
#include <vector>

#include "support/harness.h"
#include "support/raw_redis.h"
#include "support/server.h"

namespace holdfast::test {

namespace {

constexpr int kNodes = 3;

// All nodes refuse writes; reads go on.
class NoWrites : public Outage {
 public:
  explicit NoWrites(std::vector<std::string> ports) : ports_{std::move(ports)} { set("1"); }
  ~NoWrites() override { set("0"); }

 private:
  void set(const std::string& replicas) {
    for (const std::string& port : ports_) {
      RawRedis{port}.ask({"CONFIG", "SET", "min-replicas-to-write", replicas});
    }
  }
  const std::vector<std::string> ports_;
};

class RedlockHarness : public Harness {
 public:
  RedlockHarness() {
    for (int i = 1; i <= kNodes; ++i) {
      if (needs_own_server()) {
        own_.push_back(std::make_unique<PrivateServer>("redis"));
        ports_.push_back(std::to_string(own_.back()->port()));
      } else {
        ports_.push_back(shared_server_port("redis-" + std::to_string(i)));
      }
    }
  }

  // Shared servers have been there for a while, or know nothing of this test.
  std::string url() const override {
    std::string hosts;
    for (const std::string& port : ports_) {
      hosts += (hosts.empty() ? "" : ",") + std::string{"127.0.0.1:"} + port;
    }
    return "redlock://" + hosts +
           "/0?first_start=true&max_ttl=168h&node_timeout=2s&prefix=" + name_prefix();
  }
  std::string impatient_url(const std::string& timeout) const override {
    return url() + "&timeout=" + timeout;
  }
  Duration shortest_ttl() const override { return std::chrono::milliseconds{150}; }
  std::unique_ptr<Outage> begin_outage() override { return std::make_unique<NoWrites>(ports_); }

 private:
  std::vector<std::unique_ptr<PrivateServer>> own_;
  std::vector<std::string> ports_;
};

}  // namespace

HarnessEntry redlock_harness() {
  return {.engine = "redlock",
          .strategy = "",
          .claims = {.fair = false, .shared = false, .permits = false, .event = false},
          .make = []() -> std::unique_ptr<Harness> { return std::make_unique<RedlockHarness>(); },
          .missing = [] { return missing_program("redis-server"); }};
}

}  // namespace holdfast::test
