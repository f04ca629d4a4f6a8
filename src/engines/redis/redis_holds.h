#pragma once

#include <mutex>
#include <unordered_set>
#include <vector>

#include "engine/engine.h"

namespace holdfast::engines {

// What we believe to hold, where a failover may have forgotten it: a new master
// must be asked about all of it. Thread-safe.
class RedisHolds {
 public:
  void note(const core::Command& command, const core::Outcome& outcome);

  // A ring for each: look whether it is still ours.
  std::vector<engine::Ring> rings() const;

 private:
  mutable std::mutex mutex_;
  std::unordered_set<core::RequestId> held_;
};

}  // namespace holdfast::engines
