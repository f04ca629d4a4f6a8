#include "proof/proxy_connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace holdfast::proof {
namespace {

constexpr std::size_t kMostUnderWay = std::size_t{1} << 20U;
constexpr std::size_t kFirstWords = 1024;
constexpr std::size_t kPiece = std::size_t{1} << 16U;

bool would_block() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

void reset_on_close(int fd) noexcept {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

void send_at_once(int fd) noexcept {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

bool ProxyConnection::Pipe::full() const noexcept {
  return size >= kMostUnderWay;
}

ProxyConnection::ProxyConnection(base::FileDescriptor client, const sockaddr_storage& target,
                                 socklen_t length)
    : client_{std::move(client)}, address_{target}, address_length_{length} {
  send_at_once(client_.get());
}

void ProxyConnection::reset() noexcept {
  reset_on_close(client_.get());
  if (target_) {
    reset_on_close(target_.get());
  }
}

bool ProxyConnection::step(ProxyRules& rules, ProxyClock::time_point now) {
  // While requests are blocked, no connection reaches the target either.
  if (!target_ && !rules.of(Way::to_store).blocked && !connect_target()) {
    reset();
    return false;
  }
  const int client = client_.get();
  const int target = target_.get();
  bool fine = read(requests_, client, rules, now);
  if (fine && target_) {
    fine = write(requests_, target, rules, now) && read(replies_, target, rules, now) &&
           write(replies_, client, rules, now);
  }
  if (!fine) {
    reset();
    return false;
  }
  return !(requests_.done && replies_.done);
}

bool ProxyConnection::is_blocked(Way way, const ProxyRules& rules) const {
  return rules.ways.at(static_cast<std::size_t>(way)).blocked ||
         (!rules.shunned.empty() && first_words_.find(rules.shunned) != std::string::npos);
}

bool ProxyConnection::connect_target() {
  target_ = base::FileDescriptor{
      socket(address_.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  if (!target_) {
    return false;
  }
  send_at_once(target_.get());
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): sockets are like that
  const auto* address = reinterpret_cast<const sockaddr*>(&address_);
  return connect(target_.get(), address, address_length_) == 0 || errno == EINPROGRESS;
}

bool ProxyConnection::read(Pipe& pipe, int from, ProxyRules& rules, ProxyClock::time_point now) {
  while (!pipe.read_all && !pipe.full()) {
    std::string piece(kPiece, '\0');
    const ssize_t got = recv(from, piece.data(), piece.size(), 0);
    if (got < 0) {
      // ENOTCONN: the connection to the target is still being made.
      return would_block() || errno == ENOTCONN;
    }
    if (got == 0) {
      pipe.read_all = true;
      pipe.chunks.push_back({.bytes = {}, .due = now + rules.of(pipe.way).delay, .end = true});
      return true;
    }
    piece.resize(static_cast<std::size_t>(got));
    if (!take(pipe, std::move(piece), rules, now)) {
      return false;
    }
  }
  return true;
}

bool ProxyConnection::take(Pipe& pipe, std::string bytes, ProxyRules& rules,
                           ProxyClock::time_point now) {
  if (pipe.way == Way::to_store && first_words_.size() < kFirstWords) {
    first_words_ += bytes.substr(0, kFirstWords - first_words_.size());
  }
  if (pipe.way == Way::from_store && cut_on_answer_) {
    ++rules.cuts;
    return false;
  }
  if (pipe.way == Way::from_store && mute_) {
    return true;
  }
  const auto swallows = pipe.way == Way::to_store ? match(pipe, bytes, rules) : std::nullopt;
  pipe.size += bytes.size();
  pipe.chunks.push_back(
      {.bytes = std::move(bytes), .due = now + rules.of(pipe.way).delay, .swallows = swallows});
  return true;
}

std::optional<Swallow::Then> ProxyConnection::match(Pipe& pipe, const std::string& bytes,
                                                    ProxyRules& rules) {
  if (!rules.swallow) {
    pipe.tail.clear();
    return std::nullopt;
  }
  const std::string& pattern = rules.swallow->pattern;
  const std::string text = pipe.tail + bytes;
  if (text.find(pattern) == std::string::npos) {
    // Not empty, or it would have been found.
    pipe.tail = text.substr(text.size() - std::min(text.size(), pattern.size() - 1));
    return std::nullopt;
  }
  pipe.tail.clear();
  ++rules.swallowed;
  const Swallow::Then then = rules.swallow->then;
  if (rules.swallow->times == 1) {
    rules.swallow.reset();
  } else if (rules.swallow->times > 1) {
    --rules.swallow->times;
  }
  return then;
}

bool ProxyConnection::write(Pipe& pipe, int to, ProxyRules& rules, ProxyClock::time_point now) {
  ProxyRules::OneWay& way = rules.of(pipe.way);
  while (!pipe.chunks.empty() && !is_blocked(pipe.way, rules) && pipe.chunks.front().due <= now) {
    Chunk& chunk = pipe.chunks.front();
    if (chunk.end) {
      shutdown(to, SHUT_WR);
      pipe.done = true;
      pipe.chunks.pop_front();
      return true;
    }
    const std::size_t most =
        std::min(chunk.bytes.size(), way.cut_after.value_or(chunk.bytes.size()));
    const ssize_t put = most == 0 ? 0 : send(to, chunk.bytes.data(), most, MSG_NOSIGNAL);
    if (put < 0) {
      return would_block() || errno == ENOTCONN;
    }
    const auto passed = static_cast<std::size_t>(put);
    way.bytes += passed;
    pipe.size -= passed;
    if (way.cut_after) {
      *way.cut_after -= passed;
      if (*way.cut_after == 0) {
        way.cut_after.reset();
        ++rules.cuts;
        return false;
      }
    }
    if (passed < chunk.bytes.size()) {
      chunk.bytes.erase(0, passed);
      continue;
    }
    if (chunk.swallows && !mute_) {
      mute_ = true;
      cut_on_answer_ = *chunk.swallows == Swallow::Then::cut;
    }
    pipe.chunks.pop_front();
  }
  return true;
}

void ProxyConnection::add_interest(const ProxyRules& rules, std::vector<pollfd>& polled) const {
  const auto now = ProxyClock::now();
  const auto events = [&](const Pipe& in, const Pipe& out) {
    short wanted = 0;
    if (!in.read_all && !in.full()) {
      wanted |= POLLIN;
    }
    if (!out.chunks.empty() && !is_blocked(out.way, rules) && out.chunks.front().due <= now) {
      wanted |= POLLOUT;
    }
    return wanted;
  };
  // Nothing wanted: not polled at all, for POLLHUP cannot be switched off.
  const auto add = [&](int fd, short wanted) {
    if (wanted != 0) {
      polled.push_back({.fd = fd, .events = wanted, .revents = 0});
    }
  };
  add(client_.get(), events(requests_, replies_));
  if (target_) {
    add(target_.get(), events(replies_, requests_));
  }
}

ProxyClock::time_point ProxyConnection::next_due(const ProxyRules& rules) const {
  auto next = ProxyClock::time_point::max();
  for (const Pipe* pipe : {&requests_, &replies_}) {
    if (!pipe->chunks.empty() && !is_blocked(pipe->way, rules)) {
      next = std::min(next, pipe->chunks.front().due);
    }
  }
  return next;
}

}  // namespace holdfast::proof
