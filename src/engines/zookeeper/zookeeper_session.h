#pragma once

#include <atomic>
#include <condition_variable>
#include <coroutine>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/time.h"
#include "engines/zookeeper/zookeeper_options.h"

namespace holdfast::engines {

// What a request came back with.
enum class ZookeeperStatus {
  ok,
  no_node,
  node_exists,
  bad_version,
  not_empty,
  unauthorized,
  unavailable,      // not sent
  outcome_unknown,  // sent, and no answer
  refused,          // the server said no, in another way
};

struct ZookeeperReply {
  ZookeeperStatus status = ZookeeperStatus::unavailable;
  int native = 0;
  std::string text;  // the created path, or the node's data
  std::vector<std::string> children;
  std::vector<std::string> created;      // of a multi: the path of each create
  std::vector<ZookeeperStatus> results;  // of a multi that was refused: each operation's
  std::int64_t czxid = 0;
  std::int64_t mzxid = 0;
  std::int64_t pzxid = 0;  // of the last change among the children
  std::int64_t ctime_ms = 0;
  std::int64_t mtime_ms = 0;
  std::int32_t version = 0;
  std::int32_t changes = 0;  // among the children: how many came and went
  std::int64_t owner = 0;    // the session that an ephemeral node belongs to

  bool ok() const noexcept { return status == ZookeeperStatus::ok; }
  Error error() const;
};

// There was no session to send it in.
bool zookeeper_did_not_send(const Error& error);

enum class ZookeeperMode { persistent, container, ephemeral, ephemeral_sequential };

struct ZookeeperOperation {
  enum class What { create, remove, set, check };
  What what = What::check;
  std::string path = {};
  std::string data = {};
  ZookeeperMode mode = ZookeeperMode::ephemeral_sequential;
  std::int32_t version = -1;
};

class ZookeeperSession;
struct ZookeeperHandle;  // the vendor's, with what it owes us

// A request, sent when it is awaited; the coroutine goes on on the library's
// thread. The session must outlive it.
class ZookeeperRequest {
 public:
  using Send = std::function<int(ZookeeperHandle&, ZookeeperRequest&)>;
  // Of that handle, which may be null: then there is nobody to send it to.
  ZookeeperRequest(std::shared_ptr<ZookeeperHandle> handle, Send send)
      : handle_{std::move(handle)}, send_{std::move(send)} {}

  bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<> waiter);
  ZookeeperReply await_resume() { return std::move(reply_); }

  // For the session.
  ZookeeperReply& reply() noexcept { return reply_; }
  void complete(int code);

 private:
  friend class ZookeeperSeveral;
  bool send();  // false: it failed at once
  std::shared_ptr<ZookeeperHandle> handle_;
  Send send_;
  ZookeeperReply reply_;
  std::function<void()> done_;
};

// Requests in one go: the server answers them in this order.
class ZookeeperSeveral {
 public:
  explicit ZookeeperSeveral(std::vector<ZookeeperRequest> requests)
      : requests_{std::move(requests)} {}

  bool await_ready() const noexcept { return requests_.empty(); }
  bool await_suspend(std::coroutine_handle<> waiter);
  std::vector<ZookeeperReply> await_resume();

 private:
  std::vector<ZookeeperRequest> requests_;
};

// Two of them.
class ZookeeperPair {
 public:
  ZookeeperPair(ZookeeperRequest first, ZookeeperRequest second);

  bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<> waiter) { return both_.await_suspend(waiter); }
  std::pair<ZookeeperReply, ZookeeperReply> await_resume();

 private:
  ZookeeperSeveral both_;
};

// One session with the ensemble, opened anew when it expires. The only place
// that knows the vendor's library. Thread-safe; requests may be made from the
// library's own thread.
class ZookeeperSession {
 public:
  struct Events {
    std::function<void(const std::string& path)> changed;  // a watched node, or its children
    std::function<void()> connected;                 // anew: what was watched is watched again
    std::function<void(bool expired)> disconnected;  // expired: all ephemeral nodes are gone
  };

  // Events come on the library's thread.
  ZookeeperSession(ZookeeperOptions options, Events events);
  ~ZookeeperSession();
  ZookeeperSession(const ZookeeperSession&) = delete;
  ZookeeperSession& operator=(const ZookeeperSession&) = delete;

  bool is_connected() const noexcept { return connected_.load(); }
  // Why there is no connection, as far as is known.
  Error trouble() const;
  bool await_connection(base::Time until) const;  // never on the library's thread
  Duration negotiated() const noexcept { return Duration{negotiated_.load()}; }
  std::int64_t id() const;
  std::string server() const;  // "host:port" that we talk to

  // A session that expired, or was out of reach for longer than it can live,
  // is replaced by whoever may block.
  bool is_given_up(base::Time now) const;
  // A request was not sent: we may not have heard yet that the session is over.
  void look_again();
  void reopen();

  ZookeeperRequest create(std::string path, std::string data, ZookeeperMode mode);
  ZookeeperRequest remove(std::string path);
  ZookeeperRequest set(std::string path, std::string data, std::int32_t version);
  ZookeeperRequest get(std::string path, bool watch = false);
  ZookeeperRequest children(std::string path, bool watch = false);
  // Waits until our server has caught up with the leader.
  ZookeeperRequest sync(std::string path);
  // All or nothing, decided by a quorum.
  ZookeeperRequest multi(std::vector<ZookeeperOperation> operations);

 private:
  friend struct ZookeeperHandle;

  std::shared_ptr<ZookeeperHandle> handle() const;
  void on_state(int state, Duration timeout);  // as the library calls it
  void open();

  const ZookeeperOptions options_;
  const Events events_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::shared_ptr<ZookeeperHandle> handle_;
  bool refused_ = false;  // our identity was
  base::Time silent_since_{};
  std::atomic<bool> connected_{false};
  std::atomic<bool> expired_{false};
  std::atomic<Duration::rep> negotiated_{0};
};

}  // namespace holdfast::engines
