#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/driver.h"
#include "engine/registry.h"
#include "engines/redis/redis_bell.h"
#include "engines/redis/redis_connector.h"
#include "engines/redis/redis_holds.h"
#include "engines/redis/redis_options.h"
#include "engines/redis/redis_strategy.h"
#include "engines/redis/redis_turn.h"

namespace holdfast::engines {

// redis://, rediss:// and redis+sentinel://. One connection for commands, one
// that listens; a third, while somebody looks at locks.
engine::Registration redis_registration();
engine::Registration rediss_registration();
engine::Registration redis_sentinel_registration();

class RedisEngine : public engine::Engine {
 public:
  static Result<std::unique_ptr<engine::Engine>> open(const engine::Url& url,
                                                      const engine::EngineOptions& client);
  ~RedisEngine() override;

  const Capabilities& capabilities() const noexcept override { return strategy_->capabilities(); }
  void submit(std::size_t lane, std::span<const core::Command> batch, engine::Patience patience,
              engine::Done done) override;
  base::Duration ride() const noexcept override { return std::chrono::microseconds{500}; }
  int doorbell_fd() const noexcept override;
  std::vector<engine::Ring> answer_doorbell() override;
  bool may_have_changed() override;
  void tidy() override;
  Result<std::vector<LockInfo>> list(std::string_view prefix) override;
  Result<LockInfo> show(std::string_view name) override;
  Result<std::optional<core::Value>> load_value(std::string_view name) override;
  Result<core::ValueOutcome> write_value(const core::ValueWrite& write) override;
  Result<std::vector<core::NamedValue>> list_values(std::string_view prefix) override;
  Result<void> init() override;
  Result<std::string> init_script() override;
  std::vector<Finding> doctor() override;

 private:
  RedisEngine(const RedisOptions& options, const engine::EngineOptions& client,
              std::shared_ptr<RedisTls> tls, std::unique_ptr<RedisStrategy> strategy);

  bool inherited() const noexcept;
  Result<RespValue> ask(const std::string& command);
  Result<std::vector<std::string>> scan(const std::string& pattern);
  Result<std::vector<LockInfo>> describe(std::span<const std::string> keys);
  RedisOptions value_names() const;  // keys of values in place of keys of locks
  Result<RespValue> call_on_value(const core::ValueWrite* write, const std::string& key);
  void check_clock(std::vector<Finding>& findings);
  Finding check_scripts();

  const RedisOptions options_;
  const engine::EngineOptions client_;
  const std::uint64_t generation_;
  const std::unique_ptr<RedisStrategy> strategy_;

  RedisConnector connector_;
  RedisTurn turn_;
  std::unique_ptr<RedisBell> bell_;
  RedisHolds holds_;  // behind sentinels

  std::mutex desk_mutex_;
  RedisConnector desk_;  // for those who look

  std::optional<engine::Driver> driver_{std::in_place};
};

}  // namespace holdfast::engines
