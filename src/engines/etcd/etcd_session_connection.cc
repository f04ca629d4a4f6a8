#include "engines/etcd/etcd_session_connection.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "base/fork.h"
#include "engines/etcd/etcd_wire.h"

namespace holdfast::engines {
namespace {

constexpr Duration kPause = std::chrono::milliseconds{50};  // between attempts to connect
constexpr std::size_t kFrameHead = 5;                       // of a message in a gRPC stream

// gRPC's numbers.
EtcdStatusCode status_of(int code) {
  switch (code) {
    case 0:
      return EtcdStatusCode::ok;
    case 3:   // invalid argument
    case 8:   // out of space
    case 9:   // failed precondition
    case 11:  // out of range
    case 12:  // unimplemented
      return EtcdStatusCode::refused;
    case 5:
      return EtcdStatusCode::not_found;
    case 7:
    case 16:
      return EtcdStatusCode::unauthorized;
    default:
      return EtcdStatusCode::outcome_unknown;
  }
}

std::string framed(std::string_view message) {
  const auto size = static_cast<std::uint32_t>(message.size());
  std::string text{'\0', static_cast<char>(size >> 24U), static_cast<char>(size >> 16U),
                   static_cast<char>(size >> 8U), static_cast<char>(size)};
  return text.append(message);
}

// The first whole message, taken out of the bytes.
std::optional<std::string> take_message(std::string& bytes) {
  if (bytes.size() < kFrameHead) {
    return std::nullopt;
  }
  std::size_t size = 0;
  for (std::size_t i = 1; i < kFrameHead; ++i) {
    size = size << 8U | static_cast<unsigned char>(bytes[i]);
  }
  if (bytes.size() < kFrameHead + size) {
    return std::nullopt;
  }
  std::string message = bytes.substr(kFrameHead, size);
  bytes.erase(0, kFrameHead + size);
  return message;
}

nghttp2_nv header(std::string_view name, std::string_view value) {
  const auto bytes = [](std::string_view text) {
    // The library copies it; its C interface knows no const.
    return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));  // NOLINT
  };
  return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

std::string where(const engine::Url::Host& host) {
  return host.name + ":" + std::to_string(host.port);
}

int poll_for(int fd, short events, base::Time until) {
  pollfd wanted{fd, events, 0};
  const Duration left = std::max(until - base::BootClock::now(), Duration::zero());
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return poll(&wanted, 1, static_cast<int>(std::min<std::int64_t>(ms, 60'000))) == 1
             ? wanted.revents
             : 0;
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
    if (problem == EINPROGRESS && (poll_for(fd.get(), POLLOUT, until) & POLLOUT) != 0) {
      socklen_t size = sizeof problem;
      getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &problem, &size);
    }
    if (problem == 0) {
      const int yes = 1;
      setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
      connected = std::move(fd);
    }
  }
  freeaddrinfo(found);
  return connected;
}

}  // namespace

struct EtcdConnection::Stream {
  EtcdRequest* request = nullptr;  // null: the watches
  std::string out;                 // not yet taken by the library
  bool open_ended = false;         // more may follow
  std::string in;
  int status = -1;  // gRPC's, once it came
  std::string text;
};

// The library's session and the functions it calls, all under the mutex.
struct EtcdConnection::Http2 {
  nghttp2_session* raw = nullptr;

  explicit Http2(EtcdConnection& connection) {
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, &on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, &on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, &on_close);
    nghttp2_session_client_new(&raw, callbacks, &connection);
    nghttp2_session_callbacks_del(callbacks);
    constexpr std::array<nghttp2_settings_entry, 2> kSettings{
        {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0}, {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1U << 20U}}};
    nghttp2_submit_settings(raw, NGHTTP2_FLAG_NONE, kSettings.data(), kSettings.size());
  }
  ~Http2() { nghttp2_session_del(raw); }
  Http2(const Http2&) = delete;
  Http2& operator=(const Http2&) = delete;

  static Stream* stream_of(void* user, std::int32_t id) {
    auto& streams = static_cast<EtcdConnection*>(user)->streams_;
    const auto found = streams.find(id);
    return found == streams.end() ? nullptr : found->second.get();
  }

  static int on_header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name,
                       std::size_t name_size, const std::uint8_t* value, std::size_t value_size,
                       std::uint8_t, void* user) {
    Stream* stream = stream_of(user, frame->hd.stream_id);
    const std::string_view key{reinterpret_cast<const char*>(name), name_size};
    const std::string_view text{reinterpret_cast<const char*>(value), value_size};
    if (stream != nullptr && key == "grpc-status") {
      std::from_chars(text.data(), text.data() + text.size(), stream->status);
    } else if (stream != nullptr && key == "grpc-message") {
      stream->text = text;
    }
    return 0;
  }

  static int on_data(nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* data,
                     std::size_t size, void* user) {
    if (Stream* stream = stream_of(user, id)) {
      stream->in.append(reinterpret_cast<const char*>(data), size);
      while (stream->request == nullptr) {
        const auto message = take_message(stream->in);
        if (!message) {
          break;
        }
        static_cast<EtcdConnection*>(user)->on_watch_bytes(*message);
      }
    }
    return 0;
  }

  static int on_close(nghttp2_session*, std::int32_t id, std::uint32_t, void* user) {
    static_cast<EtcdConnection*>(user)->on_stream_closed(id);
    return 0;
  }

  static ssize_t on_read(nghttp2_session*, std::int32_t, std::uint8_t* buffer, std::size_t room,
                         std::uint32_t* flags, nghttp2_data_source* source, void*) {
    auto* stream = static_cast<Stream*>(source->ptr);
    const std::size_t count = std::min(room, stream->out.size());
    std::memcpy(buffer, stream->out.data(), count);
    stream->out.erase(0, count);
    if (stream->out.empty() && !stream->open_ended) {
      *flags |= NGHTTP2_DATA_FLAG_EOF;
    } else if (count == 0) {
      return NGHTTP2_ERR_DEFERRED;
    }
    return static_cast<ssize_t>(count);
  }
};

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
  return where(options_.hosts[host_ % options_.hosts.size()]);
}

// --- requests

bool EtcdConnection::begin(EtcdRequest& request) {
  const std::lock_guard lock{mutex_};
  request.since_ = base::BootClock::now();
  if (stopping_) {
    request.reply_.text = "the store was closed";
    return false;
  }
  if (!ready_ || broken_) {
    waiting_.push_back(&request);
    nudge();
    return true;
  }
  if (!submit(request)) {
    return false;
  }
  flush();
  return true;
}

bool EtcdConnection::submit(EtcdRequest& request) {
  if (request.watch_ != 0) {
    if (watch_stream_ < 0) {
      request.reply_.text = "the watches are not open";
      return false;
    }
    creating_[request.watch_] = &request;
    say_to_watches(request.message_);
    return true;
  }
  auto stream = std::make_unique<Stream>();
  stream->request = &request;
  stream->out = framed(request.message_);
  const std::string authority = where(options_.hosts[host_ % options_.hosts.size()]);
  std::vector<nghttp2_nv> headers{
      header(":method", "POST"),        header(":scheme", "http"),
      header(":path", request.method_), header(":authority", authority),
      header("te", "trailers"),         header("content-type", "application/grpc")};
  if (!token_.empty()) {
    headers.push_back(header("token", token_));
  }
  nghttp2_data_provider provider{};
  provider.source.ptr = stream.get();
  provider.read_callback = &Http2::on_read;
  const std::int32_t id = nghttp2_submit_request(http2_->raw, nullptr, headers.data(),
                                                 headers.size(), &provider, nullptr);
  if (id < 0) {
    request.reply_.text = nghttp2_strerror(id);
    return false;
  }
  streams_.emplace(id, std::move(stream));
  return true;
}

void EtcdConnection::open_watches() {
  auto stream = std::make_unique<Stream>();
  stream->open_ended = true;
  const std::string authority = where(options_.hosts[host_ % options_.hosts.size()]);
  // A server that has lost its leader ends the stream instead of keeping silent.
  std::vector<nghttp2_nv> headers{header(":method", "POST"),
                                  header(":scheme", "http"),
                                  header(":path", "/etcdserverpb.Watch/Watch"),
                                  header(":authority", authority),
                                  header("te", "trailers"),
                                  header("content-type", "application/grpc"),
                                  header("hasleader", "true")};
  if (!token_.empty()) {
    headers.push_back(header("token", token_));
  }
  nghttp2_data_provider provider{};
  provider.source.ptr = stream.get();
  provider.read_callback = &Http2::on_read;
  watch_stream_ = nghttp2_submit_request(http2_->raw, nullptr, headers.data(), headers.size(),
                                         &provider, nullptr);
  reopen_watches_ = base::kNever;
  if (watch_stream_ >= 0) {
    streams_.emplace(watch_stream_, std::move(stream));
    news_ = true;
  }
}

void EtcdConnection::say_to_watches(std::string_view message) {
  const auto found = streams_.find(watch_stream_);
  if (found != streams_.end()) {
    found->second->out += framed(message);
    nghttp2_session_resume_data(http2_->raw, watch_stream_);
  }
}

void EtcdConnection::unwatch(std::int64_t id) {
  const std::lock_guard lock{mutex_};
  if (watching_.erase(id) > 0 && ready_) {
    say_to_watches(encode_unwatch(id));
    flush();
  }
}

void EtcdConnection::on_watch_bytes(std::string_view bytes) {
  const auto news = decode_watch(bytes);
  if (!news) {
    return;
  }
  const auto creating = creating_.find(news->id);
  if (creating != creating_.end() && (news->created || news->cancelled)) {
    EtcdRequest* request = creating->second;
    creating_.erase(creating);
    const bool good = news->created && !news->cancelled;
    if (good) {
      watching_.insert(news->id);
    }
    finish(*request, good ? EtcdStatusCode::ok : EtcdStatusCode::refused, 0,
           "the watch was refused");
  }
  if ((news->events > 0 || news->cancelled) && watching_.erase(news->id) > 0) {
    rung_.push_back(news->id);
    if (!news->cancelled) {
      say_to_watches(encode_unwatch(news->id));
    }
  }
}

void EtcdConnection::on_stream_closed(std::int32_t id) {
  auto node = streams_.extract(id);
  if (!node) {
    return;
  }
  Stream& stream = *node.mapped();
  if (id == watch_stream_) {
    watch_stream_ = -1;
    watching_.clear();
    for (const auto& [watch, request] : std::exchange(creating_, {})) {
      finish(*request, EtcdStatusCode::unavailable, stream.status, "the watches ended");
    }
    reopen_watches_ = base::BootClock::now() + kPause;
    return;
  }
  if (auto message = take_message(stream.in)) {
    stream.request->reply_.body = *std::move(message);
  }
  const bool answered = stream.status >= 0;
  finish(*stream.request, answered ? status_of(stream.status) : EtcdStatusCode::outcome_unknown,
         stream.status, answered ? stream.text : "the answer was cut off");
}

void EtcdConnection::finish(EtcdRequest& request, EtcdStatusCode status, int native,
                            std::string text) {
  request.reply_.status = status;
  request.reply_.native = native;
  request.reply_.text = std::move(text);
  finished_.push_back(&request);
}

// --- the thread

void EtcdConnection::run() {
  std::unique_lock lock{mutex_};
  while (!stopping_) {
    if (!ready_ && !connect(lock)) {
      finish_late(base::BootClock::now());
      tell(lock);
      if (!stopping_) {
        lock.unlock();
        poll_for(nudge_.get(), 0, base::BootClock::now() + kPause);
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
  const bool more = !unsent_.empty() || nghttp2_session_want_write(http2_->raw) != 0;
  std::array<pollfd, 2> wanted{
      {{socket_.get(), static_cast<short>(more ? POLLIN | POLLOUT : POLLIN), 0},
       {nudge_.get(), POLLIN, 0}}};
  const base::Time deadline = next_deadline();
  int wait = -1;
  if (deadline != base::kNever) {
    const Duration left = std::max(deadline - base::BootClock::now(), Duration::zero());
    wait = static_cast<int>(
        std::min<std::int64_t>(std::chrono::ceil<std::chrono::milliseconds>(left).count(), 60'000));
  }
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
  const base::Time now = base::BootClock::now();
  if (now >= reopen_watches_ && !broken_) {
    open_watches();
  }
  flush();
  finish_late(now);
  if (broken_) {
    drop(trouble_);
  }
  tell(lock);
}

bool EtcdConnection::connect(std::unique_lock<std::mutex>& lock) {
  const engine::Url::Host host = options_.hosts[++host_ % options_.hosts.size()];
  const base::Time until = base::BootClock::now() + options_.timeout;
  lock.unlock();
  base::FileDescriptor fd = connect_to(host, until);
  lock.lock();
  if (!fd || stopping_) {
    trouble_ = "no server answers at " + where(host);
    return false;
  }
  socket_ = std::move(fd);
  http2_ = std::make_unique<Http2>(*this);
  broken_ = false;
  unsent_.clear();
  token_.clear();
  if (!options_.user.empty() && !log_in(lock)) {
    drop(trouble_);
    return false;
  }
  open_watches();
  ready_ = true;
  refused_ = false;
  send_waiting();
  flush();
  changed_.notify_all();
  return true;
}

bool EtcdConnection::log_in(std::unique_lock<std::mutex>& lock) {
  EtcdRequest login{nullptr, "/etcdserverpb.Auth/Authenticate",
                    encode_login(options_.user, options_.password)};
  const base::Time until = base::BootClock::now() + options_.timeout;
  bool submitted = submit(login);
  flush();
  while (submitted && !broken_ && !stopping_ && base::BootClock::now() < until) {
    const auto done = std::ranges::find(finished_, &login);
    if (done != finished_.end()) {
      finished_.erase(done);
      submitted = false;
      break;
    }
    lock.unlock();
    poll_for(socket_.get(), POLLIN, until);
    lock.lock();
    read_some();
    flush();
  }
  const bool answered = !submitted;
  const auto token = login.reply_.ok() ? decode_token(login.reply_.body) : std::nullopt;
  if (!answered) {
    std::erase_if(streams_, [&](const auto& each) { return each.second->request == &login; });
  }
  token_ = token.value_or("");
  refused_ = answered && !token;
  trouble_ =
      answered ? "the login was refused: " + login.reply_.text : "the login was not answered";
  return token.has_value();
}

void EtcdConnection::send_waiting() {
  for (EtcdRequest* each : std::exchange(waiting_, {})) {
    if (!submit(*each)) {
      finish(*each, EtcdStatusCode::unavailable, 0, each->reply_.text);
    }
  }
}

void EtcdConnection::flush() {
  while (!broken_ && http2_ != nullptr) {
    if (unsent_.empty()) {
      const std::uint8_t* bytes = nullptr;
      const ssize_t count = nghttp2_session_mem_send(http2_->raw, &bytes);
      if (count <= 0) {
        broken_ = broken_ || count < 0;
        return;
      }
      unsent_.assign(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(count));
    }
    const ssize_t sent = send(socket_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno != EAGAIN && errno != EINTR) {
        broken_ = true;
        trouble_ = "the connection was lost";
      }
      nudge();  // the thread waits for room, or cleans up
      return;
    }
    unsent_.erase(0, static_cast<std::size_t>(sent));
  }
}

void EtcdConnection::read_some() {
  std::array<char, 65536> buffer;
  while (!broken_) {
    const ssize_t got = recv(socket_.get(), buffer.data(), buffer.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
      return;
    }
    const bool good =
        got > 0 &&
        nghttp2_session_mem_recv(http2_->raw, reinterpret_cast<const std::uint8_t*>(buffer.data()),
                                 static_cast<std::size_t>(got)) >= 0 &&
        nghttp2_session_want_read(http2_->raw) != 0;
    if (!good) {
      broken_ = true;
      trouble_ = "the connection was lost";
    } else if (got < static_cast<ssize_t>(buffer.size())) {
      return;
    }
  }
}

// Everything that was on its way is lost with the connection.
void EtcdConnection::drop(const std::string& why) {
  ready_ = false;
  trouble_ = why;
  for (const auto& [id, stream] : std::exchange(streams_, {})) {
    if (stream->request != nullptr) {
      finish(*stream->request, EtcdStatusCode::outcome_unknown, 0, why);
    }
  }
  for (const auto& [watch, request] : std::exchange(creating_, {})) {
    finish(*request, EtcdStatusCode::unavailable, 0, why);
  }
  watch_stream_ = -1;
  watching_.clear();
  reopen_watches_ = base::kNever;
  http2_ = nullptr;
  socket_ = {};
}

base::Time EtcdConnection::next_deadline() const {
  base::Time next = reopen_watches_;
  for (const auto& [id, stream] : streams_) {
    if (stream->request != nullptr) {
      next = std::min(next, stream->request->since_ + options_.timeout);
      break;  // the oldest
    }
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
    broken_ = true;
    trouble_ = where(options_.hosts[host_ % options_.hosts.size()]) + " does not answer in time";
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
  for (const std::int64_t watch : rung) {
    events_.changed(watch);
  }
  lock.lock();
}

}  // namespace holdfast::engines
