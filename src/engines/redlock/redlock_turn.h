#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/file_descriptor.h"
#include "core/quorum.h"
#include "engine/driver.h"
#include "engine/engine.h"
#include "engines/redis/redis_script.h"
#include "engines/redlock/redlock_hints.h"
#include "engines/redlock/redlock_node.h"

namespace holdfast::engines {

// One batch on its way to all nodes. First everything is asked of everybody at
// once; what a majority granted then gets its token written back, and what it
// did not is released everywhere, without waiting for that.
class RedlockTurn : public engine::Conversation {
 public:
  // `hints` are wanted once somebody waits.
  RedlockTurn(const RedlockOptions& options, const engine::EngineOptions& client,
              std::vector<std::unique_ptr<RedlockNode>> nodes, RedlockHints& hints);

  void begin(std::span<const core::Command> batch, engine::Done done);

  std::optional<Wait> advance(short ready) override;
  void give_up() override { given_up_ = true; }
  void finish() override;

  // Until a majority answers, or the time is over; before the first batch.
  Result<void> connect_until(base::Time deadline);

 private:
  enum class Step : std::uint8_t { ask, write, over };
  struct Item {
    core::Operation sent;  // in place of the command
    Step step = Step::ask;
    core::Quorum quorum{0, {}};
    std::uint64_t token = 0;
    std::optional<Error> refusal;  // what a node said
    bool revoked = false;
    bool answered = false;  // by a majority
  };
  enum class Phase : std::uint8_t { asking, writing, pausing, over };

  std::optional<Error> objection(const core::Command& command) const;
  core::Operation translated(const core::Operation& operation) const;
  void start_asking(base::Time now);
  void send_to(std::size_t node, base::Time now);
  std::string call_for(std::size_t node, bool in_full, base::Time now) const;
  void pump_nodes(short ready);
  void on_answer(std::size_t node, const RedlockNode::Answer& answer, base::Time now);
  void take(std::size_t node, Item& item, const core::Outcome& said, const std::string& refusal);
  bool decided() const;
  void after_asking(base::Time now);
  bool may_ask_again(const Item& item, base::Time now) const;
  void judge(std::size_t index, base::Time now);
  void judge_acquire(std::size_t index, const core::Acquire& asked, base::Time now);
  void judge_release(std::size_t index, const core::RequestId& id);
  void judge_look(std::size_t index);
  void deny(std::size_t index, const core::Acquire& asked);
  void wait_with(const core::Acquire& asked);
  void after_writing(base::Time now);
  void let_go(std::size_t index, const core::RequestId& id);
  void append_head(std::string& call, std::string_view young) const;
  Error unreachable(const Item& item) const;
  void silence_the_rest();
  void watch();
  base::Time timeout_for(base::Time now) const;

  const RedlockOptions options_;
  const engine::EngineOptions client_;
  const RedisScript script_;
  const std::string party_;
  std::vector<std::unique_ptr<RedlockNode>> nodes_;
  RedlockHints& hints_;
  base::FileDescriptor events_;  // an epoll of the nodes' sockets
  struct Watched {
    int fd = -1;
    short events = 0;
  };
  std::vector<Watched> watched_;

  std::span<const core::Command> batch_;
  engine::Done done_;
  engine::Outcomes outcomes_;
  std::vector<Item> items_;
  Phase phase_ = Phase::over;
  std::uint64_t tag_ = 0;
  std::vector<bool> asked_;  // nodes that got this round's call
  base::Time deadline_{};
  base::Time round_ends_{};
  base::Time resume_{};
  bool given_up_ = false;

  // Those who wait ask again; those who hold can be repaired.
  std::unordered_map<core::RequestId, core::Acquire> hopefuls_;
  std::unordered_map<core::RequestId, core::Acquire> held_;
};

}  // namespace holdfast::engines
