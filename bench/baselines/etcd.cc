// etcd by hand: the two transactions that a lock and its release need, each
// awaited, by one thread that reads and writes its one connection itself.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "baselines.h"
#include "engines/etcd/etcd_wire.h"

namespace baselines {
namespace {

namespace etcd = holdfast::engines;

class Connection {
 public:
  explicit Connection(std::uint16_t port) : fd_{socket(AF_INET, SOCK_STREAM, 0)} {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      give_up("connect");
    }
    const int yes = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
        callbacks, [](nghttp2_session*, std::uint8_t, std::int32_t, const std::uint8_t* data,
                      std::size_t size, void* self) {
          auto* connection = static_cast<Connection*>(self);
          connection->answer_.append(reinterpret_cast<const char*>(data), size);
          return 0;
        });
    nghttp2_session_callbacks_set_on_stream_close_callback(
        callbacks, [](nghttp2_session*, std::int32_t, std::uint32_t, void* self) {
          static_cast<Connection*>(self)->answered_ = true;
          return 0;
        });
    nghttp2_session_client_new(&session_, callbacks, this);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, nullptr, 0);
  }
  ~Connection() {
    nghttp2_session_del(session_);
    close(fd_);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  std::string call(const char* method, const std::string& message) {
    const auto size = static_cast<std::uint32_t>(message.size());
    question_ = {'\0', static_cast<char>(size >> 24U), static_cast<char>(size >> 16U),
                 static_cast<char>(size >> 8U), static_cast<char>(size)};
    question_ += message;
    answer_.clear();
    answered_ = false;
    const std::array headers{header(":method", "POST"), header(":scheme", "http"),
                             header(":path", method),   header(":authority", "localhost"),
                             header("te", "trailers"),  header("content-type", "application/grpc")};
    nghttp2_data_provider provider{};
    provider.source.ptr = this;
    provider.read_callback = &Connection::read_question;
    nghttp2_submit_request(session_, nullptr, headers.data(), headers.size(), &provider, nullptr);
    send_all();
    std::array<std::uint8_t, 65536> buffer;
    while (!answered_) {
      const ssize_t got = recv(fd_, buffer.data(), buffer.size(), 0);
      if (got <= 0 ||
          nghttp2_session_mem_recv(session_, buffer.data(), static_cast<std::size_t>(got)) < 0) {
        give_up("etcd");
      }
      send_all();
    }
    constexpr std::size_t kHead = 5;
    if (answer_.size() < kHead) {
      give_up(method);
    }
    return answer_.substr(kHead);
  }

 private:
  static nghttp2_nv header(const char* name, const char* value) {
    const auto bytes = [](const char* text) {
      return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text));  // NOLINT: it is copied
    };
    return {bytes(name), bytes(value), std::strlen(name), std::strlen(value), NGHTTP2_NV_FLAG_NONE};
  }
  static ssize_t read_question(nghttp2_session*, std::int32_t, std::uint8_t* buffer,
                               std::size_t room, std::uint32_t* flags, nghttp2_data_source* source,
                               void*) {
    std::string& question = static_cast<Connection*>(source->ptr)->question_;
    const std::size_t count = std::min(room, question.size());
    std::memcpy(buffer, question.data(), count);
    question.erase(0, count);
    if (question.empty()) {
      *flags |= NGHTTP2_DATA_FLAG_EOF;
    }
    return static_cast<ssize_t>(count);
  }
  void send_all() {
    std::string bytes;
    const std::uint8_t* part = nullptr;
    for (ssize_t count = 0; (count = nghttp2_session_mem_send(session_, &part)) > 0;) {
      bytes.append(reinterpret_cast<const char*>(part), static_cast<std::size_t>(count));
    }
    if (!bytes.empty() &&
        send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(bytes.size())) {
      give_up("send");
    }
  }

  const int fd_;
  nghttp2_session* session_ = nullptr;
  std::string question_;
  std::string answer_;
  bool answered_ = false;
};

// One lock, taken and given back, as etcd's own recipe does it.
class ByHand {
 public:
  explicit ByHand(const std::string& port)
      : connection_{static_cast<std::uint16_t>(std::stoi(port))} {
    const auto lease = etcd::decode_lease(
        connection_.call("/etcdserverpb.Lease/LeaseGrant", etcd::encode_grant(30)));
    if (!lease) {
      give_up("a lease");
    }
    lease_ = lease->id;
  }

  void take(const std::string& name) {
    const std::string queue = "by-hand-" + name + "/";
    key_ = queue + std::to_string(lease_);
    const etcd::EtcdOperation look{
        .what = What::range, .key = queue, .end = etcd::etcd_prefix_end(queue)};
    etcd::EtcdTransaction wanted;
    wanted.compares.push_back({.key = key_});
    wanted.success.push_back({.what = What::put, .key = key_, .lease = lease_});
    wanted.success.push_back(look);
    wanted.failure.push_back(look);
    revision_ = transact(wanted, "taking");
  }

  void leave() {
    etcd::EtcdTransaction wanted;
    wanted.compares.push_back({.key = key_, .revision = revision_});
    wanted.success.push_back({.what = What::remove, .key = key_});
    transact(wanted, "leaving");
  }

 private:
  using What = etcd::EtcdOperation::What;

  std::int64_t transact(const etcd::EtcdTransaction& wanted, const char* what) {
    const auto done =
        etcd::decode_transaction(connection_.call("/etcdserverpb.KV/Txn", encode(wanted)));
    if (!done || !done->succeeded) {
      give_up(what);
    }
    return done->revision;
  }

  Connection connection_;
  std::int64_t lease_ = 0;
  std::string key_;
  std::int64_t revision_ = 0;
};

}  // namespace

double etcd_cycles(const std::string& port, unsigned threads, double seconds) {
  constexpr std::size_t kNames = 100;  // each, as in U1 and U32
  std::vector<std::unique_ptr<ByHand>> each(threads);
  for (auto& one : each) {
    one = std::make_unique<ByHand>(port);
  }
  return repeat(seconds, threads, [&](unsigned thread, std::size_t i) {
    each[thread]->take(std::to_string(thread) + "-" + std::to_string(i % kNames));
    each[thread]->leave();
  });
}

double etcd_hand_overs(const std::string& port, double seconds) {
  ByHand writer{port};
  bool taken = false;
  return fifo_hand_overs(seconds, [&] {
    if (std::exchange(taken, !taken)) {
      writer.leave();
    } else {
      writer.take("x");
    }
  });
}

}  // namespace baselines
