#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/file_descriptor.h"
#include "engines/redis/redis_bell.h"
#include "engines/redlock/redlock_options.h"

namespace holdfast::engines {

// Listens at each node for the word that a lock is free there, and rings once a
// majority has said so. Nobody relies on it: a waiter asks again anyway.
// Thread-safe.
class RedlockHints {
 public:
  RedlockHints(const RedlockOptions& options, const std::shared_ptr<RedisTls>& tls,
               const core::SessionId& session);

  int fd() const noexcept { return events_.get(); }

  // Listens from now on. A process that never waits has no such connections.
  // Never blocks.
  void start();

  std::vector<engine::Ring> answer();

  // Finds out now and then whether the connections live.
  void keep_alive();

 private:
  struct Heard {
    std::uint32_t nodes = 0;  // a bit each
    base::Time since{};
  };
  void note(std::size_t node, const engine::Ring& ring, base::Time now,
            std::vector<engine::Ring>& rings);

  std::vector<std::unique_ptr<RedisBell>> bells_;
  base::FileDescriptor events_;  // an epoll of the bells
  std::atomic<bool> started_ = false;

  std::mutex mutex_;
  std::unordered_map<core::RequestId, Heard> heard_;  // too few nodes so far
};

}  // namespace holdfast::engines
