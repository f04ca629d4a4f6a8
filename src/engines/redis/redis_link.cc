#include "engines/redis/redis_link.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "engines/redis/redis_errors.h"

namespace holdfast::engines {
namespace {

using namespace std::chrono_literals;

constexpr base::Duration kResolverPause = 2ms;
constexpr std::size_t kReadBytes = std::size_t{64} << 10U;

void set_options(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

}  // namespace

RedisLink::RedisLink(const RedisAccess& access, std::shared_ptr<RedisTls> tls)
    : access_{access}, tls_{std::move(tls)} {}

void RedisLink::open(const RedisAddress& address, std::string last_words,
                     std::size_t last_replies) {
  close();
  address_ = address;
  last_words_ = std::move(last_words);
  last_replies_ = last_replies;
  state_ = State::connecting;
  resolving_ = true;
  resolver_.begin(address_);
}

void RedisLink::close() {
  state_ = State::closed;
  resolving_ = false;
  candidates_.clear();
  session_.reset();
  socket_ = {};
  plain_out_.clear();
  wire_out_.clear();
  reader_.reset();
  asked_.clear();
  heard_ = 0;
}

tl::unexpected<Error> RedisLink::lost(const std::string& what, int error) const {
  return fail(ErrorCode::unavailable,
              what + " " + address_.text() + (error == 0 ? "" : ": ") +
                  (error == 0 ? "" : std::strerror(error)),
              error == 0 ? std::nullopt : std::optional{error});
}

Result<void> RedisLink::advance(short ready) {
  Result<void> done;
  if (state_ == State::connecting) {
    done = finish_connecting(ready);
    ready = 0;
  }
  if (done && state_ > State::connecting) {
    done = flush();
    if (done && ready != 0) {
      done = receive().and_then([&] { return flush(); });
    }
  }
  if (done && state_ == State::greeting) {
    done = hear_greeting();
  }
  if (!done) {
    close();
  }
  return done;
}

Result<void> RedisLink::finish_connecting(short ready) {
  if (std::exchange(resolving_, false)) {
    auto found = resolver_.found();
    if (!found) {
      resolving_ = true;
      return {};
    }
    if (!*found) {
      return tl::unexpected{found->error()};
    }
    candidates_ = **std::move(found);
    std::reverse(candidates_.begin(), candidates_.end());
    return connect_next();
  }
  if (ready == 0) {
    return {};
  }
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error == 0) {
    greet();
    return {};
  }
  return candidates_.empty() ? Result<void>{lost("cannot reach Redis at", error)} : connect_next();
}

Result<void> RedisLink::connect_next() {
  int error = ENOENT;
  while (!candidates_.empty()) {
    const SocketAddress next = candidates_.back();
    candidates_.pop_back();
    ++sockets_;
    socket_ = base::FileDescriptor{
        socket(next.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    if (!socket_) {
      error = errno;
      continue;
    }
    if (next.bytes.ss_family != AF_UNIX) {
      set_options(socket_.get());
    }
    if (connect(socket_.get(), reinterpret_cast<const sockaddr*>(&next.bytes), next.size) == 0) {
      greet();
      return {};
    }
    if (errno == EINPROGRESS) {
      return {};
    }
    error = errno;
  }
  return lost("cannot reach Redis at", error);
}

void RedisLink::greet() {
  state_ = State::greeting;
  if (!access_.password.empty()) {
    if (access_.user.empty()) {
      append_resp_command(plain_out_, "AUTH", access_.password);
    } else {
      append_resp_command(plain_out_, "AUTH", access_.user, access_.password);
    }
    asked_.emplace_back("AUTH");
  }
  append_resp_command(plain_out_, "HELLO", "2");
  asked_.emplace_back("HELLO");
  if (access_.database != 0) {
    append_resp_command(plain_out_, "SELECT", std::to_string(access_.database));
    asked_.emplace_back("SELECT");
  }
  append_resp_command(plain_out_, "CLIENT", "SETNAME", "holdfast");
  asked_.emplace_back("CLIENT");
  plain_out_ += last_words_;
  asked_.insert(asked_.end(), last_replies_, "");
  if (access_.tls) {
    auto session = tls_->connect(address_.host);
    if (session) {
      session_ = *std::move(session);
    }
  }
}

Result<void> RedisLink::hear_greeting() {
  while (heard_ < asked_.size()) {
    const auto reply = reader_.next();
    if (!reply) {
      return {};
    }
    if (auto good = check_greeting(*reply); !good) {
      return good;
    }
    ++heard_;
  }
  state_ = State::ready;
  return {};
}

Result<void> RedisLink::check_greeting(const RespValue& reply) {
  const std::string& about = asked_[heard_];
  if (reply.is_error()) {
    const bool old_server = about == "HELLO" && reply.text.starts_with("ERR");
    const bool matters =
        about != "CLIENT" && !old_server && !(about == "HELLO" && reply.text.starts_with("NOPERM"));
    return matters ? Result<void>{tl::unexpected{redis_error(reply.text)}} : Result<void>{};
  }
  if (about != "HELLO") {
    return {};
  }
  for (std::size_t i = 0; i + 1 < reply.items.size(); i += 2) {
    const std::string& key = reply.items[i].text;
    const std::string& value = reply.items[i + 1].text;
    if (key == "version") {
      greeting_.version = value;
    } else if (key == "role") {
      greeting_.role = value;
    } else if (key == "mode" && value == "cluster") {
      return tl::unexpected{redis_error("MOVED")};
    }
  }
  return {};
}

Result<void> RedisLink::flush() {
  if (access_.tls) {
    if (!session_) {
      return fail(ErrorCode::unavailable, "TLS cannot be started");
    }
    if (auto sent = session_->send(plain_out_, wire_out_); !sent) {
      return sent;
    }
  }
  std::string& out = access_.tls ? wire_out_ : plain_out_;
  while (!out.empty()) {
    const ssize_t sent = ::send(socket_.get(), out.data(), out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) {
      continue;
    }
    if (sent < 0) {
      return errno == EAGAIN || errno == EWOULDBLOCK
                 ? Result<void>{}
                 : Result<void>{lost("lost the connection to Redis at", errno)};
    }
    out.erase(0, static_cast<std::size_t>(sent));
  }
  return {};
}

Result<void> RedisLink::receive() {
  std::array<char, kReadBytes> buffer;
  while (true) {
    const ssize_t got = recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      return {};
    }
    if (got <= 0) {
      return lost("lost the connection to Redis at", got == 0 ? 0 : errno);
    }
    const std::string_view bytes{buffer.data(), static_cast<std::size_t>(got)};
    if (session_) {
      std::string plain;
      if (auto heard = session_->receive(bytes, plain, wire_out_); !heard) {
        return heard;
      }
      reader_.feed(plain);
    } else {
      reader_.feed(bytes);
    }
    if (bytes.size() < buffer.size()) {
      return {};  // it was all: saves another look
    }
  }
}

engine::Conversation::Wait RedisLink::wait() const {
  if (resolving_) {
    return {.fd = -1, .events = 0, .until = base::BootClock::now() + kResolverPause};
  }
  const bool writes =
      state_ == State::connecting || !wire_out_.empty() || (!session_ && !plain_out_.empty());
  return {.fd = socket_.get(), .events = static_cast<short>(writes ? POLLIN | POLLOUT : POLLIN)};
}

bool RedisLink::has_ended() const {
  char byte = 0;
  const ssize_t got = recv(socket_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

}  // namespace holdfast::engines
