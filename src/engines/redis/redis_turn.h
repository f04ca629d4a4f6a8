#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/driver.h"
#include "engine/engine.h"
#include "engines/redis/redis_connector.h"
#include "engines/redis/redis_strategy.h"

namespace holdfast::engines {

// One batch on its way: commands are sent as calls of the strategy's script,
// all in one write, and the replies become outcomes. It connects first where
// it must, and asks again where Redis certainly did nothing.
class RedisTurn : public engine::Conversation {
 public:
  RedisTurn(const RedisOptions& options, RedisStrategy& strategy, RedisConnector& connector);

  void begin(std::span<const core::Command> batch, engine::Done done);

  std::optional<Wait> advance(short ready) override;
  void give_up() override { given_up_ = true; }
  void finish() override;

 private:
  // Commands that travel in one call. Those of one name always share one, so
  // that a call which is repeated cannot overtake another of that name.
  struct Call {
    std::vector<std::size_t> commands;
    bool in_full = false;
    bool answered = false;
  };
  enum class Phase : std::uint8_t { connecting, talking, pausing, over };

  void form_calls();
  void connect(short ready, base::Time now);
  void talk(short ready, base::Time now);
  void send_calls(base::Time now);
  void take_replies();
  void on_reply(Call& call, const RespValue& reply);
  void on_error(Call& call, const std::string& text);
  void note_trouble(const std::string& text);
  void on_acknowledged(const RespValue& reply);
  void after_replies(base::Time now);
  void try_again(base::Time now);
  void fail_unanswered(const Error& error);
  void end(const Error& error);
  bool asks_replicas() const;

  const RedisOptions& options_;
  RedisStrategy& strategy_;
  RedisConnector& connector_;

  std::span<const core::Command> batch_;
  engine::Done done_;
  engine::Outcomes outcomes_;
  std::vector<Call> calls_;
  std::size_t next_reply_ = 0;    // of which call
  bool acknowledgement_ = false;  // a WAIT is under way
  Phase phase_ = Phase::over;
  base::Time deadline_{};  // no new attempt after it
  base::Time resume_{};
  base::Time answer_by_{};  // the attempt under way
  base::Duration pause_{};
  base::Time last_used_{};
  std::optional<Error> trouble_;  // why there must be another attempt
  bool demoted_ = false;          // another server is the master now
  bool given_up_ = false;
  std::unordered_map<std::string_view, std::size_t> call_of_;  // room that is used again
};

}  // namespace holdfast::engines
