#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/driver.h"
#include "engine/registry.h"
#include "engines/redlock/redlock_hints.h"
#include "engines/redlock/redlock_options.h"
#include "engines/redlock/redlock_turn.h"

namespace holdfast::engines {

// redlock://a,b,c: locks by a majority of independent Redis servers.
engine::Registration redlock_registration();

class RedlockEngine : public engine::Engine {
 public:
  static Result<std::unique_ptr<engine::Engine>> open(const engine::Url& url,
                                                      const engine::EngineOptions& client);

  const Capabilities& capabilities() const noexcept override { return capabilities_; }
  void submit(std::size_t lane, std::span<const core::Command> batch, engine::Patience patience,
              engine::Done done) override;
  base::Duration ride() const noexcept override { return std::chrono::microseconds{500}; }
  int doorbell_fd() const noexcept override { return hints_.fd(); }
  std::vector<engine::Ring> answer_doorbell() override;
  bool may_have_changed() override;
  void tidy() override;
  Result<std::vector<LockInfo>> list(std::string_view prefix) override;
  Result<LockInfo> show(std::string_view name) override;
  Result<void> init() override;
  Result<std::string> init_script() override;
  std::vector<Finding> doctor() override;

 private:
  RedlockEngine(const RedlockOptions& options, const engine::EngineOptions& client,
                const std::shared_ptr<RedisTls>& tls);

  bool inherited() const noexcept;
  Result<RespValue> ask(std::size_t node, const std::string& command);
  Result<std::vector<std::string>> keys_of(std::size_t node, std::string_view prefix);
  Result<std::vector<LockInfo>> describe(std::span<const std::string> names);

  const RedlockOptions options_;
  const Capabilities capabilities_;
  const std::uint64_t generation_;
  RedlockHints hints_;
  RedlockTurn turn_;

  std::mutex desk_mutex_;
  std::vector<std::unique_ptr<RedisConnector>> desks_;  // for those who look

  std::optional<engine::Driver> driver_{std::in_place};
};

}  // namespace holdfast::engines
