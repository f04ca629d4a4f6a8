#include "proof/fault_proxy.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <list>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "proof/proxy_connection.h"

namespace holdfast::proof {
namespace {

using base::FileDescriptor;

constexpr int kBacklog = 128;

tl::unexpected<Error> system_failure(const std::string& what, int number) {
  return fail(ErrorCode::unavailable, what + ": " + std::generic_category().message(number),
              number);
}

struct Target {
  sockaddr_storage address{};
  socklen_t length = 0;
};

Result<Target> resolve(const std::string& host, std::uint16_t port) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failure = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &found);
  if (failure != 0) {
    return fail(ErrorCode::unavailable, "cannot resolve " + host + ": " + gai_strerror(failure));
  }
  Target target;
  target.length = found->ai_addrlen;
  std::copy_n(reinterpret_cast<const char*>(found->ai_addr), found->ai_addrlen,
              reinterpret_cast<char*>(&target.address));
  freeaddrinfo(found);
  return target;
}

// A socket of this port of 127.0.0.1; 0: of any.
FileDescriptor bind_port(std::uint16_t port) {
  FileDescriptor fd{socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  const int on = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return {};
  }
  return fd;
}

std::uint16_t port_of(const FileDescriptor& fd) {
  sockaddr_in address{};
  socklen_t length = sizeof address;
  getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length);
  return ntohs(address.sin_port);
}

}  // namespace

// One thread moves everything, holding the mutex except while it sleeps; so a
// change made under the mutex holds for every byte that is moved later.
class FaultProxy::Impl {
 public:
  Impl(Target target, FileDescriptor reserved, FileDescriptor listener, FileDescriptor bell)
      : reserved_{std::move(reserved)},
        port_{port_of(reserved_)},
        targets_{target},
        listener_{std::move(listener)},
        bell_{std::move(bell)} {
    thread_ = std::thread{[this] { run(); }};
  }

  ~Impl() {
    change([this](ProxyRules&) { stopping_ = true; });
    thread_.join();
    for (ProxyConnection& connection : connections_) {
      connection.reset();
    }
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  std::uint16_t port() const noexcept { return port_; }

  template <typename Change>
  void change(Change what) {
    const std::scoped_lock lock{mutex_};
    what(rules_);
    ring();
  }

  // The thread may be asleep on these sockets, so it has to do it.
  void reset_where(bool (*chosen)(const ProxyConnection&)) {
    std::unique_lock lock{mutex_};
    doomed_ = chosen;
    ring();
    settled_.wait(lock, [this] { return doomed_ == nullptr; });
  }

  void refuse() {
    std::unique_lock lock{mutex_};
    refusing_ = true;
    ring();
    settled_.wait(lock, [this] { return !listener_; });
  }

  void accept_again() {
    std::unique_lock lock{mutex_};
    refusing_ = false;
    if (!listener_) {
      listener_ = bind_port(port_);
      listen(listener_.get(), kBacklog);
    }
    ring();
  }

  void retarget(std::vector<Target> targets) {
    const std::scoped_lock lock{mutex_};
    targets_ = std::move(targets);
  }

  template <typename Look>
  auto look(Look what) const {
    const std::scoped_lock lock{mutex_};
    return what(rules_);
  }
  std::size_t connections() const {
    const std::scoped_lock lock{mutex_};
    return connections_.size();
  }
  std::uint64_t accepted() const {
    const std::scoped_lock lock{mutex_};
    return accepted_;
  }

 private:
  void ring() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = write(bell_.get(), &one, sizeof one);
  }

  void run() {
    std::unique_lock lock{mutex_};
    while (!stopping_) {
      turn();
      std::vector<pollfd> polled{{.fd = bell_.get(), .events = POLLIN, .revents = 0}};
      if (listener_) {
        polled.push_back({.fd = listener_.get(), .events = POLLIN, .revents = 0});
      }
      auto due = ProxyClock::time_point::max();
      for (const ProxyConnection& connection : connections_) {
        connection.add_interest(rules_, polled);
        due = std::min(due, connection.next_due(rules_));
      }
      const auto now = ProxyClock::now();
      lock.unlock();
      poll(polled.data(), polled.size(), timeout(due, now));
      if (polled.front().revents != 0) {
        std::uint64_t rings = 0;
        [[maybe_unused]] const auto got = read(bell_.get(), &rings, sizeof rings);
      }
      lock.lock();
    }
  }

  // What is due already waits for room, which poll() reports.
  static int timeout(ProxyClock::time_point due, ProxyClock::time_point now) {
    if (due == ProxyClock::time_point::max() || due <= now) {
      return -1;
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(due - now);
    return static_cast<int>(std::min<std::int64_t>(left.count(), 60'000));
  }

  void turn() {
    if (refusing_) {
      listener_ = {};
    }
    while (listener_) {
      FileDescriptor client{
          accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)};
      if (!client) {
        break;
      }
      const Target& target = targets_[accepted_++ % targets_.size()];
      connections_.emplace_back(std::move(client), target.address, target.length);
    }
    if (doomed_ != nullptr) {
      connections_.remove_if([this](ProxyConnection& connection) {
        if (!doomed_(connection)) {
          return false;
        }
        connection.reset();
        return true;
      });
      doomed_ = nullptr;
    }
    settled_.notify_all();
    const auto now = ProxyClock::now();
    connections_.remove_if(
        [&](ProxyConnection& connection) { return !connection.step(rules_, now); });
  }

  const FileDescriptor reserved_;  // keeps the port while nobody listens
  const std::uint16_t port_;

  mutable std::mutex mutex_;
  std::condition_variable settled_;
  ProxyRules rules_;
  std::vector<Target> targets_;
  FileDescriptor listener_;
  FileDescriptor bell_;
  std::list<ProxyConnection> connections_;
  std::uint64_t accepted_ = 0;
  bool (*doomed_)(const ProxyConnection&) = nullptr;
  bool refusing_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

FaultProxy::FaultProxy(std::unique_ptr<Impl> impl) noexcept : impl_{std::move(impl)} {}
FaultProxy::~FaultProxy() = default;

Result<std::unique_ptr<FaultProxy>> FaultProxy::start(const std::string& host, std::uint16_t port) {
  const auto target = resolve(host, port);
  if (!target) {
    return tl::unexpected{target.error()};
  }
  FileDescriptor reserved = bind_port(0);
  FileDescriptor listener = reserved ? bind_port(port_of(reserved)) : FileDescriptor{};
  FileDescriptor bell{eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
  if (!listener || !bell || listen(listener.get(), kBacklog) != 0) {
    return system_failure("cannot listen on 127.0.0.1", errno);
  }
  return std::unique_ptr<FaultProxy>{new FaultProxy{
      std::make_unique<Impl>(*target, std::move(reserved), std::move(listener), std::move(bell))}};
}

std::uint16_t FaultProxy::port() const noexcept {
  return impl_->port();
}

Result<void> FaultProxy::retarget(const std::vector<Address>& targets) {
  std::vector<Target> resolved;
  for (const Address& each : targets) {
    auto target = resolve(each.host, each.port);
    if (!target) {
      return tl::unexpected{std::move(target.error())};
    }
    resolved.push_back(*target);
  }
  if (resolved.empty()) {
    return fail(ErrorCode::invalid_argument, "a proxy needs a target");
  }
  impl_->retarget(std::move(resolved));
  return {};
}

void FaultProxy::delay(Way way, Duration time) {
  impl_->change([&](ProxyRules& rules) { rules.of(way).delay = time; });
}

void FaultProxy::block(Way way) {
  impl_->change([&](ProxyRules& rules) { rules.of(way).blocked = true; });
}

void FaultProxy::unblock(Way way) {
  impl_->change([&](ProxyRules& rules) { rules.of(way).blocked = false; });
}

void FaultProxy::block_those_who_say(std::string words) {
  impl_->change([&](ProxyRules& rules) { rules.shunned = std::move(words); });
}

void FaultProxy::reset_all() {
  impl_->reset_where([](const ProxyConnection&) { return true; });
}

void FaultProxy::cut_after(Way way, std::size_t bytes) {
  impl_->change([&](ProxyRules& rules) { rules.of(way).cut_after = bytes; });
}

void FaultProxy::refuse_connections() {
  impl_->refuse();
}

void FaultProxy::accept_connections() {
  impl_->accept_again();
}

void FaultProxy::swallow_reply(Swallow swallow) {
  impl_->change([&](ProxyRules& rules) { rules.swallow = std::move(swallow); });
}

void FaultProxy::stop_swallowing() {
  impl_->change([](ProxyRules& rules) { rules.swallow.reset(); });
}

void FaultProxy::heal() {
  impl_->change([](ProxyRules& rules) {
    for (ProxyRules::OneWay& way : rules.ways) {
      way = {.bytes = way.bytes};
    }
    rules.swallow.reset();
    rules.shunned.clear();
  });
  impl_->accept_again();
  impl_->reset_where([](const ProxyConnection& connection) { return connection.is_mute(); });
}

std::size_t FaultProxy::connections() const {
  return impl_->connections();
}

std::uint64_t FaultProxy::accepted() const {
  return impl_->accepted();
}

std::uint64_t FaultProxy::bytes(Way way) const {
  return impl_->look(
      [&](const ProxyRules& rules) { return rules.ways.at(static_cast<std::size_t>(way)).bytes; });
}

std::uint64_t FaultProxy::swallowed() const {
  return impl_->look([](const ProxyRules& rules) { return rules.swallowed; });
}

std::uint64_t FaultProxy::cuts() const {
  return impl_->look([](const ProxyRules& rules) { return rules.cuts; });
}

}  // namespace holdfast::proof
