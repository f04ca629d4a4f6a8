#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "engines/etcd/etcd_session.h"

struct nghttp2_session;

namespace holdfast::engines {

// gRPC's frame around a message, and the first whole message taken out of bytes.
std::string grpc_framed(std::string_view message);
std::optional<std::string> take_grpc_message(std::string& bytes);

// gRPC's calls in one HTTP/2 session, over no socket: bytes go in and come out.
// The only file with the vendor's header. Not thread-safe.
class EtcdHttp2 {
 public:
  struct Stream {
    EtcdRequest* request = nullptr;  // null: the watches
    std::string out;                 // not yet taken by the library
    bool open_ended = false;         // more may follow
    std::string in;
    int status = -1;  // gRPC's, once it came
    std::string text;
  };
  using Streams = std::map<std::int32_t, std::unique_ptr<Stream>>;

  class Owner {
   public:
    virtual ~Owner() = default;
    Owner() = default;
    Owner(const Owner&) = delete;
    Owner& operator=(const Owner&) = delete;
    virtual void on_message(std::string_view message) = 0;  // of an open-ended stream
    virtual void on_closed(std::int32_t id, Stream& stream, bool refused) = 0;
  };

  explicit EtcdHttp2(Owner& owner);
  ~EtcdHttp2();
  EtcdHttp2(const EtcdHttp2&) = delete;
  EtcdHttp2& operator=(const EtcdHttp2&) = delete;

  struct Call {
    std::string_view method;
    std::string_view server;  // "host:port"
    std::string_view token;   // of the login; empty: none
    bool secret = false;
    bool needs_leader = false;
  };
  // The stream's number; less than 0: there are no more, on with a new session.
  std::int32_t open(const Call& call, std::unique_ptr<Stream> stream);
  void say(std::int32_t id, std::string_view message);  // on an open-ended one
  void cancel(std::int32_t id);

  bool take(std::string_view bytes);  // false: it is over
  // Appends what is to be sent next. The library's words, if it is over.
  std::optional<std::string> give(std::string& bytes);
  bool wants_to_write() const;

  bool greeted() const noexcept { return greeted_; }  // it does speak HTTP/2
  bool leaving() const noexcept { return leaving_; }  // no new calls: it ends, or has no numbers
  std::size_t calls() const noexcept { return streams_.size(); }
  const EtcdRequest* oldest() const;  // that awaits an answer; or null
  Streams take_streams() { return std::exchange(streams_, {}); }

 private:
  struct Callbacks;

  Owner& owner_;
  nghttp2_session* raw_ = nullptr;
  Streams streams_;
  bool greeted_ = false;
  bool leaving_ = false;
};

}  // namespace holdfast::engines
