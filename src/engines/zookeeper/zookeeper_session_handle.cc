#include "engines/zookeeper/zookeeper_session_handle.h"

#include <system_error>
#include <thread>
#include <utility>

namespace holdfast::engines {
namespace {

thread_local bool in_callback = false;

}  // namespace

InCallback::InCallback() noexcept : before_{std::exchange(in_callback, true)} {}
InCallback::~InCallback() {
  in_callback = before_;
}
bool InCallback::is_here() noexcept {
  return in_callback;
}

ZookeeperHandle::~ZookeeperHandle() {
  if (raw == nullptr || closed_ || generation != base::fork_generation()) {
    return;  // a child must not say good-bye on its parent's connection
  }
  if (!InCallback::is_here()) {
    zookeeper_close(raw);
    return;
  }
  try {
    std::thread{[handle = raw, until_closed = listener] { zookeeper_close(handle); }}.detach();
  } catch (const std::system_error&) {
    // No thread to be had: the session, and its events, end with the process.
    new std::shared_ptr<Listener>{listener};
  }
}

void ZookeeperHandle::owe(ZookeeperRequest& request) {
  const std::lock_guard lock{mutex_};
  owed_.insert(&request);
}

bool ZookeeperHandle::settle(ZookeeperRequest& request) {
  const std::lock_guard lock{mutex_};
  return owed_.erase(&request) > 0;
}

void ZookeeperHandle::close() {
  {
    const std::lock_guard lock{in_use_};
    if (raw == nullptr || std::exchange(closed_, true)) {
      return;
    }
  }
  zookeeper_close(raw);
  for (;;) {
    ZookeeperRequest* forgotten = nullptr;
    {
      const std::lock_guard lock{mutex_};
      if (owed_.empty()) {
        return;
      }
      forgotten = *owed_.begin();
    }
    forgotten->complete(ZCLOSING);
  }
}

}  // namespace holdfast::engines
