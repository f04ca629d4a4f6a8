#pragma once

#include <zookeeper/zookeeper.h>

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_set>

#include "base/fork.h"
#include "engines/zookeeper/zookeeper_session.h"

// For zookeeper_session*.cc alone.
namespace holdfast::engines {

ZookeeperStatus zookeeper_status(int code);

// The library hands back as const what was given to it otherwise.
inline void* without_const(const void* data) {
  return const_cast<void*>(data);  // NOLINT(cppcoreguidelines-pro-type-const-cast)
}

// While one lives a callback of the library runs on this thread, which closing a
// handle would wait for.
class InCallback {
 public:
  InCallback() noexcept;
  ~InCallback();
  InCallback(const InCallback&) = delete;
  InCallback& operator=(const InCallback&) = delete;
  static bool is_here() noexcept;

 private:
  bool before_;
};

// The vendor's handle, closed at the end of its session or with the last request that uses
// it, and never by the thread that it would wait for.
struct ZookeeperHandle {
  // What events find; there for as long as they can come, which is longer than the handle
  // if it is closed by another thread.
  struct Listener {
    std::recursive_mutex mutex;           // what an event leads to may end the session
    ZookeeperSession* session = nullptr;  // null once that is gone
  };

  zhandle_t* raw = nullptr;
  const std::shared_ptr<Listener> listener = std::make_shared<Listener>();
  const std::uint64_t generation = base::fork_generation();

  ZookeeperHandle() = default;
  ZookeeperHandle(const ZookeeperHandle&) = delete;
  ZookeeperHandle& operator=(const ZookeeperHandle&) = delete;
  ~ZookeeperHandle();

  // What the library calls.
  static void event(zhandle_t* raw, int type, int state, const char* path, void*);

  // Calls the library, unless the handle is closed.
  template <typename Call>
  int use(Call call) {
    const std::shared_lock lock{in_use_};
    return raw == nullptr || closed_ ? ZINVALIDSTATE : call(raw);
  }

  // What is given to the library is owed to us until it is answered.
  void owe(ZookeeperRequest& request);
  bool settle(ZookeeperRequest& request);  // false: it was not owed any more

  // Then everything that was owed is answered, by us if need be: the library forgets what it
  // is given in the moment in which it learns that the session is over, and at the end what
  // its thread for answers has not begun with. Not on a thread of the library.
  void close();

 private:
  std::shared_mutex in_use_;
  bool closed_ = false;
  std::mutex mutex_;
  std::unordered_set<ZookeeperRequest*> owed_;
};

}  // namespace holdfast::engines
