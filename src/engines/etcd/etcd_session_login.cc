// Who we are.
#include "engines/etcd/etcd_session_connection.h"

#include <algorithm>
#include <array>
#include <utility>

#include "engines/etcd/etcd_wire.h"

namespace holdfast::engines {
namespace {

constexpr Duration kLoginsApart = std::chrono::seconds{1};
constexpr int kFailedPrecondition = 9;  // gRPC's

}  // namespace

bool etcd_wants_login(int status, std::string_view text) {
  constexpr std::array<std::string_view, 4> kWords{"invalid auth token", "user name is empty",
                                                   "revision in header is old",
                                                   "revision of auth store is old"};
  return status > 0 && std::ranges::any_of(kWords, [&](std::string_view words) {
           return text.find(words) != std::string_view::npos;
         });
}

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
    http2_->cancel(watch_stream_);
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

}  // namespace holdfast::engines
