#include "engines/redis/redis_engine.h"

#include <utility>

#include "base/fork.h"
#include "engine/batch.h"
#include "engines/redis/fair_strategy.h"
#include "engines/redis/unfair_strategy.h"

namespace holdfast::engines {
namespace {

std::unique_ptr<RedisStrategy> make_strategy(const RedisOptions& options,
                                             const engine::EngineOptions& client) {
  if (options.strategy != RedisStrategyKind::fair) {
    return UnfairStrategy::make(options, client);
  }
  return std::make_unique<FairStrategy>(options, client);
}

}  // namespace

RedisEngine::RedisEngine(const RedisOptions& options, const engine::EngineOptions& client,
                         std::shared_ptr<RedisTls> tls, std::unique_ptr<RedisStrategy> strategy)
    : options_{options},
      client_{client},
      generation_{base::fork_generation()},
      strategy_{std::move(strategy)},
      connector_{options_, tls},
      turn_{options_, *strategy_, connector_},
      desk_{options_, tls} {
  bell_ = std::make_unique<RedisBell>(options_, std::move(tls), strategy_->channel());
  strategy_->listen_with(*bell_);
  if (!options_.sentinels.empty()) {
    bell_->set_holders([this] { return holds_.rings(); });
  }
}

Result<std::unique_ptr<engine::Engine>> RedisEngine::open(const engine::Url& url,
                                                          const engine::EngineOptions& client) {
  auto options = RedisOptions::from(url);
  if (!options) {
    return tl::unexpected{options.error()};
  }
  std::shared_ptr<RedisTls> tls;
  if (options->access.tls) {
    auto made = redis_tls(options->access);
    if (!made) {
      return tl::unexpected{made.error()};
    }
    tls = *std::move(made);
  }
  std::unique_ptr<RedisEngine> engine{
      new RedisEngine{*options, client, tls, make_strategy(*options, client)}};
  const base::Time deadline = base::BootClock::now() + options->access.timeout;
  if (auto connected = engine->connector_.connect_until(deadline); !connected) {
    return tl::unexpected{connected.error()};
  }
  engine->bell_->start(deadline);
  return engine;
}

RedisEngine::~RedisEngine() = default;

bool RedisEngine::inherited() const noexcept {
  return generation_ != base::fork_generation();
}

void RedisEngine::submit(std::size_t, std::span<const core::Command> batch,
                         engine::Patience patience, engine::Done done) {
  if (inherited()) {
    done(engine::all_failed(batch.size(), engine::inherited_by_fork()));
    return;
  }
  if (!options_.sentinels.empty()) {
    done = [this, batch, tell = std::move(done)](const engine::Outcomes& outcomes) {
      for (std::size_t i = 0; i < batch.size(); ++i) {
        holds_.note(batch[i], outcomes[i]);
      }
      tell(outcomes);
    };
  }
  turn_.begin(batch, std::move(done));
  driver_->run(turn_, patience);
}

int RedisEngine::doorbell_fd() const noexcept {
  return bell_->fd();
}

std::vector<engine::Ring> RedisEngine::answer_doorbell() {
  if (inherited()) {
    return {};
  }
  std::vector<engine::Ring> rings = bell_->answer();
  if (options_.wait_replicas > 0) {
    for (engine::Ring& ring : rings) {
      ring.token = 0;  // a look, which asks the replicas, must come before the entry
    }
  }
  return rings;
}

bool RedisEngine::may_have_changed() {
  if (inherited()) {
    return false;
  }
  return bell_->may_have_missed();
}

}  // namespace holdfast::engines
