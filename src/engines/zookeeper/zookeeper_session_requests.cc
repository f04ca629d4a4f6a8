// What is asked of the servers, and how their answers are read.
#include <atomic>
#include <utility>

#include "engines/zookeeper/zookeeper_session.h"
#include "engines/zookeeper/zookeeper_session_handle.h"

namespace holdfast::engines {

ZookeeperStatus zookeeper_status(int code) {
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

namespace {

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

int length(const std::string& text) {
  return static_cast<int>(text.size());
}

ZookeeperRequest& request_of(const void* data) {
  return *static_cast<ZookeeperRequest*>(without_const(data));
}

void fill(ZookeeperReply& reply, const Stat* stat) {
  if (stat != nullptr) {
    reply.czxid = stat->czxid;
    reply.mzxid = stat->mzxid;
    reply.pzxid = stat->pzxid;
    reply.ctime_ms = stat->ctime;
    reply.mtime_ms = stat->mtime;
    reply.version = stat->version;
    reply.changes = stat->cversion;
    reply.owner = stat->ephemeralOwner;
  }
}

void fill(ZookeeperReply& reply, const String_vector* names) {
  if (names != nullptr) {
    reply.children.assign(names->data, names->data + names->count);
  }
}

void on_created(int code, const char* path, const Stat* stat, const void* data) {
  ZookeeperReply& reply = request_of(data).reply();
  reply.text = path == nullptr ? "" : path;
  fill(reply, stat);
  request_of(data).complete(code);
}
void on_done(int code, const void* data) {
  request_of(data).complete(code);
}
void on_changed(int code, const Stat* stat, const void* data) {
  fill(request_of(data).reply(), stat);
  request_of(data).complete(code);
}
void on_got(int code, const char* value, int size, const Stat* stat, const void* data) {
  ZookeeperReply& reply = request_of(data).reply();
  if (value != nullptr && size > 0) {
    reply.text.assign(value, static_cast<std::size_t>(size));
  }
  fill(reply, stat);
  request_of(data).complete(code);
}
void on_listed(int code, const String_vector* names, const Stat* stat, const void* data) {
  fill(request_of(data).reply(), names);
  fill(request_of(data).reply(), stat);
  request_of(data).complete(code);
}
void on_synced(int code, const char*, const void* data) {
  request_of(data).complete(code);
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

// --- one request

bool ZookeeperRequest::send() {
  const auto handle = handle_;  // if it is answered at once, this is gone
  const int code = handle == nullptr ? ZINVALIDSTATE : handle->use([&](zhandle_t*) {
    handle->owe(*this);
    const int given = send_(*handle, *this);
    if (given != ZOK) {
      handle->settle(*this);
    }
    return given;
  });
  if (code != ZOK) {
    reply_.native = code;
    reply_.status = zookeeper_status(code);
  }
  return code == ZOK;
}

void ZookeeperRequest::complete(int code) {
  const InCallback here;
  if (!handle_->settle(*this)) {
    return;
  }
  reply_.native = code;
  reply_.status = zookeeper_status(code);
  const auto done = std::move(done_);
  done();  // this may be gone afterwards
}

bool ZookeeperRequest::await_suspend(std::coroutine_handle<> waiter) {
  done_ = [waiter] { waiter.resume(); };
  return send();
}

// --- several

// Counts the answers and the end of this function: whoever is last goes on.
bool ZookeeperSeveral::await_suspend(std::coroutine_handle<> waiter) {
  const auto left = std::make_shared<std::atomic<std::size_t>>(requests_.size() + 1);
  std::size_t failed = 0;
  for (ZookeeperRequest& request : requests_) {
    request.done_ = [left, waiter] {
      if (left->fetch_sub(1) == 1) {
        waiter.resume();
      }
    };
    failed += request.send() ? 0U : 1U;
  }
  return left->fetch_sub(1 + failed) != 1 + failed;
}

std::vector<ZookeeperReply> ZookeeperSeveral::await_resume() {
  std::vector<ZookeeperReply> replies;
  replies.reserve(requests_.size());
  for (ZookeeperRequest& request : requests_) {
    replies.push_back(std::move(request.reply_));
  }
  return replies;
}

ZookeeperPair::ZookeeperPair(ZookeeperRequest first, ZookeeperRequest second)
    : both_{[&] {
        std::vector<ZookeeperRequest> requests;
        requests.reserve(2);
        requests.push_back(std::move(first));
        requests.push_back(std::move(second));
        return requests;
      }()} {}

std::pair<ZookeeperReply, ZookeeperReply> ZookeeperPair::await_resume() {
  std::vector<ZookeeperReply> replies = both_.await_resume();
  return {std::move(replies.front()), std::move(replies.back())};
}

// --- what can be asked

ZookeeperRequest ZookeeperSession::create(std::string path, std::string data, ZookeeperMode mode) {
  const ACL_vector* acl = options_.auth.empty() ? &ZOO_OPEN_ACL_UNSAFE : &ZOO_CREATOR_ALL_ACL;
  return {handle(), [path = std::move(path), data = std::move(data), mode, acl](
                        ZookeeperHandle& handle, ZookeeperRequest& request) {
            return zoo_acreate2(handle.raw, path.c_str(), data.data(), length(data), acl,
                                flags_of(mode), &on_created, &request);
          }};
}

ZookeeperRequest ZookeeperSession::remove(std::string path) {
  return {handle(), [path = std::move(path)](ZookeeperHandle& handle, ZookeeperRequest& request) {
            return zoo_adelete(handle.raw, path.c_str(), -1, &on_done, &request);
          }};
}

ZookeeperRequest ZookeeperSession::set(std::string path, std::string data, std::int32_t version) {
  return {handle(), [path = std::move(path), data = std::move(data), version](
                        ZookeeperHandle& handle, ZookeeperRequest& request) {
            return zoo_aset(handle.raw, path.c_str(), data.data(), length(data), version,
                            &on_changed, &request);
          }};
}

ZookeeperRequest ZookeeperSession::get(std::string path, bool watch) {
  return {handle(),
          [path = std::move(path), watch](ZookeeperHandle& handle, ZookeeperRequest& request) {
            return zoo_awget(handle.raw, path.c_str(), watch ? &ZookeeperHandle::event : nullptr,
                             nullptr, &on_got, &request);
          }};
}

ZookeeperRequest ZookeeperSession::children(std::string path, bool watch) {
  return {handle(),
          [path = std::move(path), watch](ZookeeperHandle& handle, ZookeeperRequest& request) {
            return zoo_awget_children2(handle.raw, path.c_str(),
                                       watch ? &ZookeeperHandle::event : nullptr, nullptr,
                                       &on_listed, &request);
          }};
}

ZookeeperRequest ZookeeperSession::sync(std::string path) {
  return {handle(), [path = std::move(path)](ZookeeperHandle& handle, ZookeeperRequest& request) {
            return zoo_async(handle.raw, path.c_str(), &on_synced, &request);
          }};
}

namespace {

// The operations as the library wants them, and room for their results; lives
// until the answer.
struct Multi : std::enable_shared_from_this<Multi> {
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

  static void done(int code, const void* data) {
    const auto multi = static_cast<Multi*>(without_const(data))->shared_from_this();
    ZookeeperReply& reply = multi->request->reply();
    for (std::size_t i = 0; i < multi->raw.size(); ++i) {
      reply.results.push_back(zookeeper_status(multi->results[i].err));
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
  return {handle(), [multi = std::make_shared<Multi>(std::move(operations), acl)](
                        ZookeeperHandle& handle, ZookeeperRequest& request) {
            // If its session is over, the library refuses the first operation, and frees what
            // the others never had. That it is over is learned while connecting.
            if (zoo_state(handle.raw) != ZOO_CONNECTED_STATE) {
              return static_cast<int>(ZINVALIDSTATE);
            }
            multi->request = &request;
            return zoo_amulti(handle.raw, static_cast<int>(multi->raw.size()), multi->raw.data(),
                              multi->results.data(), &Multi::done, multi.get());
          }};
}

}  // namespace holdfast::engines
