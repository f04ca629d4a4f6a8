#pragma once

#include <holdfast/error.h>
#include <coroutine>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "engines/etcd/etcd_options.h"
#include "engines/etcd/etcd_wire.h"

namespace holdfast::engines {

enum class EtcdStatusCode : std::uint8_t {
  ok,
  not_found,  // a lease that is gone
  unauthorized,
  refused,          // the server said no, in another way; nothing was done
  unavailable,      // not sent
  outcome_unknown,  // sent, and no answer, or one that leaves it open
};

class EtcdSession;

// A server that is asked for everything at once answers nothing in time: requests
// beyond some hundreds wait for their turn here. What keeps a lease alive does not.
enum class EtcdTurn : std::uint8_t { in_line, at_once };

// A request, sent when it is awaited; the coroutine goes on on the session's
// thread, or at once if it cannot be sent. The session must outlive it.
class EtcdRequest {
 public:
  EtcdRequest(EtcdSession* session, std::string_view method, std::string message,
              EtcdTurn turn = EtcdTurn::in_line)
      : session_{session}, method_{method}, message_{std::move(message)}, turn_{turn} {}
  // A watch: answered when it is set up.
  EtcdRequest(EtcdSession* session, std::int64_t watch, std::string message,
              std::vector<std::string> ends)
      : session_{session}, watch_{watch}, message_{std::move(message)}, ends_{std::move(ends)} {}

  struct Reply {
    EtcdStatusCode status = EtcdStatusCode::unavailable;
    int native = 0;
    std::string text;  // what the server said, if it was not pleased
    std::string body;
    std::int64_t revision = 0;  // of a watch: it sees what comes after this

    bool ok() const noexcept { return status == EtcdStatusCode::ok; }
    Error error() const;
  };

  bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<> waiter);
  Reply await_resume() { return std::move(reply_); }

 private:
  friend class EtcdConnection;
  EtcdSession* session_;
  std::string method_;
  std::int64_t watch_ = 0;
  std::string message_;
  std::vector<std::string> ends_;
  EtcdTurn turn_ = EtcdTurn::at_once;
  Reply reply_;
  std::coroutine_handle<> waiter_;
  base::Time since_{};
  std::uint32_t login_ = 0;  // by which it was sent
  bool again_ = false;       // it was sent once more, with a new login
};

// One HTTP/2 connection to one of the servers at a time, and one stream of
// watches in it. The only place that knows the vendor's library. Thread-safe.
class EtcdSession {
 public:
  struct Events {
    // And the watch is over. `ended`: which keys are gone, as far as it says.
    std::function<void(std::int64_t watch, const std::vector<EtcdKey>& ended)> changed;
    std::function<void()> connected;  // anew: what was watched no longer is
  };

  // Events come on the session's thread.
  EtcdSession(EtcdOptions options, Events events);
  // Whatever is on its way ends with outcome_unknown.
  ~EtcdSession();
  EtcdSession(const EtcdSession&) = delete;
  EtcdSession& operator=(const EtcdSession&) = delete;

  bool await_connection(base::Time until) const;
  Error trouble() const;       // why there is no connection
  std::string server() const;  // "host:port" that we talk to
  void stop();                 // ends the thread; never on it

  EtcdRequest call(std::string_view method, std::string message,
                   EtcdTurn turn = EtcdTurn::in_line) {
    return EtcdRequest{this, method, std::move(message), turn};
  }
  // The next change of this key, or below it if it ends in a slash. `id` is not in use.
  EtcdRequest watch(std::int64_t id, std::string_view key);
  // The end of one of these keys below the directory. Whatever ends there is seen in its order,
  // so what is told of one of them is true of all at that moment.
  EtcdRequest watch_ends(std::int64_t id, std::string_view directory,
                         std::vector<std::string> keys);
  void unwatch(std::int64_t id);

 private:
  friend class EtcdRequest;
  std::unique_ptr<class EtcdConnection> connection_;
};

}  // namespace holdfast::engines
