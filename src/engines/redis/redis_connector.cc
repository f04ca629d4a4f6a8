#include "engines/redis/redis_connector.h"

#include <poll.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "engine/credentials.h"
#include "engines/redis/redis_errors.h"

namespace holdfast::engines {
namespace {

RedisAccess for_sentinel(const RedisAccess& access) {
  RedisAccess plain = access;
  plain.user.clear();
  plain.password.clear();
  plain.database = 0;
  return plain;
}

// Returns what poll(2) found, or 0 at the deadline.
short poll_until(const engine::Conversation::Wait& wait, base::Time deadline) {
  const base::Duration left = std::min(wait.until, deadline) - base::BootClock::now();
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  pollfd wanted{wait.fd, wait.events, 0};
  return poll(&wanted, 1, static_cast<int>(std::clamp<std::int64_t>(milliseconds, 0, 60'000))) > 0
             ? wanted.revents
             : short{0};
}

}  // namespace

RedisConnector::RedisConnector(const RedisOptions& options, std::shared_ptr<RedisTls> tls,
                               std::string last_words, std::size_t last_replies)
    : options_{options},
      last_words_{std::move(last_words)},
      last_replies_{last_replies},
      link_{options.access, tls} {
  if (!options.sentinels.empty()) {
    sentinel_.emplace(for_sentinel(options.access), std::move(tls));
  }
}

void RedisConnector::close() {
  link_.close();
  master_.reset();
  if (sentinel_) {
    sentinel_->close();
  }
}

void RedisConnector::next_sentinel() {
  which_sentinel_ = (which_sentinel_ + 1) % options_.sentinels.size();
}

Result<void> RedisConnector::ask_sentinel(short ready) {
  if (sentinel_->state() == RedisLink::State::closed) {
    sentinel_->open(options_.sentinels[which_sentinel_]);
    asked_ = false;
  }
  auto moved = sentinel_->advance(ready);
  if (moved && sentinel_->state() == RedisLink::State::ready && !std::exchange(asked_, true)) {
    append_resp_command(sentinel_->out(), "SENTINEL", "get-master-addr-by-name", options_.master);
    moved = sentinel_->advance(0);
  }
  if (!moved) {
    next_sentinel();
    return moved;
  }
  const auto reply = asked_ ? sentinel_->take_reply() : std::nullopt;
  if (!reply) {
    return {};
  }
  sentinel_->close();
  RedisAddress found;
  if (reply->items.size() == 2) {
    const std::string& port = reply->items[1].text;
    std::from_chars(port.data(), port.data() + port.size(), found.port);
    found.host = reply->items[0].text;
  }
  if (found.port == 0) {
    next_sentinel();
    return fail(ErrorCode::unavailable,
                "the sentinel does not know a master called " + options_.master);
  }
  if (!options_.access.tls && !options_.access.insecure && !engine::is_loopback(found.host)) {
    return fail(ErrorCode::invalid_argument,
                "the sentinels name a master on another machine (" + found.text() +
                    "): add tls=true, or insecure=true if the network is trusted");
  }
  master_ = std::move(found);
  return {};
}

Result<void> RedisConnector::advance(short ready) {
  if (link_.state() == RedisLink::State::closed) {
    if (sentinel_ && !master_) {
      auto asked = ask_sentinel(ready);
      if (!asked || !master_) {
        return asked;
      }
    }
    link_.open(sentinel_ ? *std::exchange(master_, std::nullopt) : options_.server, last_words_,
               last_replies_);
    ready = 0;
  }
  auto moved = link_.advance(ready);
  if (moved && sentinel_ && is_ready() && !link_.greeting().role.empty() &&
      link_.greeting().role != "master") {
    next_sentinel();
    moved = fail(ErrorCode::unavailable,
                 "the sentinels name a master that is none any more: " + link_.address().text());
    link_.close();
  }
  return moved;
}

engine::Conversation::Wait RedisConnector::wait() const {
  return link_.state() == RedisLink::State::closed && sentinel_ ? sentinel_->wait() : link_.wait();
}

Result<void> RedisConnector::connect_until(base::Time deadline) {
  auto moved = advance(0);
  while (moved && !is_ready()) {
    if (base::BootClock::now() >= deadline) {
      close();
      return fail(ErrorCode::unavailable, "Redis does not answer in time");
    }
    moved = advance(poll_until(wait(), deadline));
  }
  return moved;
}

Result<RespValue> RedisConnector::exchange_until(const std::string& command, base::Time deadline) {
  if (is_ready() && link_.has_ended()) {
    close();
  }
  if (auto connected = connect_until(deadline); !connected) {
    return tl::unexpected{connected.error()};
  }
  link_.out() += command;
  short ready = 0;
  while (true) {
    if (auto moved = link_.advance(ready); !moved) {
      return tl::unexpected{moved.error()};
    }
    if (auto reply = link_.take_reply()) {
      return *std::move(reply);
    }
    if (base::BootClock::now() >= deadline) {
      close();
      return fail(ErrorCode::unavailable, "Redis does not answer in time");
    }
    ready = poll_until(link_.wait(), deadline);
  }
}

Result<RespValue> RedisConnector::ask_until(const std::string& command, base::Time deadline) {
  auto reply = exchange_until(command, deadline);
  if (reply && reply->is_error()) {
    return tl::unexpected{redis_error(reply->text)};
  }
  return reply;
}

}  // namespace holdfast::engines
