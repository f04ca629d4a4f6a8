#include "engines/zookeeper/zookeeper_session.h"

#include <algorithm>
#include <utility>

#include "engines/zookeeper/zookeeper_session_handle.h"

namespace holdfast::engines {
namespace {

// A session that was silent for so many time-outs is over.
constexpr int kSilences = 3;

}  // namespace

void ZookeeperHandle::event(zhandle_t* raw, int type, int state, const char* path, void*) {
  const InCallback here;
  auto* listener = static_cast<Listener*>(without_const(zoo_get_context(raw)));
  const std::lock_guard lock{listener->mutex};
  if (listener->session == nullptr) {
    return;
  }
  if (type != ZOO_SESSION_EVENT) {
    listener->session->events_.changed(path == nullptr ? std::string{} : path);
  } else {
    const Duration timeout = std::chrono::milliseconds{zoo_recv_timeout(raw)};
    listener->session->on_state(state, timeout);
  }
}

void ZookeeperSession::on_state(int state, Duration timeout) {
  const bool connected = state == ZOO_CONNECTED_STATE;
  if (connected) {
    negotiated_ = timeout.count();
  }
  {
    const std::lock_guard lock{mutex_};
    if (connected_.exchange(connected) && !connected) {
      silent_since_ = base::BootClock::now();
    }
    refused_ = state == ZOO_AUTH_FAILED_STATE;
    if (state == ZOO_EXPIRED_SESSION_STATE || state == ZOO_AUTH_FAILED_STATE) {
      expired_ = true;
    }
    changed_.notify_all();
  }
  if (connected) {
    events_.connected();
  } else {
    events_.disconnected(expired_);
  }
}

ZookeeperSession::ZookeeperSession(ZookeeperOptions options, Events events)
    : options_{std::move(options)}, events_{std::move(events)} {
  zoo_set_debug_level(static_cast<ZooLogLevel>(0));  // it would write to stderr
  open();
}

ZookeeperSession::~ZookeeperSession() {
  const auto last = handle();
  if (last != nullptr) {
    const std::lock_guard lock{last->listener->mutex};
    last->listener->session = nullptr;
  }
}

void ZookeeperSession::open() {
  auto fresh = std::make_shared<ZookeeperHandle>();
  fresh->listener->session = this;
  {
    const std::lock_guard lock{mutex_};
    expired_ = false;
    connected_ = false;
    silent_since_ = base::BootClock::now();
  }
  const auto timeout =
      std::chrono::duration_cast<std::chrono::milliseconds>(options_.session_timeout);
  {
    // Events of the new handle wait until it is in its place.
    const std::lock_guard quiet{fresh->listener->mutex};
    const base::ForksWait until_found;
    fresh->raw =
        zookeeper_init(options_.hosts.c_str(), &ZookeeperHandle::event,
                       static_cast<int>(timeout.count()), nullptr, fresh->listener.get(), 0);
    if (fresh->raw != nullptr) {
      // It would look up the hosts at every turn of its loop, holding a lock of
      // the C library that a fork() hands on locked. reopen() looks them up.
      zoo_set_servers_resolution_delay(fresh->raw, -1);
    }
    if (fresh->raw != nullptr && !options_.auth.empty()) {
      zoo_add_auth(fresh->raw, "digest", options_.auth.data(),
                   static_cast<int>(options_.auth.size()), nullptr, nullptr);
    }
    const std::lock_guard lock{mutex_};
    handle_ = fresh;
  }
}

void ZookeeperSession::reopen() {
  auto old = handle();
  if (old != nullptr) {
    const std::lock_guard lock{old->listener->mutex};
    old->listener->session = nullptr;
  }
  open();
  if (old != nullptr) {
    old->close();
  }
}

std::shared_ptr<ZookeeperHandle> ZookeeperSession::handle() const {
  const std::lock_guard lock{mutex_};
  return handle_;
}

Error ZookeeperSession::trouble() const {
  const std::lock_guard lock{mutex_};
  if (refused_) {
    return {ErrorCode::unauthorized, "zookeeper refused our identity", ZAUTHFAILED};
  }
  if (handle_ == nullptr || handle_->raw == nullptr) {
    return {ErrorCode::unavailable,
            "zookeeper: none of the hosts can be resolved: " + options_.hosts, std::nullopt};
  }
  return {ErrorCode::unavailable, "zookeeper: no server answers at " + options_.hosts,
          std::nullopt};
}

// The servers tell of an expiry only when we reach them, perhaps at addresses
// that are no longer theirs.
bool ZookeeperSession::is_given_up(base::Time now) const {
  const std::lock_guard lock{mutex_};
  return expired_ || (!connected_ && now - silent_since_ > kSilences * options_.session_timeout);
}

void ZookeeperSession::look_again() {
  const std::lock_guard lock{mutex_};
  if (handle_ == nullptr || handle_->raw == nullptr ||
      zoo_state(handle_->raw) == ZOO_CONNECTED_STATE) {
    return;
  }
  if (connected_.exchange(false)) {
    silent_since_ = base::BootClock::now();
  }
  if (is_unrecoverable(handle_->raw) != ZOK) {
    expired_ = true;
  }
}

bool ZookeeperSession::await_connection(base::Time until) const {
  std::unique_lock lock{mutex_};
  while (!connected_) {
    const base::Time now = base::BootClock::now();
    if (now >= until || refused_ || handle_ == nullptr || handle_->raw == nullptr) {
      return false;
    }
    changed_.wait_for(lock, std::min<Duration>(until - now, std::chrono::milliseconds{100}));
  }
  return true;
}

std::int64_t ZookeeperSession::id() const {
  std::int64_t id = 0;
  if (const auto current = handle()) {
    current->use([&](zhandle_t* raw) {
      id = zoo_client_id(raw)->client_id;
      return static_cast<int>(ZOK);
    });
  }
  return id;
}

std::string ZookeeperSession::server() const {
  std::string name;
  if (const auto current = handle()) {
    current->use([&](zhandle_t* raw) {
      const char* const known = zoo_get_current_server(raw);
      name = known == nullptr ? "" : known;
      return static_cast<int>(ZOK);
    });
  }
  return name;
}

}  // namespace holdfast::engines
