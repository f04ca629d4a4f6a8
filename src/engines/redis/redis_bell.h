#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_descriptor.h"
#include "engine/engine.h"
#include "engines/redis/redis_connector.h"

namespace holdfast::engines {

// The connection that listens to our channel. Nobody waits for it: whoever
// answers the doorbell also keeps the connection alive. Thread-safe.
class RedisBell {
 public:
  RedisBell(const RedisOptions& options, std::shared_ptr<RedisTls> tls, std::string channel);

  // Listens from now on, if that can be had by then.
  void start(base::Time deadline);

  int fd() const noexcept { return events_.get(); }
  std::vector<engine::Ring> answer();

  // True if a ring may have been missed since the last call.
  bool may_have_missed();

  bool is_listening();

  // Further channels, and who is to be rung when something is said there or
  // when we begin to listen: what was said before that is lost.
  using Others = std::function<std::vector<engine::Ring>(const std::string& channel)>;
  void set_others(Others others) { others_ = std::move(others); }
  // Who is to be rung when we listen to another server than before.
  using Holders = std::function<std::vector<engine::Ring>()>;
  void set_holders(Holders holders) { holders_ = std::move(holders); }
  void listen(const std::string& channel);
  void stop_listening(const std::string& channel);

 private:
  void advance();  // all below: with mutex_ held
  void watch();
  void come_back_later();
  void hear(const RespValue& message);
  Result<void> welcome();
  void say(std::string_view word, const std::string& channel);

  std::mutex mutex_;
  RedisConnector connector_;
  const base::Duration patience_;
  base::FileDescriptor events_;  // an epoll of those below: one descriptor for ever
  base::FileDescriptor timer_;
  base::FileDescriptor inbox_;  // readable while rings_ are there
  int watched_ = -1;            // the connection's socket, as epoll knows it
  std::vector<engine::Ring> rings_;
  const std::string channel_;
  std::set<std::string> further_;
  Others others_;
  Holders holders_;
  RedisAddress server_;  // that we listened to last
  bool gap_ = true;      // not listening, or not all the time
  bool asked_ = false;   // for a sign of life
  base::Time asked_at_{};
  base::Duration pause_{};
};

}  // namespace holdfast::engines
