#include "support/loopback.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "support/eventually.h"

namespace holdfast::test {
namespace {

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

}  // namespace

Dialer::Dialer(std::uint16_t port) : fd_{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
  const timeval patience{.tv_sec = kPatience.count(), .tv_usec = 0};
  setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  const sockaddr_in address = loopback(port);
  if (connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    error_ = errno;
  }
}

bool Dialer::send(const std::string& bytes) {
  const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  error_ = sent < 0 ? errno : 0;
  return sent == static_cast<ssize_t>(bytes.size());
}

std::string Dialer::receive(std::size_t bytes) {
  std::string text(bytes, '\0');
  std::size_t had = 0;
  while (had < bytes) {
    const ssize_t got = recv(fd_.get(), text.data() + had, bytes - had, 0);
    if (got <= 0) {
      error_ = got < 0 ? errno : 0;
      break;
    }
    had += static_cast<std::size_t>(got);
  }
  text.resize(had);
  return text;
}

std::string Dialer::peek() {
  std::array<char, 4096> text{};
  const ssize_t got = recv(fd_.get(), text.data(), text.size(), MSG_PEEK | MSG_DONTWAIT);
  return {text.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
}

std::string Dialer::ending() {
  receive(1U << 20U);
  return error_ == 0 ? "end" : error_ == ECONNRESET ? "reset" : "error " + std::to_string(error_);
}

void Dialer::finish() {
  shutdown(fd_.get(), SHUT_WR);
}

struct EchoServer::State {
  base::FileDescriptor listener;
  mutable std::mutex mutex;
  std::string heard;
  bool stop = false;
  std::vector<base::FileDescriptor> connections;

  // False: the connection is over.
  bool serve(int fd) {
    std::array<char, 4096> bytes{};
    const ssize_t got = recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got <= 0) return got < 0 && errno == EAGAIN;
    std::string text{bytes.data(), static_cast<std::size_t>(got)};
    {
      const std::scoped_lock lock{mutex};
      heard += text;
    }
    std::ranges::transform(text, text.begin(),
                           [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return send(fd, text.data(), text.size(), MSG_NOSIGNAL) >= 0;
  }

  void run() {
    while (true) {
      std::vector<pollfd> polled{{.fd = listener.get(), .events = POLLIN, .revents = 0}};
      for (const auto& connection : connections) {
        polled.push_back({.fd = connection.get(), .events = POLLIN, .revents = 0});
      }
      poll(polled.data(), polled.size(), 20);
      {
        const std::scoped_lock lock{mutex};
        if (stop) return;
      }
      base::FileDescriptor client{accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC)};
      if (client) connections.push_back(std::move(client));
      std::erase_if(connections, [this](const auto& fd) { return !serve(fd.get()); });
    }
  }
};

EchoServer::EchoServer() : state_{std::make_shared<State>()} {
  state_->listener =
      base::FileDescriptor{socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  sockaddr_in address = loopback(0);
  socklen_t length = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  if (bind(state_->listener.get(), any, length) != 0 || listen(state_->listener.get(), 64) != 0 ||
      getsockname(state_->listener.get(), any, &length) != 0) {
    throw std::runtime_error{"no port for an echo server"};
  }
  port_ = ntohs(address.sin_port);
  thread_ = std::thread{[state = state_] { state->run(); }};
}

EchoServer::~EchoServer() {
  {
    const std::scoped_lock lock{state_->mutex};
    state_->stop = true;
  }
  thread_.join();
}

std::string EchoServer::heard() const {
  const std::scoped_lock lock{state_->mutex};
  return state_->heard;
}

}  // namespace holdfast::test
