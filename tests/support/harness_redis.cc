#include <memory>

#include "support/harness.h"
#include "support/raw_redis.h"
#include "support/server.h"

namespace holdfast::test {

namespace {

// Redis refuses writes because it misses a replica; reads go on.
class NoWrites : public Outage {
 public:
  explicit NoWrites(const std::string& port) : redis_{port} {
    redis_.ask({"CONFIG", "SET", "min-replicas-to-write", "1"});
  }
  ~NoWrites() override { redis_.ask({"CONFIG", "SET", "min-replicas-to-write", "0"}); }

 private:
  RawRedis redis_;
};

class RedisHarness : public Harness {
 public:
  explicit RedisHarness(std::string strategy) : strategy_{std::move(strategy)} {
    if (needs_own_server()) {
      own_ = std::make_unique<PrivateServer>("redis");
    }
    port_ = own_ ? std::to_string(own_->port()) : shared_server_port("redis");
  }

  std::string url() const override {
    return "redis://127.0.0.1:" + port_ + "/0?strategy=" + strategy_ + "&prefix=" + name_prefix();
  }
  std::string impatient_url(const std::string& timeout) const override {
    return url() + "&timeout=" + timeout;
  }
  std::unique_ptr<Outage> begin_outage() override { return std::make_unique<NoWrites>(port_); }

 private:
  const std::string strategy_;
  std::unique_ptr<PrivateServer> own_;
  std::string port_;
};

}  // namespace

namespace {

constexpr Claims kUnfair{.token = false, .fair = false, .shared = false, .permits = false};

std::optional<std::string> missing_redis() {
  return missing_program("redis-server");
}

}  // namespace

HarnessEntry redis_fair_harness() {
  return {
      .engine = "redis",
      .strategy = "fair",
      .claims = {.values = true, .upgrade = true, .transfer = true},
      .make = []() -> std::unique_ptr<Harness> { return std::make_unique<RedisHarness>("fair"); },
      .missing = &missing_redis};
}

HarnessEntry redis_simple_harness() {
  Claims claims = kUnfair;
  claims.event = false;
  return {
      .engine = "redis",
      .strategy = "simple",
      .claims = claims,
      .make = []() -> std::unique_ptr<Harness> { return std::make_unique<RedisHarness>("simple"); },
      .missing = &missing_redis};
}

HarnessEntry redis_redisson_harness() {
  return {.engine = "redis",
          .strategy = "redisson",
          .claims = kUnfair,
          .make = []() -> std::unique_ptr<Harness> {
            return std::make_unique<RedisHarness>("redisson");
          },
          .missing = &missing_redis};
}

}  // namespace holdfast::test
