#include "engines/etcd/etcd_session_connection.h"

#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <utility>

#include "engines/etcd/etcd_wire.h"

namespace holdfast::engines {
namespace {

constexpr Duration kPause = std::chrono::milliseconds{50};    // between attempts to connect
constexpr Duration kGlance = std::chrono::milliseconds{100};  // while nobody may nudge us
constexpr Duration kLoginsApart = std::chrono::seconds{1};
constexpr std::size_t kMostAtOnce = 65536;  // bytes in one go
constexpr int kFailedPrecondition = 9;      // gRPC's
constexpr int kUnavailable = 14;
constexpr std::size_t kFrameHead = 5;  // of a message in a gRPC stream

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

// It was turned away because of who we are, or are no longer; nothing was done.
bool wants_a_login(int status, std::string_view text) {
  constexpr std::array<std::string_view, 4> kWords{"invalid auth token", "user name is empty",
                                                   "revision in header is old",
                                                   "revision of auth store is old"};
  return status > 0 && std::ranges::any_of(kWords, [&](std::string_view words) {
           return text.find(words) != std::string_view::npos;
         });
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
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, &on_frame);
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

  static int on_close(nghttp2_session*, std::int32_t id, std::uint32_t why, void* user) {
    static_cast<EtcdConnection*>(user)->on_stream_closed(id, why == NGHTTP2_REFUSED_STREAM);
    return 0;
  }

  static int on_frame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    auto* connection = static_cast<EtcdConnection*>(user);
    connection->greeted_ = connection->greeted_ || frame->hd.type == NGHTTP2_SETTINGS;
    connection->leaving_ = connection->leaving_ || frame->hd.type == NGHTTP2_GOAWAY;
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
  return etcd_authority(host());
}

// --- requests

bool EtcdConnection::begin(EtcdRequest& request) {
  const std::lock_guard lock{mutex_};
  request.since_ = base::BootClock::now();
  if (stopping_) {
    request.reply_.text = "the store was closed";
    return false;
  }
  if (!ready_ || broken_ || leaving_) {
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
      unwatched_.push_back(&request);
      return true;
    }
    creating_.emplace_back(request.watch_, &request);
    say_to_watches(request.message_);
    return true;
  }
  auto stream = std::make_unique<Stream>();
  stream->request = &request;
  request.login_ = logins_;
  stream->out = framed(request.message_);
  const std::string authority = etcd_authority(host());
  std::vector<nghttp2_nv> headers{
      header(":method", "POST"),        header(":scheme", link_->is_secret() ? "https" : "http"),
      header(":path", request.method_), header(":authority", authority),
      header("te", "trailers"),         header("content-type", "application/grpc")};
  if (!token_.empty() && &request != login_.get()) {
    headers.push_back(header("token", token_));
  }
  nghttp2_data_provider provider{};
  provider.source.ptr = stream.get();
  provider.read_callback = &Http2::on_read;
  const std::int32_t id = nghttp2_submit_request(http2_->raw, nullptr, headers.data(),
                                                 headers.size(), &provider, nullptr);
  if (id < 0) {
    // A connection has 2^30 numbers for its streams: on with a new one.
    leaving_ = true;
    nudge();
    if (&request == login_.get()) {
      return false;
    }
    waiting_.push_back(&request);
    return true;
  }
  streams_.emplace(id, std::move(stream));
  return true;
}

void EtcdConnection::open_watches() {
  auto stream = std::make_unique<Stream>();
  stream->open_ended = true;
  const std::string authority = etcd_authority(host());
  // A server that has lost its leader ends the stream instead of keeping silent.
  std::vector<nghttp2_nv> headers{header(":method", "POST"),
                                  header(":scheme", link_->is_secret() ? "https" : "http"),
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
    for (EtcdRequest* each : std::exchange(unwatched_, {})) {
      submit(*each);
    }
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
  // Later versions do not say which watch it was that they refused.
  const bool nameless = news->created && news->cancelled && news->id < 0;
  const auto creating = std::ranges::find_if(
      creating_, [&](const auto& each) { return nameless || each.first == news->id; });
  if (creating != creating_.end() && (news->created || news->cancelled)) {
    EtcdRequest* request = creating->second;
    creating_.erase(creating);
    const bool good = news->created && !news->cancelled;
    if (good) {
      watching_.insert(news->id);
    } else {
      begin_login();  // it may be our token
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

void EtcdConnection::on_stream_closed(std::int32_t id, bool refused) {
  auto node = streams_.extract(id);
  if (!node) {
    return;
  }
  Stream& stream = *node.mapped();
  if (id == watch_stream_) {
    on_watches_closed(stream);
    return;
  }
  if (stream.request == nullptr) {
    return;
  }
  if (auto message = take_message(stream.in)) {
    stream.request->reply_.body = *std::move(message);
  }
  const bool answered = stream.status >= 0;
  if (stream.request == login_.get()) {
    finish(*login_, answered ? status_of(stream.status) : EtcdStatusCode::outcome_unknown,
           stream.status, answered ? stream.text : "the login was not answered");
    finish_login();
  } else if (refused && !answered) {
    waiting_.push_back(stream.request);  // it was not even looked at
  } else if (wants_a_login(stream.status, stream.text) && !options_.user.empty() &&
             !stream.request->again_) {
    stream.request->again_ = stream.request->login_ == logins_;
    unwelcome_.push_back(stream.request);
    if (login_ == nullptr && !stream.request->again_) {
      welcome_back();  // we have logged in since it was sent
    } else {
      last_login_ = {};
      begin_login();
    }
  } else {
    const bool stranger = wants_a_login(stream.status, stream.text);
    finish(*stream.request,
           stranger   ? EtcdStatusCode::unauthorized
           : answered ? status_of(stream.status)
                      : EtcdStatusCode::outcome_unknown,
           stream.status, answered ? stream.text : "the answer was cut off");
  }
}

void EtcdConnection::on_watches_closed(const Stream& stream) {
  watch_stream_ = -1;
  watching_.clear();
  const bool by_us = stream.status < 0;
  for (const auto& [watch, request] : std::exchange(creating_, {})) {
    if (by_us) {
      unwatched_.push_back(request);
    } else {
      finish(*request, EtcdStatusCode::unavailable, stream.status, "the watches ended");
    }
  }
  reopen_watches_ = base::BootClock::now() + (by_us ? Duration::zero() : kPause);
  // A member without a leader can do nothing for us; another may.
  leaderless_ = stream.status == kUnavailable;
}

// --- who we are

// Tokens end when they are not used for a while, and with a change of users.
void EtcdConnection::begin_login() {
  const base::Time now = base::BootClock::now();
  if (login_ != nullptr || options_.user.empty() || now - last_login_ < kLoginsApart) {
    return;
  }
  last_login_ = now;
  login_ = std::make_unique<EtcdRequest>(nullptr, "/etcdserverpb.Auth/Authenticate",
                                         encode_login(options_.user, options_.password));
  login_->since_ = now;
  if (!submit(*login_)) {
    login_.reset();
    finish_unwelcome(EtcdStatusCode::unavailable, "the login could not be sent");
  }
}

void EtcdConnection::finish_login() {
  std::erase(finished_, login_.get());
  const EtcdRequest::Reply reply = std::move(login_->reply_);
  login_.reset();
  const auto token = reply.ok() ? decode_token(reply.body) : std::nullopt;
  // Where nobody is asked who he is, we may be anybody.
  const bool open = reply.native == kFailedPrecondition;
  if (!token && !open) {
    const bool unheard = reply.status == EtcdStatusCode::outcome_unknown;
    trouble_ = "the login was refused: " + reply.text;
    login_error_ =
        Error{unheard ? ErrorCode::unavailable : ErrorCode::unauthorized, trouble_, reply.native};
    finish_unwelcome(unheard ? EtcdStatusCode::unavailable : EtcdStatusCode::unauthorized,
                     trouble_);
    return;
  }
  token_ = token.value_or("");
  ++logins_;
  login_error_.reset();
  if (watch_stream_ >= 0) {  // its watches ask with the old token
    nghttp2_submit_rst_stream(http2_->raw, NGHTTP2_FLAG_NONE, watch_stream_, NGHTTP2_CANCEL);
  }
  welcome_back();
}

void EtcdConnection::welcome_back() {
  for (EtcdRequest* each : std::exchange(unwelcome_, {})) {
    if (!submit(*each)) {
      finish(*each, EtcdStatusCode::unavailable, 0, each->reply_.text);
    }
  }
}

void EtcdConnection::finish_unwelcome(EtcdStatusCode status, const std::string& text) {
  for (EtcdRequest* each : std::exchange(unwelcome_, {})) {
    finish(*each, status, 0, text);
  }
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
  const bool more = link_->has_unsent() || nghttp2_session_want_write(http2_->raw) != 0;
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
  if (leaving_ && std::ranges::none_of(
                      streams_, [](const auto& each) { return each.second->request != nullptr; })) {
    break_off("the server went away");
  }
  if (broken_) {
    drop(trouble_);
  }
  tell(lock);
}

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
  http2_ = std::make_unique<Http2>(*this);
  broken_ = greeted_ = leaving_ = leaderless_ = false;
  token_.clear();
  login_error_.reset();
  last_login_ = {};
  trouble_ = etcd_authority(server) + " does not answer in time";
  // Whoever merely accepts connections is no server yet.
  bool good = talk_until(lock, until, [this] { return greeted_; });
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

void EtcdConnection::send_waiting() {
  for (EtcdRequest* each : std::exchange(waiting_, {})) {
    each->since_ = base::BootClock::now();  // the server has not kept it waiting yet
    if (!submit(*each)) {
      finish(*each, EtcdStatusCode::unavailable, 0, each->reply_.text);
    }
  }
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
      const std::uint8_t* part = nullptr;
      const ssize_t count = nghttp2_session_mem_send(http2_->raw, &part);
      if (count < 0) {
        break_off(nghttp2_strerror(static_cast<int>(count)));
      }
      if (count <= 0) {
        break;
      }
      bytes.append(reinterpret_cast<const char*>(part), static_cast<std::size_t>(count));
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
  if (!heard_.empty()) {
    const bool good =
        nghttp2_session_mem_recv(http2_->raw, reinterpret_cast<const std::uint8_t*>(heard_.data()),
                                 heard_.size()) >= 0 &&
        nghttp2_session_want_read(http2_->raw) != 0;
    if (!good) {
      break_off(greeted_ ? "the connection was lost" : not_spoken_to());
      return;
    }
  }
  if (!received) {
    const bool said = greeted_ || received.error().code == ErrorCode::unauthorized;
    break_off(said ? received.error().text : not_spoken_to(), received.error().code);
  }
}

std::string EtcdConnection::not_spoken_to() const {
  return etcd_authority(host()) + " does not speak HTTP/2" +
         (link_->is_secret() ? "" : "; if it speaks TLS, write tls=true or ca=FILE");
}

// Everything that was on its way is lost with the connection.
void EtcdConnection::drop(const std::string& why) {
  ready_ = false;
  trouble_ = why;
  for (const auto& [id, stream] : std::exchange(streams_, {})) {
    if (stream->request != nullptr && stream->request != login_.get()) {
      finish(*stream->request, EtcdStatusCode::outcome_unknown, 0, why);
    }
  }
  for (const auto& [watch, request] : std::exchange(creating_, {})) {
    finish(*request, EtcdStatusCode::unavailable, 0, why);
  }
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
  for (const std::int64_t watch : rung) {
    events_.changed(watch);
  }
  lock.lock();
}

}  // namespace holdfast::engines
