#pragma once

#include <mutex>
#include <vector>

#include "engine/engine.h"

namespace holdfast::engine {

// Rings for one engine, and a descriptor that is readable while there are any.
// Thread-safe.
class Bell {
 public:
  Bell();
  ~Bell();
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;

  int fd() const noexcept { return fd_; }  // -1 if there was none to be had
  void ring(const Ring& ring);
  std::vector<Ring> answer();

 private:
  int fd_;
  std::mutex mutex_;
  std::vector<Ring> pending_;
};

}  // namespace holdfast::engine
