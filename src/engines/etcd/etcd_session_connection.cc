#include "engines/etcd/etcd_session_connection.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <utility>

namespace holdfast::engines {
namespace {

constexpr Duration kPause = std::chrono::milliseconds{50};  // between attempts to connect

}  // namespace

EtcdConnection::EtcdConnection(EtcdOptions options, EtcdSession::Events events)
    : options_{std::move(options)},
      events_{std::move(events)},
      nudge_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)},
      trouble_{"no server was reached yet"} {}

EtcdConnection::~EtcdConnection() {
  stop();
}

void EtcdConnection::start() {
  thread_ = std::thread{[this] { run(); }};
}

void EtcdConnection::stop() {
  {
    const std::lock_guard lock{mutex_};
    stopping_ = true;
  }
  nudge();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void EtcdConnection::nudge() const {
  [[maybe_unused]] const int written = eventfd_write(nudge_.get(), 1);
}

bool EtcdConnection::await_ready(base::Time until) const {
  std::unique_lock lock{mutex_};
  while (!ready_ && !stopping_) {
    const base::Time now = base::BootClock::now();
    if (now >= until || refused_) {
      return false;
    }
    changed_.wait_for(lock, std::min<Duration>(until - now, std::chrono::milliseconds{100}));
  }
  return ready_;
}

Error EtcdConnection::trouble() const {
  const std::lock_guard lock{mutex_};
  return {refused_ ? ErrorCode::unauthorized : ErrorCode::unavailable, "etcd: " + trouble_,
          std::nullopt};
}

std::string EtcdConnection::server() const {
  const std::lock_guard lock{mutex_};
  return etcd_authority(host());
}

void EtcdConnection::run() {
  std::unique_lock lock{mutex_};
  while (!stopping_) {
    if (!ready_ && !connect(lock)) {
      finish_late(base::BootClock::now());
      tell(lock);
      if (!stopping_) {
        lock.unlock();
        poll_until(nudge_.get(), 0, base::BootClock::now() + kPause);
        lock.lock();
      }
      continue;
    }
    serve_once(lock);
  }
  drop("the store was closed");
  for (EtcdRequest* each : std::exchange(waiting_, {})) {
    finish(*each, EtcdStatusCode::unavailable, 0, "the store was closed");
  }
  tell(lock);
}

void EtcdConnection::serve_once(std::unique_lock<std::mutex>& lock) {
  const bool more = link_->has_unsent() || http2_->wants_to_write();
  std::array<pollfd, 2> wanted{
      {{link_->fd(), static_cast<short>(more ? POLLIN | POLLOUT : POLLIN), 0},
       {nudge_.get(), POLLIN, 0}}};
  // Nobody nudges us for a new request; it is not due before this poll ends.
  const base::Time begun = base::BootClock::now();
  const base::Time deadline = std::min<base::Time>(next_deadline(), begun + options_.timeout);
  const Duration left = std::max<Duration>(deadline - begun, Duration::zero());
  const auto wait = static_cast<int>(
      std::min<std::int64_t>(std::chrono::ceil<std::chrono::milliseconds>(left).count(), 60'000));
  lock.unlock();
  poll(wanted.data(), wanted.size(), wait);
  lock.lock();
  if (wanted[1].revents != 0) {
    eventfd_t count = 0;
    [[maybe_unused]] const int read = eventfd_read(nudge_.get(), &count);
  }
  if (wanted[0].revents != 0) {
    read_some();
  }
  if (!broken_ && !http2_->leaving()) {
    send_next_in_line();
  }
  const base::Time now = base::BootClock::now();
  if (now >= reopen_watches_ && !broken_) {
    if (leaderless_) {
      break_off("the member has no leader");
    } else {
      open_watches();
    }
  }
  flush();
  finish_late(now);
  if (http2_->leaving() && http2_->oldest() == nullptr) {
    break_off("the server went away");
  }
  if (broken_) {
    drop(trouble_);
  }
  tell(lock);
}

// Everything that was on its way is lost with the connection.
void EtcdConnection::drop(const std::string& why) {
  ready_ = false;
  trouble_ = why;
  const auto streams = http2_ == nullptr ? EtcdHttp2::Streams{} : http2_->take_streams();
  for (const auto& [id, stream] : streams) {
    if (stream->request != nullptr && stream->request != login_.get()) {
      finish(*stream->request, EtcdStatusCode::outcome_unknown, 0, why);
    }
  }
  for (const auto& [watch, request] : std::exchange(creating_, {})) {
    finish(*request, EtcdStatusCode::unavailable, 0, why);
  }
  // These were not sent: the next server may take them.
  waiting_.insert(waiting_.begin(), in_line_.begin(), in_line_.end());
  in_line_.clear();
  login_.reset();
  finish_unwelcome(EtcdStatusCode::unavailable, why);
  for (EtcdRequest* each : std::exchange(unwatched_, {})) {
    finish(*each, EtcdStatusCode::unavailable, 0, why);
  }
  watch_stream_ = -1;
  watching_.clear();
  reopen_watches_ = base::kNever;
  http2_ = nullptr;
  link_ = nullptr;
}

base::Time EtcdConnection::next_deadline() const {
  base::Time next = reopen_watches_;
  const EtcdRequest* const oldest = http2_ == nullptr ? nullptr : http2_->oldest();
  if (oldest != nullptr) {
    next = std::min(next, oldest->since_ + options_.timeout);
  }
  for (const auto& [watch, request] : creating_) {
    next = std::min(next, request->since_ + options_.timeout);
  }
  return next;
}

// A server that keeps us waiting is left for another.
void EtcdConnection::finish_late(base::Time now) {
  while (!waiting_.empty() && waiting_.front()->since_ + options_.timeout <= now) {
    finish(*waiting_.front(), EtcdStatusCode::unavailable, 0, trouble_);
    waiting_.pop_front();
  }
  const base::Time deadline = next_deadline();
  if (ready_ && deadline <= now && reopen_watches_ > now) {
    break_off(etcd_authority(host()) + " does not answer in time");
  }
}

void EtcdConnection::tell(std::unique_lock<std::mutex>& lock) {
  const auto finished = std::exchange(finished_, {});
  const auto rung = std::exchange(rung_, {});
  const bool news = std::exchange(news_, false);
  if (finished.empty() && rung.empty() && !news) {
    return;
  }
  lock.unlock();
  for (EtcdRequest* each : finished) {
    each->waiter_.resume();
  }
  if (news) {
    events_.connected();
  }
  for (const auto& [watch, ended] : rung) {
    events_.changed(watch, ended);
  }
  lock.lock();
}

}  // namespace holdfast::engines
