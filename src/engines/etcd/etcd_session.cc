#include "engines/etcd/etcd_session.h"

#include <utility>

#include "engines/etcd/etcd_session_connection.h"
#include "engines/etcd/etcd_wire.h"

namespace holdfast::engines {

Error EtcdRequest::Reply::error() const {
  const std::string words = "etcd: " + (text.empty() ? std::string{"no answer"} : text);
  switch (status) {
    case EtcdStatusCode::unauthorized:
      return {ErrorCode::unauthorized, words, native};
    case EtcdStatusCode::outcome_unknown:
      return {ErrorCode::outcome_unknown, words, native};
    default:
      return {ErrorCode::unavailable, words, native};
  }
}

bool EtcdRequest::await_suspend(std::coroutine_handle<> waiter) {
  waiter_ = waiter;
  return session_->connection_->begin(*this);
}

EtcdSession::EtcdSession(EtcdOptions options, Events events)
    : connection_{std::make_unique<EtcdConnection>(std::move(options), std::move(events))} {
  connection_->start();
}

EtcdSession::~EtcdSession() {
  stop();
}

void EtcdSession::stop() {
  connection_->stop();
}

bool EtcdSession::await_connection(base::Time until) const {
  return connection_->await_ready(until);
}

Error EtcdSession::trouble() const {
  return connection_->trouble();
}

std::string EtcdSession::server() const {
  return connection_->server();
}

EtcdRequest EtcdSession::watch(std::int64_t id, std::string_view key) {
  return EtcdRequest{this, id, encode_watch(id, key, EtcdEvents::all), {}};
}

EtcdRequest EtcdSession::watch_ends(std::int64_t id, std::string_view directory,
                                    std::vector<std::string> keys) {
  return EtcdRequest{this, id, encode_watch(id, directory, EtcdEvents::ends), std::move(keys)};
}

void EtcdSession::unwatch(std::int64_t id) {
  connection_->unwatch(id);
}

}  // namespace holdfast::engines
