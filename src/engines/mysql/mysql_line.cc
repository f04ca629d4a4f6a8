#include "engines/mysql/mysql_line.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <utility>

namespace holdfast::engines {
namespace {

using engine::Talk;

// Where nothing is said for hours, the kernel notices that the line is dead.
void keep_alive(int socket) {
  const auto set = [&](int level, int option, int value) {
    setsockopt(socket, level, option, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 10);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
}

Error closing(ErrorCode code) {
  return {code, "the client is being closed", std::nullopt};
}

}  // namespace

Talk<bool> MysqlLine::drive() {
  short ready = 0;
  while (auto wait = session_.advance(ready)) {
    fd_ = wait->fd;
    const auto found = co_await engine::Moment{*wait};
    if (!found) {
      session_.close();
      co_return false;
    }
    ready = *found;
  }
  co_return true;
}

Talk<Result<void>> MysqlLine::connect() {
  session_.start_connect();
  const bool driven = co_await drive();
  if (!driven) {
    co_return tl::unexpected{closing(ErrorCode::unavailable)};
  }
  if (session_.error()) {
    co_return tl::unexpected{as_error(*session_.error(), options_)};
  }
  keep_alive(fd_);
  co_return Result<void>{};
}

Talk<Result<void>> MysqlLine::ask(std::string packet, base::Duration timeout) {
  session_.start_query(std::move(packet), timeout);
  const bool driven = co_await drive();
  if (!driven) {
    co_return tl::unexpected{closing(ErrorCode::outcome_unknown)};
  }
  if (session_.error()) {
    Error error = as_error(*session_.error(), options_);
    error.code = session_.error()->disconnected ? ErrorCode::outcome_unknown : error.code;
    co_return tl::unexpected{std::move(error)};
  }
  co_return Result<void>{};
}

}  // namespace holdfast::engines
