#include "engines/etcd/etcd_link.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/fork.h"

namespace holdfast::engines {
namespace {

Error lost() {
  return {ErrorCode::unavailable, "the connection was lost", std::nullopt};
}

base::FileDescriptor connect_to(const engine::Url::Host& host, base::Time until) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  {
    const base::ForksWait until_found;
    const std::string port = std::to_string(host.port);
    if (getaddrinfo(host.name.c_str(), port.c_str(), &hints, &found) != 0) {
      return {};
    }
  }
  base::FileDescriptor connected;
  for (const addrinfo* each = found; each != nullptr && !connected; each = each->ai_next) {
    base::FileDescriptor fd{
        socket(each->ai_family, each->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    if (!fd) {
      continue;
    }
    int problem = ::connect(fd.get(), each->ai_addr, each->ai_addrlen) == 0 ? 0 : errno;
    if (problem == EINPROGRESS && (poll_until(fd.get(), POLLOUT, until) & POLLOUT) != 0) {
      socklen_t size = sizeof problem;
      getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &problem, &size);
    }
    if (problem == 0) {
      const int yes = 1;
      setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
      setsockopt(fd.get(), SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
      connected = std::move(fd);
    }
  }
  freeaddrinfo(found);
  return connected;
}

}  // namespace

std::string etcd_authority(const engine::Url::Host& host) {
  const bool v6 = host.name.find(':') != std::string::npos;
  return (v6 ? "[" + host.name + "]" : host.name) + ":" + std::to_string(host.port);
}

int poll_until(int fd, short events, base::Time until) {
  pollfd wanted{fd, events, 0};
  const base::Duration left = std::max(until - base::BootClock::now(), base::Duration::zero());
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return poll(&wanted, 1, static_cast<int>(std::min<std::int64_t>(ms, 60'000))) == 1
             ? wanted.revents
             : 0;
}

Result<std::unique_ptr<EtcdLink>> EtcdLink::connect(const engine::Url::Host& host, Tls* tls,
                                                    base::Time until) {
  base::FileDescriptor fd = connect_to(host, until);
  if (!fd) {
    return fail(ErrorCode::unavailable, "no server answers at " + etcd_authority(host));
  }
  std::unique_ptr<EtcdLink> link{new EtcdLink{std::move(fd)}};
  if (tls != nullptr) {
    if (auto known = link->shake_hands(*tls, host, until); !known) {
      Error error = std::move(known.error());
      error.text = etcd_authority(host) + ": " + error.text;
      return tl::unexpected{std::move(error)};
    }
  }
  return link;
}

Result<void> EtcdLink::shake_hands(Tls& tls, const engine::Url::Host& host, base::Time until) {
  auto session = tls.connect(host.name);
  if (!session) {
    return tl::unexpected{std::move(session.error())};
  }
  tls_ = *std::move(session);
  std::string nothing;
  auto moved = send("");
  while (moved && !tls_->is_ready()) {
    if (base::BootClock::now() >= until) {
      return fail(ErrorCode::unavailable, "TLS was not agreed upon in time");
    }
    poll_until(fd(), static_cast<short>(has_unsent() ? POLLIN | POLLOUT : POLLIN), until);
    moved = receive(nothing).and_then([&] { return send(""); });
  }
  if (!moved && moved.error().text == lost().text) {
    return fail(ErrorCode::unavailable,
                "the server ended the connection; perhaps it does not speak TLS at this port");
  }
  if (moved && tls_->protocol() != "h2") {
    return fail(ErrorCode::unavailable, "the server does not speak HTTP/2");
  }
  return moved;
}

Result<void> EtcdLink::send(std::string bytes) {
  if (tls_ != nullptr) {
    if (auto taken = tls_->send(bytes, unsent_); !taken) {
      return taken;
    }
  } else if (unsent_.empty()) {
    unsent_ = std::move(bytes);
  } else {
    unsent_ += bytes;
  }
  while (!unsent_.empty()) {
    const ssize_t sent = ::send(fd(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) {
      continue;
    }
    if (sent < 0) {
      return errno == EAGAIN ? Result<void>{} : tl::unexpected{lost()};
    }
    unsent_.erase(0, static_cast<std::size_t>(sent));
  }
  return {};
}

Result<void> EtcdLink::receive(std::string& bytes) {
  std::array<char, 65536> buffer;
  while (true) {
    const ssize_t got = recv(fd(), buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      return got < 0 && errno == EAGAIN ? Result<void>{} : tl::unexpected{lost()};
    }
    const std::string_view heard{buffer.data(), static_cast<std::size_t>(got)};
    if (tls_ == nullptr) {
      bytes.append(heard);
    } else if (auto read = tls_->receive(heard, bytes, unsent_); !read) {
      return read;
    }
    if (heard.size() < buffer.size()) {
      return {};  // it was all: saves another look
    }
  }
}

}  // namespace holdfast::engines
