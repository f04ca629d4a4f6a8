#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/quorum.h"
#include "engine/driver.h"
#include "engine/engine.h"
#include "engines/redis/redis_script.h"
#include "engines/redlock/redlock_hints.h"
#include "engines/redlock/redlock_nodes.h"

namespace holdfast::engines {

// One batch on its way to all nodes. Everything is asked of everybody at once,
// and mostly that is all. Where a majority granted a lock but not with the token
// that was proposed, the right one is written back in a second round; what no
// majority granted is released everywhere, without waiting for that.
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
    std::uint64_t token = 0;       // proposed, then that of the grant
    std::optional<Error> refusal;  // what a node said
    bool revoked = false;
    bool answered = false;  // by a majority
  };
  struct Told {
    std::string name;
    core::RequestId id;
    std::uint64_t token = 0;  // that was written; 0: let go
  };
  enum class Phase : std::uint8_t { asking, writing, pausing, over };

  std::optional<Error> objection(const core::Command& command) const;
  core::Operation translated(const core::Operation& operation) const;
  void start_asking(base::Time now);
  void send_to(std::size_t node, base::Time now, std::vector<RedlockNode::Answer>& answers);
  void compose();
  std::string call_for(std::size_t node, bool in_full, base::Time now) const;
  void pump_nodes();
  void on_answer(std::size_t node, const RedlockNode::Answer& answer, base::Time now);
  void say_in_full(std::size_t node, std::uint64_t tag, bool too_late, base::Time now);
  static core::Outcome outcome_of(const Item& item, std::string_view& said);
  void take(std::size_t node, Item& item, const core::Outcome& said, const std::string& refusal);
  bool decided() const;
  void after_asking(base::Time now);
  bool may_ask_again(const Item& item, base::Time now) const;
  void judge(std::size_t index, base::Time now);
  void judge_acquire(std::size_t index, const core::Acquire& asked, base::Time now);
  void judge_release(std::size_t index, const core::RequestId& id);
  void judge_look(std::size_t index);
  void deny(std::size_t index, const core::Acquire& asked);
  void grant(std::size_t index, const core::Acquire& asked, base::Duration validity);
  void wait_with(const core::Acquire& asked, std::uint64_t seen);
  void after_writing(base::Time now);
  // Nobody waits for the answer.
  void let_go(std::size_t index, const core::RequestId& id);
  void note_written(std::size_t index, const core::RequestId& id);
  void send_what_is_told();
  bool is_wanted(const core::RequestId& id) const;
  void tell_again(std::size_t node);

  // Commands for a call of the script.
  struct Said {
    std::size_t count = 0;
    std::size_t words = 0;
    std::string keys;
    std::string commands;
    void add(std::string_view lock, std::string_view other,
             std::initializer_list<std::string_view> command);
  };
  static std::int64_t in_milliseconds(core::Duration time);
  void say(const Item& item, const std::string& name);
  void say_acquire(Said& said, char letter, const std::string& name, const core::Acquire& asked,
                   std::uint64_t token) const;
  void say_written(Said& said, const std::string& name, const core::RequestId& id,
                   std::uint64_t token) const;
  void say_with(Said& said, char letter, const std::string& name, std::string_view word) const;
  std::string other_key(std::string_view what, const std::string& key) const;
  void say_told(Said& said, const Told& told) const;
  std::string call(const Said& said, bool in_full, bool young) const;

  Error unreachable(const Item& item) const;
  void silence_the_rest();
  base::Time timeout_for(base::Time now) const;

  const RedlockOptions options_;
  const engine::EngineOptions client_;
  const RedisScript script_;
  const std::string party_;
  const std::string self_;     // where a node keeps what it knows of itself
  const std::string max_ttl_;  // as the script wants them
  const std::string guard_;
  RedlockNodes nodes_;
  RedlockHints& hints_;
  core::Proposals proposals_;

  std::span<const core::Command> batch_;
  engine::Done done_;
  engine::Outcomes outcomes_;
  std::vector<Item> items_;
  Phase phase_ = Phase::over;
  Said said_;                    // to all nodes, in this round
  std::string usual_call_;       // with it
  std::vector<Told> told_;       // when the round is over
  std::vector<Told> last_told_;  // in case a node does not know the script
  std::uint64_t told_tag_ = 0;
  std::uint64_t tag_ = 0;
  std::vector<bool> asked_;  // nodes that got this round's call
  base::Time deadline_{};
  base::Time round_ends_{};
  base::Time resume_{};
  bool given_up_ = false;

  // Those who wait ask again; those who hold can be repaired.
  struct Hopeful {
    core::Acquire asked;
    std::uint64_t seen = 0;  // the largest token that nodes spoke of
  };
  std::unordered_map<core::RequestId, Hopeful> hopefuls_;
  std::unordered_map<core::RequestId, core::Acquire> held_;
};

}  // namespace holdfast::engines
