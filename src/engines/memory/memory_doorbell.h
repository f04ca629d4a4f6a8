#pragma once

#include <mutex>
#include <vector>

#include "engine/engine.h"

namespace holdfast::engines {

// Rings for one engine, and a descriptor that is readable while there are any.
// Thread-safe.
class MemoryDoorbell {
 public:
  MemoryDoorbell();
  ~MemoryDoorbell();
  MemoryDoorbell(const MemoryDoorbell&) = delete;
  MemoryDoorbell& operator=(const MemoryDoorbell&) = delete;

  int fd() const noexcept { return fd_; }  // -1 if there was none to be had
  void ring(const engine::Ring& ring);
  std::vector<engine::Ring> answer();

 private:
  int fd_;
  std::mutex mutex_;
  std::vector<engine::Ring> pending_;
};

}  // namespace holdfast::engines
