#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "engines/redis/redis_bell.h"
#include "engines/redis/redis_strategy.h"

namespace holdfast::engines {

// strategy=simple and strategy=redisson: keys that other libraries use as
// well. Redis knows no queue; those who wait ask again: after a while that is
// different each time, or when Redisson's channel says that a lock is free.
class UnfairStrategy : public RedisStrategy {
 public:
  static std::unique_ptr<UnfairStrategy> make(const RedisOptions& options,
                                              const engine::EngineOptions& client);

  static const Capabilities& row(RedisStrategyKind kind);
  const Capabilities& capabilities() const noexcept override { return row(options().strategy); }

  std::optional<core::Outcome> objection(const core::Command& command) const override;
  core::Outcome settle(const core::Command& command, core::Outcome outcome) override;
  Error failure(const core::Command& command) const override;
  bool read(const RespValue& lock, core::Duration now, LockInfo& info) const override;
  bool is_listed(const std::string& key) const override;
  void listen_with(RedisBell& bell) override;

 protected:
  core::Operation translate(const core::Command& command) const override;

 private:
  UnfairStrategy(const RedisOptions& options, const engine::EngineOptions& client,
                 std::string_view script, std::string_view look);

  struct Hopeful {
    std::string name;
    core::Acquire request;
  };

  void hope(const std::string& name, const core::Acquire& request);
  bool stop_hoping(const core::RequestId& id);
  // Somebody freed what that channel is about, or we just began to listen.
  std::vector<engine::Ring> those_at(const std::string& channel) const;

  mutable std::mutex mutex_;
  std::unordered_map<core::RequestId, Hopeful> hopefuls_;
  std::map<std::string, std::vector<core::RequestId>> at_channel_;  // redisson
  RedisBell* bell_ = nullptr;
};

}  // namespace holdfast::engines
