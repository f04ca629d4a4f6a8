#pragma once

#include <holdfast/inspect.h>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/commands.h"
#include "engine/engine.h"
#include "engines/redis/redis_options.h"
#include "engines/redis/redis_script.h"
#include "engines/redis/resp.h"

namespace holdfast::engines {

class RedisBell;

// How locks are kept in Redis: a script that applies commands, one that shows
// what is there, and what they need to know. Called by one thread at a time,
// except look_at() and read().
class RedisStrategy {
 public:
  RedisStrategy(const RedisOptions& options, const engine::EngineOptions& client,
                std::string_view script, std::string_view look);
  virtual ~RedisStrategy() = default;
  RedisStrategy(const RedisStrategy&) = delete;
  RedisStrategy& operator=(const RedisStrategy&) = delete;

  virtual const Capabilities& capabilities() const noexcept = 0;

  // Why Redis need not even be asked.
  virtual std::optional<core::Outcome> objection(const core::Command& command) const;

  // One call for these commands of the batch.
  void append_call(std::string& out, std::span<const core::Command> batch,
                   std::span<const std::size_t> commands, bool in_full) const;

  // What the answer means to this command, and why it failed if it did.
  virtual Error failure(const core::Command& command) const;
  virtual core::Outcome settle(const core::Command& command, core::Outcome outcome);

  // A call that describes the locks of these keys, and what its answer says of
  // one of them; false if nobody uses it.
  void append_look(std::string& out, std::span<const std::string> keys) const;
  virtual bool read(const RespValue& lock, core::Duration now, LockInfo& info) const = 0;

  // Is it a lock's, among the keys that start like one?
  virtual bool is_listed(const std::string& key) const;

  // For those who listen to more than our own channel.
  virtual void listen_with(RedisBell&) {}
  // The channel of our own doorbell.
  const std::string& channel() const noexcept { return channel_; }

 protected:
  // What is sent in place of the command.
  virtual core::Operation translate(const core::Command& command) const;

  const RedisOptions& options() const noexcept { return options_; }
  const engine::EngineOptions& client() const noexcept { return client_; }

 private:
  std::string now() const;  // in microseconds; empty: Redis's own

  const RedisOptions options_;
  const engine::EngineOptions client_;
  const RedisScript script_;
  const RedisScript look_;
  const std::string party_;
  const std::string bells_;  // what all channels start with
  const std::string channel_;
};

}  // namespace holdfast::engines
