#include "engines/zookeeper/zookeeper_session.h"

#include <zookeeper/zookeeper.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <shared_mutex>
#include <system_error>
#include <utility>

#include "base/fork.h"

namespace holdfast::engines {
namespace {

ZookeeperStatus status_of(int code) {
  switch (code) {
    case ZOK:
      return ZookeeperStatus::ok;
    case ZNONODE:
      return ZookeeperStatus::no_node;
    case ZNODEEXISTS:
      return ZookeeperStatus::node_exists;
    case ZBADVERSION:
      return ZookeeperStatus::bad_version;
    case ZNOTEMPTY:
      return ZookeeperStatus::not_empty;
    case ZNOAUTH:
    case ZAUTHFAILED:
    case ZINVALIDACL:
      return ZookeeperStatus::unauthorized;
    case ZINVALIDSTATE:
      return ZookeeperStatus::unavailable;
    case ZCLOSING:
    case ZCONNECTIONLOSS:
    case ZOPERATIONTIMEOUT:
    case ZSESSIONEXPIRED:
    case ZSESSIONMOVED:
    case ZRUNTIMEINCONSISTENCY:
    case ZSYSTEMERROR:
    case ZMARSHALLINGERROR:
      return ZookeeperStatus::outcome_unknown;
    default:
      return ZookeeperStatus::refused;
  }
}

int flags_of(ZookeeperMode mode) {
  switch (mode) {
    case ZookeeperMode::persistent:
      return ZOO_PERSISTENT;
    case ZookeeperMode::container:
      return ZOO_CONTAINER;
    case ZookeeperMode::ephemeral:
      return ZOO_EPHEMERAL;
    case ZookeeperMode::ephemeral_sequential:
      return ZOO_EPHEMERAL_SEQUENTIAL;
  }
  return ZOO_PERSISTENT;
}

// A session that was silent for so many time-outs is over.
constexpr int kSilences = 3;

int length(const std::string& text) {
  return static_cast<int>(text.size());
}

// A callback of the library runs on this thread, which closing a handle would
// wait for.
thread_local bool in_callback = false;

class InCallback {
 public:
  InCallback() noexcept : before_{std::exchange(in_callback, true)} {}
  ~InCallback() { in_callback = before_; }
  InCallback(const InCallback&) = delete;
  InCallback& operator=(const InCallback&) = delete;

 private:
  bool before_;
};

// The library hands back as const what was given to it otherwise.
void* without_const(const void* data) {
  return const_cast<void*>(data);  // NOLINT(cppcoreguidelines-pro-type-const-cast)
}

ZookeeperRequest& request_of(const void* data) {
  return *static_cast<ZookeeperRequest*>(without_const(data));
}

void fill(ZookeeperReply& reply, const Stat* stat) {
  if (stat != nullptr) {
    reply.czxid = stat->czxid;
    reply.mzxid = stat->mzxid;
    reply.ctime_ms = stat->ctime;
    reply.mtime_ms = stat->mtime;
    reply.version = stat->version;
    reply.owner = stat->ephemeralOwner;
  }
}

void fill(ZookeeperReply& reply, const String_vector* names) {
  if (names != nullptr) {
    reply.children.assign(names->data, names->data + names->count);
  }
}

}  // namespace

Error ZookeeperReply::error() const {
  const std::string words = std::string{"zookeeper: "} + zerror(native);
  switch (status) {
    case ZookeeperStatus::unauthorized:
      return {ErrorCode::unauthorized, words, native};
    case ZookeeperStatus::outcome_unknown:
      return {ErrorCode::outcome_unknown, words, native};
    default:
      return {ErrorCode::unavailable, words, native};
  }
}

bool zookeeper_did_not_send(const Error& error) {
  return error.native == ZINVALIDSTATE;
}

bool ZookeeperRequest::send() {
  const int code = send_(*this);
  if (code != ZOK) {
    reply_.native = code;
    reply_.status = status_of(code);
  }
  return code == ZOK;
}

void ZookeeperRequest::complete(int code) {
  const InCallback here;
  reply_.native = code;
  reply_.status = status_of(code);
  done_();  // this may be gone afterwards
}

bool ZookeeperRequest::await_suspend(std::coroutine_handle<> waiter) {
  done_ = [waiter] { waiter.resume(); };
  return send();
}

// Counts the two answers and the end of this function: whoever is last goes on.
bool ZookeeperPair::await_suspend(std::coroutine_handle<> waiter) {
  const auto left = left_;
  const auto count_down = [left, waiter] {
    if (left->fetch_sub(1) == 1) {
      waiter.resume();
    }
  };
  first_.done_ = count_down;
  second_.done_ = count_down;
  int failed = first_.send() ? 0 : 1;
  failed += second_.send() ? 0 : 1;
  return left->fetch_sub(1 + failed) != 1 + failed;
}

// The vendor's handle, closed at the end of its session or with the last request that uses
// it, and never by the thread that it would wait for.
struct ZookeeperSession::Handle {
  // What events find; there for as long as they can come, which is longer than the handle
  // if it is closed by another thread.
  struct Listener {
    std::recursive_mutex mutex;           // what an event leads to may end the session
    ZookeeperSession* session = nullptr;  // null once that is gone
  };

  zhandle_t* raw = nullptr;
  const std::shared_ptr<Listener> listener = std::make_shared<Listener>();
  const std::uint64_t generation = base::fork_generation();

  Handle() = default;
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    if (raw == nullptr || closed || generation != base::fork_generation()) {
      return;  // a child must not say good-bye on its parent's connection
    }
    if (!in_callback) {
      zookeeper_close(raw);
      return;
    }
    try {
      std::thread{[handle = raw, until_closed = listener] { zookeeper_close(handle); }}.detach();
    } catch (const std::system_error&) {
      // No thread to be had: the session, and its events, end with the process.
      new std::shared_ptr<Listener>{listener};
    }
  }

  // Calls the library, unless the handle is closed.
  template <typename Call>
  int use(Call call) {
    const std::shared_lock lock{in_use};
    return raw == nullptr || closed ? ZINVALIDSTATE : call(raw);
  }

  // The library never answers what it is given in the moment in which it learns that the
  // session is over, except by closing. Not on its own thread.
  void close() {
    {
      const std::lock_guard lock{in_use};
      if (raw == nullptr || std::exchange(closed, true)) {
        return;
      }
    }
    zookeeper_close(raw);
  }

  std::shared_mutex in_use;
  bool closed = false;
};

struct ZookeeperSession::Callbacks {
  static void event(zhandle_t* raw, int type, int state, const char* path, void*) {
    const InCallback here;
    auto* listener = static_cast<Handle::Listener*>(without_const(zoo_get_context(raw)));
    const std::lock_guard lock{listener->mutex};
    if (listener->session == nullptr) {
      return;
    }
    if (type != ZOO_SESSION_EVENT) {
      listener->session->events_.changed(path == nullptr ? std::string{} : path);
    } else {
      session_event(*listener->session, raw, state);
    }
  }

  static void session_event(ZookeeperSession& session, zhandle_t* raw, int state) {
    const bool connected = state == ZOO_CONNECTED_STATE;
    if (connected) {
      session.negotiated_ = Duration{std::chrono::milliseconds{zoo_recv_timeout(raw)}}.count();
    }
    {
      const std::lock_guard lock{session.mutex_};
      if (session.connected_.exchange(connected) && !connected) {
        session.silent_since_ = base::BootClock::now();
      }
      session.refused_ = state == ZOO_AUTH_FAILED_STATE;
      if (state == ZOO_EXPIRED_SESSION_STATE || state == ZOO_AUTH_FAILED_STATE) {
        session.expired_ = true;
      }
      session.changed_.notify_all();
    }
    if (connected) {
      session.events_.connected();
    } else {
      session.events_.disconnected(session.expired_);
    }
  }

  static void created(int code, const char* path, const Stat* stat, const void* data) {
    ZookeeperReply& reply = request_of(data).reply();
    reply.text = path == nullptr ? "" : path;
    fill(reply, stat);
    request_of(data).complete(code);
  }
  static void done(int code, const void* data) { request_of(data).complete(code); }
  static void changed(int code, const Stat* stat, const void* data) {
    fill(request_of(data).reply(), stat);
    request_of(data).complete(code);
  }
  static void got(int code, const char* value, int size, const Stat* stat, const void* data) {
    ZookeeperReply& reply = request_of(data).reply();
    if (value != nullptr && size > 0) {
      reply.text.assign(value, static_cast<std::size_t>(size));
    }
    fill(reply, stat);
    request_of(data).complete(code);
  }
  static void listed(int code, const String_vector* names, const Stat* stat, const void* data) {
    fill(request_of(data).reply(), names);
    fill(request_of(data).reply(), stat);
    request_of(data).complete(code);
  }
};

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
  auto fresh = std::make_shared<Handle>();
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
        zookeeper_init(options_.hosts.c_str(), &Callbacks::event, static_cast<int>(timeout.count()),
                       nullptr, fresh->listener.get(), 0);
    if (fresh->raw != nullptr) {
      // It would look up the hosts at every turn of its loop, holding a lock of
      // the C library that a fork() hands on locked. reopen() looks them up.
      zoo_set_servers_resolution_delay(fresh->raw, -1);
    }
    if (fresh->raw != nullptr && !options_.auth.empty()) {
      zoo_add_auth(fresh->raw, "digest", options_.auth.data(), length(options_.auth), nullptr,
                   nullptr);
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

std::shared_ptr<ZookeeperSession::Handle> ZookeeperSession::handle() const {
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

ZookeeperRequest ZookeeperSession::create(std::string path, std::string data, ZookeeperMode mode) {
  return ZookeeperRequest{[handle = handle(), path = std::move(path), data = std::move(data), mode,
                           owned = !options_.auth.empty()](ZookeeperRequest& request) {
    const ACL_vector* acl = owned ? &ZOO_CREATOR_ALL_ACL : &ZOO_OPEN_ACL_UNSAFE;
    return handle->use([&](zhandle_t* raw) {
      return zoo_acreate2(raw, path.c_str(), data.data(), length(data), acl, flags_of(mode),
                          &Callbacks::created, &request);
    });
  }};
}

ZookeeperRequest ZookeeperSession::remove(std::string path) {
  return ZookeeperRequest{[handle = handle(), path = std::move(path)](ZookeeperRequest& request) {
    return handle->use([&](zhandle_t* raw) {
      return zoo_adelete(raw, path.c_str(), -1, &Callbacks::done, &request);
    });
  }};
}

ZookeeperRequest ZookeeperSession::set(std::string path, std::string data, std::int32_t version) {
  return ZookeeperRequest{[handle = handle(), path = std::move(path), data = std::move(data),
                           version](ZookeeperRequest& request) {
    return handle->use([&](zhandle_t* raw) {
      return zoo_aset(raw, path.c_str(), data.data(), length(data), version, &Callbacks::changed,
                      &request);
    });
  }};
}

ZookeeperRequest ZookeeperSession::get(std::string path, bool watch) {
  return ZookeeperRequest{
      [handle = handle(), path = std::move(path), watch](ZookeeperRequest& request) {
        return handle->use([&](zhandle_t* raw) {
          return zoo_awget(raw, path.c_str(), watch ? &Callbacks::event : nullptr, nullptr,
                           &Callbacks::got, &request);
        });
      }};
}

ZookeeperRequest ZookeeperSession::children(std::string path, bool watch) {
  return ZookeeperRequest{
      [handle = handle(), path = std::move(path), watch](ZookeeperRequest& request) {
        return handle->use([&](zhandle_t* raw) {
          return zoo_awget_children2(raw, path.c_str(), watch ? &Callbacks::event : nullptr,
                                     nullptr, &Callbacks::listed, &request);
        });
      }};
}

ZookeeperRequest ZookeeperSession::sync(std::string path) {
  return ZookeeperRequest{[handle = handle(), path = std::move(path)](ZookeeperRequest& request) {
    return handle->use([&](zhandle_t* raw) {
      return zoo_async(
          raw, path.c_str(),
          [](int code, const char*, const void* data) { request_of(data).complete(code); },
          &request);
    });
  }};
}

namespace {

// The operations as the library wants them, and room for their results; lives
// until the answer.
struct Multi {
  explicit Multi(std::vector<ZookeeperOperation> wanted, const ACL_vector* acl)
      : operations{std::move(wanted)},
        raw(operations.size()),
        results(operations.size()),
        paths(operations.size()) {
    for (std::size_t i = 0; i < operations.size(); ++i) {
      const ZookeeperOperation& each = operations[i];
      switch (each.what) {
        case ZookeeperOperation::What::create:
          paths[i].resize(each.path.size() + 16);  // the sequence number
          zoo_create_op_init(&raw[i], each.path.c_str(), each.data.data(), length(each.data), acl,
                             flags_of(each.mode), paths[i].data(), length(paths[i]));
          break;
        case ZookeeperOperation::What::remove:
          zoo_delete_op_init(&raw[i], each.path.c_str(), each.version);
          break;
        case ZookeeperOperation::What::set:
          zoo_set_op_init(&raw[i], each.path.c_str(), each.data.data(), length(each.data),
                          each.version, nullptr);
          break;
        case ZookeeperOperation::What::check:
          zoo_check_op_init(&raw[i], each.path.c_str(), each.version);
          break;
      }
    }
  }

  std::vector<ZookeeperOperation> operations;
  std::vector<zoo_op_t> raw;
  std::vector<zoo_op_result_t> results;
  std::vector<std::string> paths;
  ZookeeperRequest* request = nullptr;
  std::shared_ptr<Multi> self;

  static void done(int code, const void* data) {
    auto* multi = static_cast<Multi*>(without_const(data));
    const auto keep = std::move(multi->self);
    ZookeeperReply& reply = multi->request->reply();
    for (std::size_t i = 0; i < multi->raw.size(); ++i) {
      reply.results.push_back(status_of(multi->results[i].err));
      if (multi->operations[i].what == ZookeeperOperation::What::create) {
        reply.created.emplace_back(multi->paths[i].c_str());
      }
    }
    multi->request->complete(code);
  }
};

}  // namespace

ZookeeperRequest ZookeeperSession::multi(std::vector<ZookeeperOperation> operations) {
  const ACL_vector* acl = options_.auth.empty() ? &ZOO_OPEN_ACL_UNSAFE : &ZOO_CREATOR_ALL_ACL;
  return ZookeeperRequest{
      [handle = handle(),
       multi = std::make_shared<Multi>(std::move(operations), acl)](ZookeeperRequest& request) {
        // If its session is over, the library refuses the first operation, and frees what the
        // others never had. That it is over is learned while connecting.
        return handle->use([&](zhandle_t* raw) {
          if (zoo_state(raw) != ZOO_CONNECTED_STATE) {
            return static_cast<int>(ZINVALIDSTATE);
          }
          multi->request = &request;
          multi->self = multi;
          const int code = zoo_amulti(raw, static_cast<int>(multi->raw.size()), multi->raw.data(),
                                      multi->results.data(), &Multi::done, multi.get());
          if (code != ZOK) {
            multi->self = nullptr;
          }
          return code;
        });
      }};
}

}  // namespace holdfast::engines
