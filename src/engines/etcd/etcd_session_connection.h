#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/file_descriptor.h"
#include "engines/etcd/etcd_link.h"
#include "engines/etcd/etcd_session.h"

namespace holdfast::engines {

// What an EtcdSession is made of: the socket, the HTTP/2 streams in it, and the
// thread that reads. Whoever makes a request writes it to the socket itself;
// a hand-off to another thread would cost more than a local round trip.
class EtcdConnection {
 public:
  EtcdConnection(EtcdOptions options, EtcdSession::Events events);
  ~EtcdConnection();
  EtcdConnection(const EtcdConnection&) = delete;
  EtcdConnection& operator=(const EtcdConnection&) = delete;

  void start();
  void stop();
  bool begin(EtcdRequest& request);  // false: it is over already
  void unwatch(std::int64_t id);
  bool await_ready(base::Time until) const;
  Error trouble() const;
  std::string server() const;

 private:
  struct Http2;   // the library's session
  struct Stream;  // one request, or the watches
  friend struct Http2;

  void run();
  void serve_once(std::unique_lock<std::mutex>& lock);
  bool connect(std::unique_lock<std::mutex>& lock);
  template <typename Done>
  bool talk_until(std::unique_lock<std::mutex>& lock, base::Time until, const Done& done);
  void give_up_on_host(const Error& why);
  void break_off(std::string why, ErrorCode code = ErrorCode::unavailable);
  const engine::Url::Host& host() const;  // whom we talk to
  std::string not_spoken_to() const;
  void begin_login();
  void finish_login();
  void welcome_back();
  void finish_unwelcome(EtcdStatusCode status, const std::string& text);
  void drop(const std::string& why);
  void send_waiting();
  bool submit(EtcdRequest& request);
  void open_watches();
  void say_to_watches(std::string_view message);
  void flush();
  void read_some();
  void nudge() const;
  void finish(EtcdRequest& request, EtcdStatusCode status, int native, std::string text);
  void finish_late(base::Time now);
  void tell(std::unique_lock<std::mutex>& lock);
  void on_watch_bytes(std::string_view bytes);
  void on_stream_closed(std::int32_t id, bool refused);
  void on_watches_closed(const Stream& stream);
  base::Time next_deadline() const;

  const EtcdOptions options_;
  const EtcdSession::Events events_;
  const base::FileDescriptor nudge_;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::unique_ptr<EtcdLink> link_;
  std::unique_ptr<Http2> http2_;
  std::string heard_;
  bool ready_ = false;
  bool greeted_ = false;     // it does speak HTTP/2
  bool leaving_ = false;     // no new requests: the server, or the connection, ends
  bool leaderless_ = false;  // the member said so
  bool broken_ = false;
  bool stopping_ = false;
  ErrorCode broken_by_ = ErrorCode::unavailable;
  std::string trouble_;
  bool refused_ = false;      // we were, by all servers
  std::size_t refusals_ = 0;  // in a row
  std::size_t host_ = 0;

  std::string token_;                   // of our login; empty: none
  std::unique_ptr<EtcdRequest> login_;  // on its way
  std::optional<Error> login_error_;
  base::Time last_login_{};
  std::uint32_t logins_ = 0;
  std::vector<EtcdRequest*> unwelcome_;  // to be sent again after it

  std::deque<EtcdRequest*> waiting_;  // for a connection
  std::map<std::int32_t, std::unique_ptr<Stream>> streams_;
  std::int32_t watch_stream_ = -1;
  base::Time reopen_watches_ = base::kNever;
  std::vector<std::pair<std::int64_t, EtcdRequest*>> creating_;  // watches, in the order sent
  std::vector<EtcdRequest*> unwatched_;  // watches to be set up once their stream is open
  std::set<std::int64_t> watching_;
  std::vector<EtcdRequest*> finished_;  // to be resumed outside the lock
  std::vector<std::int64_t> rung_;
  bool news_ = false;  // the watches were opened anew
  std::thread thread_;
};

}  // namespace holdfast::engines
