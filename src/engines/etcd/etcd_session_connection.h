#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/file_descriptor.h"
#include "engines/etcd/etcd_link.h"
#include "engines/etcd/etcd_session.h"
#include "engines/etcd/etcd_session_http2.h"

namespace holdfast::engines {

// It was turned away because of who we are, or are no longer; nothing was done.
bool etcd_wants_login(int status, std::string_view text);

// What an EtcdSession is made of: the socket, the HTTP/2 session in it, and the
// thread that reads. Whoever makes a request writes it to the socket itself;
// a hand-off to another thread would cost more than a local round trip.
class EtcdConnection : private EtcdHttp2::Owner {
 public:
  EtcdConnection(EtcdOptions options, EtcdSession::Events events);
  ~EtcdConnection() override;
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
  // etcd_session_connection.cc: the thread
  void run();
  void serve_once(std::unique_lock<std::mutex>& lock);
  void drop(const std::string& why);
  void finish_late(base::Time now);
  base::Time next_deadline() const;
  void tell(std::unique_lock<std::mutex>& lock);
  void nudge() const;

  // etcd_session_line.cc
  bool connect(std::unique_lock<std::mutex>& lock);
  template <typename Done>
  bool talk_until(std::unique_lock<std::mutex>& lock, base::Time until, const Done& done);
  void give_up_on_host(const Error& why);
  void break_off(std::string why, ErrorCode code = ErrorCode::unavailable);
  const engine::Url::Host& host() const;  // whom we talk to
  std::string not_spoken_to() const;
  void flush();
  void read_some();

  // etcd_session_login.cc
  void begin_login();
  void finish_login();
  void welcome_back();
  void finish_unwelcome(EtcdStatusCode status, const std::string& text);

  // etcd_session_requests.cc
  bool submit(EtcdRequest& request);
  void send_waiting();
  void send_next_in_line();
  void on_closed(std::int32_t id, EtcdHttp2::Stream& stream, bool refused) override;
  void finish(EtcdRequest& request, EtcdStatusCode status, int native, std::string text);

  // etcd_session_watches.cc
  void open_watches();
  void on_message(std::string_view message) override;
  void on_watches_closed(const EtcdHttp2::Stream& stream);

  const EtcdOptions options_;
  const EtcdSession::Events events_;
  const base::FileDescriptor nudge_;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::unique_ptr<EtcdLink> link_;
  std::unique_ptr<EtcdHttp2> http2_;
  std::string heard_;
  bool ready_ = false;
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
  std::deque<EtcdRequest*> in_line_;  // for their turn on this one
  std::int32_t watch_stream_ = -1;
  base::Time reopen_watches_ = base::kNever;
  std::vector<std::pair<std::int64_t, EtcdRequest*>> creating_;  // watches, in the order sent
  std::vector<EtcdRequest*> unwatched_;  // watches to be set up once their stream is open
  std::map<std::int64_t, std::vector<std::string>> watching_;  // whose end counts; empty: all does
  std::vector<EtcdRequest*> finished_;                         // to be resumed outside the lock
  std::vector<std::pair<std::int64_t, std::vector<EtcdKey>>> rung_;  // and what ended
  bool news_ = false;                                                // the watches were opened anew
  std::thread thread_;
};

}  // namespace holdfast::engines
