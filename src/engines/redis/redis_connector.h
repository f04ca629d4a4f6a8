#pragma once

#include <memory>
#include <optional>
#include <string>

#include "engines/redis/redis_link.h"
#include "engines/redis/redis_options.h"

namespace holdfast::engines {

// Finds the server, by itself or by asking the sentinels, and keeps a link to
// it. Never blocks. Not thread-safe.
class RedisConnector {
 public:
  // `last_words` as in RedisLink::open().
  RedisConnector(const RedisOptions& options, std::shared_ptr<RedisTls> tls,
                 std::string last_words = "", std::size_t last_replies = 0);

  RedisLink& link() noexcept { return link_; }
  const RedisLink& link() const noexcept { return link_; }
  bool is_ready() const noexcept { return link_.state() == RedisLink::State::ready; }

  // Nothing is under way: advance() would begin.
  bool is_closed() const noexcept {
    return link_.state() == RedisLink::State::closed &&
           (!sentinel_ || sentinel_->state() == RedisLink::State::closed);
  }

  // Goes on towards a link that is ready. After an error the next call starts
  // over.
  Result<void> advance(short ready);
  engine::Conversation::Wait wait() const;
  void close();

  // For others who connect: blocks until it is ready or the time is over.
  Result<void> connect_until(base::Time deadline);
  // One exchange, blocking. If no answer comes it is closed afterwards. What
  // Redis refuses is an answer to exchange_until(), and an error of ask_until().
  Result<RespValue> exchange_until(const std::string& command, base::Time deadline);
  Result<RespValue> ask_until(const std::string& command, base::Time deadline);

 private:
  Result<void> ask_sentinel(short ready);
  void next_sentinel();

  const RedisOptions options_;
  const std::string last_words_;
  const std::size_t last_replies_;
  RedisLink link_;
  std::optional<RedisLink> sentinel_;
  std::size_t which_sentinel_ = 0;
  bool asked_ = false;
  std::optional<RedisAddress> master_;  // as the sentinels just said
};

}  // namespace holdfast::engines
