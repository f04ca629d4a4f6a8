// One stream for all watches.
#include "engines/etcd/etcd_session_connection.h"

#include <algorithm>
#include <utility>

#include "engines/etcd/etcd_wire.h"

namespace holdfast::engines {
namespace {

constexpr Duration kPause = std::chrono::milliseconds{50};  // until they are opened again
constexpr int kUnavailable = 14;                            // gRPC's

}  // namespace

void EtcdConnection::open_watches() {
  auto stream = std::make_unique<EtcdHttp2::Stream>();
  stream->open_ended = true;
  const std::string authority = etcd_authority(host());
  // A server that has lost its leader ends the stream instead of keeping silent.
  watch_stream_ = http2_->open({.method = "/etcdserverpb.Watch/Watch",
                                .server = authority,
                                .token = token_,
                                .secret = link_->is_secret(),
                                .needs_leader = true},
                               std::move(stream));
  reopen_watches_ = base::kNever;
  if (watch_stream_ >= 0) {
    news_ = true;
    for (EtcdRequest* each : std::exchange(unwatched_, {})) {
      submit(*each);
    }
  }
}

void EtcdConnection::unwatch(std::int64_t id) {
  const std::lock_guard lock{mutex_};
  if (watching_.erase(id) > 0 && ready_) {
    http2_->say(watch_stream_, encode_unwatch(id));
    flush();
  }
}

void EtcdConnection::on_message(std::string_view message) {
  auto news = decode_watch(message);
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
      watching_.emplace(news->id, request->ends_);
      request->reply_.revision = news->revision;
    } else {
      begin_login();  // it may be our token
    }
    finish(*request, good ? EtcdStatusCode::ok : EtcdStatusCode::refused, 0,
           "the watch was refused");
  }
  const auto watch = watching_.find(news->id);
  if (watch == watching_.end() || (news->events == 0 && !news->cancelled)) {
    return;
  }
  const auto counts = [&](const EtcdKey& key) {
    return std::ranges::find(watch->second, key.key) != watch->second.end();
  };
  if (!news->cancelled && !watch->second.empty() && std::ranges::none_of(news->ended, counts)) {
    return;  // somebody else left
  }
  watching_.erase(watch);
  if (news->cancelled) {
    news->ended.clear();
  } else {
    http2_->say(watch_stream_, encode_unwatch(news->id));
  }
  rung_.emplace_back(news->id, std::move(news->ended));
}

void EtcdConnection::on_watches_closed(const EtcdHttp2::Stream& stream) {
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

}  // namespace holdfast::engines
