#pragma once

#include "engines/redis/redis_strategy.h"

namespace holdfast::engines {

// strategy=fair: the whole contract, as core/lock_record has it.
class FairStrategy : public RedisStrategy {
 public:
  FairStrategy(const RedisOptions& options, const engine::EngineOptions& client);

  static const Capabilities& row();
  const Capabilities& capabilities() const noexcept override { return row(); }
  bool read(const RespValue& lock, core::Duration now, LockInfo& info) const override;
};

}  // namespace holdfast::engines
