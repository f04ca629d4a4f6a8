// One request: on its way, and answered.
#include "engines/etcd/etcd_session_connection.h"

#include <algorithm>
#include <utility>

namespace holdfast::engines {
namespace {

constexpr std::size_t kMostCalls = 512;  // that await an answer

// gRPC's numbers. What they do not name leaves it open what was done; so does 8: a server that
// runs out of space carries out what it has just accepted, and says no.
EtcdStatusCode status_of(int code) {
  switch (code) {
    case 0:
      return EtcdStatusCode::ok;
    case 3:   // invalid argument
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

}  // namespace

bool EtcdConnection::begin(EtcdRequest& request) {
  const std::lock_guard lock{mutex_};
  request.since_ = base::BootClock::now();
  if (stopping_) {
    request.reply_.text = "the store was closed";
    return false;
  }
  if (!ready_ || broken_ || http2_->leaving()) {
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
    http2_->say(watch_stream_, request.message_);
    return true;
  }
  const bool mine = &request == login_.get();
  if (!mine && request.turn_ == EtcdTurn::in_line && http2_->calls() >= kMostCalls) {
    in_line_.push_back(&request);
    return true;
  }
  request.since_ = base::BootClock::now();
  auto stream = std::make_unique<EtcdHttp2::Stream>();
  stream->request = &request;
  request.login_ = logins_;
  stream->out = grpc_framed(request.message_);
  const std::string authority = etcd_authority(host());
  const bool names_us = &request != login_.get();
  const std::int32_t id = http2_->open({.method = request.method_,
                                        .server = authority,
                                        .token = names_us ? token_ : std::string_view{},
                                        .secret = link_->is_secret()},
                                       std::move(stream));
  if (id < 0) {
    // A connection has 2^30 numbers for its streams: on with a new one.
    nudge();
    if (&request == login_.get()) {
      return false;
    }
    waiting_.push_back(&request);
    return true;
  }
  return true;
}

void EtcdConnection::send_next_in_line() {
  while (!in_line_.empty() && http2_->calls() < kMostCalls) {
    EtcdRequest* next = in_line_.front();
    in_line_.pop_front();
    if (!submit(*next)) {
      finish(*next, EtcdStatusCode::unavailable, 0, next->reply_.text);
    }
  }
}

void EtcdConnection::send_waiting() {
  for (EtcdRequest* each : std::exchange(waiting_, {})) {
    each->since_ = base::BootClock::now();  // the server has not kept it waiting yet
    if (!submit(*each)) {
      finish(*each, EtcdStatusCode::unavailable, 0, each->reply_.text);
    }
  }
}

void EtcdConnection::on_closed(std::int32_t id, EtcdHttp2::Stream& stream, bool refused) {
  if (id == watch_stream_) {
    on_watches_closed(stream);
    return;
  }
  if (stream.request == nullptr) {
    return;
  }
  if (auto message = take_grpc_message(stream.in)) {
    stream.request->reply_.body = *std::move(message);
  }
  const bool answered = stream.status >= 0;
  if (stream.request == login_.get()) {
    finish(*login_, answered ? status_of(stream.status) : EtcdStatusCode::outcome_unknown,
           stream.status, answered ? stream.text : "the login was not answered");
    finish_login();
  } else if (refused && !answered) {
    waiting_.push_back(stream.request);  // it was not even looked at
  } else if (etcd_wants_login(stream.status, stream.text) && !options_.user.empty() &&
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
    const bool stranger = etcd_wants_login(stream.status, stream.text);
    finish(*stream.request,
           stranger   ? EtcdStatusCode::unauthorized
           : answered ? status_of(stream.status)
                      : EtcdStatusCode::outcome_unknown,
           stream.status, answered ? stream.text : "the answer was cut off");
  }
}

void EtcdConnection::finish(EtcdRequest& request, EtcdStatusCode status, int native,
                            std::string text) {
  request.reply_.status = status;
  request.reply_.native = native;
  request.reply_.text = std::move(text);
  finished_.push_back(&request);
}

}  // namespace holdfast::engines
