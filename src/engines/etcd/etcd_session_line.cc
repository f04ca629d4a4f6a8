// The line to one of the servers: how it comes about, and the bytes on it.
#include <poll.h>

#include <algorithm>
#include <utility>

#include "engines/etcd/etcd_session_connection.h"

namespace holdfast::engines {
namespace {

constexpr Duration kGlance = std::chrono::milliseconds{100};  // while nobody may nudge us
constexpr std::size_t kMostAtOnce = 65536;                    // bytes in one go

}  // namespace

const engine::Url::Host& EtcdConnection::host() const {
  return options_.hosts[host_ % options_.hosts.size()];
}

bool EtcdConnection::connect(std::unique_lock<std::mutex>& lock) {
  ++host_;
  const engine::Url::Host server = host();
  // A caller's patience must reach to the last of them.
  const base::Time until =
      base::BootClock::now() + options_.timeout / static_cast<int>(options_.hosts.size());
  lock.unlock();
  auto link = EtcdLink::connect(server, options_.tls.get(), until);
  lock.lock();
  if (!link || stopping_) {
    if (!link) {
      give_up_on_host(link.error());
    }
    return false;
  }
  link_ = *std::move(link);
  http2_ = std::make_unique<EtcdHttp2>(static_cast<EtcdHttp2::Owner&>(*this));
  broken_ = leaderless_ = false;
  token_.clear();
  login_error_.reset();
  last_login_ = {};
  trouble_ = etcd_authority(server) + " does not answer in time";
  // Whoever merely accepts connections is no server yet.
  bool good = talk_until(lock, until, [this] { return http2_->greeted(); });
  if (good && !options_.user.empty()) {
    begin_login();
    good = talk_until(lock, until, [this] { return login_ == nullptr; }) && !login_error_;
  }
  if (!good) {
    const Error why = login_error_.value_or(
        Error{broken_ ? broken_by_ : ErrorCode::unavailable, trouble_, std::nullopt});
    drop(trouble_);
    give_up_on_host(why);
    return false;
  }
  open_watches();
  ready_ = true;
  refused_ = false;
  refusals_ = 0;
  send_waiting();
  flush();
  changed_.notify_all();
  return true;
}

// If all of them turn us away, there is no use in waiting.
void EtcdConnection::give_up_on_host(const Error& why) {
  trouble_ = why.text;
  refusals_ = why.code == ErrorCode::unauthorized ? refusals_ + 1 : 0;
  refused_ = refusals_ >= options_.hosts.size();
  if (refused_) {
    for (EtcdRequest* each : std::exchange(waiting_, {})) {
      finish(*each, EtcdStatusCode::unauthorized, 0, trouble_);
    }
    changed_.notify_all();
  }
}

// False: it broke, or it is too late.
template <typename Done>
bool EtcdConnection::talk_until(std::unique_lock<std::mutex>& lock, base::Time until,
                                const Done& done) {
  flush();
  while (!done()) {
    const base::Time now = base::BootClock::now();
    if (broken_ || stopping_ || now >= until) {
      return false;
    }
    const auto events = static_cast<short>(link_->has_unsent() ? POLLIN | POLLOUT : POLLIN);
    lock.unlock();
    poll_until(link_->fd(), events, std::min<base::Time>(until, now + kGlance));
    lock.lock();
    read_some();
    flush();
  }
  return true;
}

void EtcdConnection::break_off(std::string why, ErrorCode code) {
  broken_ = true;
  broken_by_ = code;
  trouble_ = std::move(why);
}

void EtcdConnection::flush() {
  while (!broken_ && http2_ != nullptr) {
    std::string bytes;
    while (bytes.size() < kMostAtOnce && !link_->has_unsent()) {
      const std::size_t before = bytes.size();
      if (const auto over = http2_->give(bytes)) {
        break_off(*over);
      }
      if (bytes.size() == before) {
        break;
      }
    }
    const bool nothing = bytes.empty() && !link_->has_unsent();
    if (nothing) {
      return;
    }
    auto sent = link_->send(std::move(bytes));
    if (!sent) {
      break_off(sent.error().text, sent.error().code);
    }
    if (!sent || link_->has_unsent()) {
      nudge();  // the thread waits for room, or cleans up
      return;
    }
  }
}

void EtcdConnection::read_some() {
  if (broken_) {
    return;
  }
  heard_.clear();
  const auto received = link_->receive(heard_);
  if (!heard_.empty() && !http2_->take(heard_)) {
    break_off(http2_->greeted() ? "the connection was lost" : not_spoken_to());
    return;
  }
  if (!received) {
    const bool said = http2_->greeted() || received.error().code == ErrorCode::unauthorized;
    break_off(said ? received.error().text : not_spoken_to(), received.error().code);
  }
}

std::string EtcdConnection::not_spoken_to() const {
  return etcd_authority(host()) + " does not speak HTTP/2" +
         (link_->is_secret() ? "" : "; if it speaks TLS, write tls=true or ca=FILE");
}

}  // namespace holdfast::engines
