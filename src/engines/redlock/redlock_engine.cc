#include "engines/redlock/redlock_engine.h"

#include <array>
#include <utility>

#include "base/fork.h"
#include "engine/batch.h"

namespace holdfast::engines {
namespace {

Capabilities capabilities_with(Duration max_ttl) {
  Capabilities row;
  row.engine = "redlock";
  row.exclusion = ExclusionBy::quorum;
  row.token = TokenKind::within_skew;
  row.fifo = false;
  row.wake_up = WakeUp::retry_with_hints;
  row.shared = false;
  row.permits = false;
  row.clock = "nodes";
  row.max_ttl = max_ttl;
  return row;
}

std::span<const Capabilities> capability_rows() {
  static const std::array rows{capabilities_with(RedlockOptions{}.max_ttl)};
  return rows;
}

std::vector<std::unique_ptr<RedlockNode>> make_nodes(const RedlockOptions& options,
                                                     const std::shared_ptr<RedisTls>& tls) {
  std::vector<std::unique_ptr<RedlockNode>> nodes;
  for (std::size_t i = 0; i < options.nodes.size(); ++i) {
    nodes.push_back(std::make_unique<RedlockNode>(options, i, tls));
  }
  return nodes;
}

}  // namespace

engine::Registration redlock_registration() {
  return {.scheme = "redlock",
          .example = "redlock://a,b,c",
          .open = &RedlockEngine::open,
          .capabilities = &capability_rows};
}

RedlockEngine::RedlockEngine(const RedlockOptions& options, const engine::EngineOptions& client,
                             const std::shared_ptr<RedisTls>& tls)
    : options_{options},
      capabilities_{capabilities_with(options.max_ttl)},
      generation_{base::fork_generation()},
      hints_{options, tls, client.session},
      turn_{options, client, make_nodes(options, tls), hints_} {
  for (std::size_t i = 0; i < options_.nodes.size(); ++i) {
    desks_.push_back(std::make_unique<RedisConnector>(options_.node(i), tls));
  }
}

Result<std::unique_ptr<engine::Engine>> RedlockEngine::open(const engine::Url& url,
                                                            const engine::EngineOptions& client) {
  auto options = RedlockOptions::from(url);
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
  std::unique_ptr<RedlockEngine> engine{new RedlockEngine{*options, client, tls}};
  const base::Time deadline = base::BootClock::now() + options->access.timeout;
  if (auto connected = engine->turn_.connect_until(deadline); !connected) {
    return tl::unexpected{connected.error()};
  }
  return engine;
}

bool RedlockEngine::inherited() const noexcept {
  return generation_ != base::fork_generation();
}

void RedlockEngine::submit(std::size_t, std::span<const core::Command> batch,
                           engine::Patience patience, engine::Done done) {
  if (inherited()) {
    done(engine::all_failed(batch.size(), engine::inherited_by_fork()));
    return;
  }
  turn_.begin(batch, std::move(done));
  driver_->run(turn_, patience);
}

std::vector<engine::Ring> RedlockEngine::answer_doorbell() {
  return inherited() ? std::vector<engine::Ring>{} : hints_.answer();
}

// Always: only the nodes' votes tell, and hints get lost.
bool RedlockEngine::may_have_changed() {
  if (!inherited()) {
    hints_.keep_alive();
  }
  return true;
}

}  // namespace holdfast::engines
