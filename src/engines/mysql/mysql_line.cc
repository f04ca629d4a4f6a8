#include "engines/mysql/mysql_line.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "base/ids.h"

namespace holdfast::engines {
namespace {

using engine::Talk;
using namespace std::chrono_literals;

constexpr unsigned kDuplicate = 1062;  // somebody inserted the same name a moment earlier
constexpr unsigned kTooLong = 1406;
constexpr base::Duration kFirstPause = 2ms;
constexpr base::Duration kLongestPause = 300ms;
constexpr base::Duration kToMakeTables = 10s;

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

bool may_pass(const MysqlError& error, bool may_be_repeated) {
  switch (trouble_of(error)) {
    case MysqlTrouble::collision:
    case MysqlTrouble::not_ready:
      return true;
    case MysqlTrouble::disconnected:
      return may_be_repeated;
    case MysqlTrouble::no_table:
    case MysqlTrouble::final:
      return error.code == kDuplicate;
  }
  return false;
}

Error told(const MysqlError& error, bool may_be_done, const MysqlOptions& options) {
  if (error.code == kTooLong) {
    return {ErrorCode::invalid_argument, "the name is longer than the table's column",
            static_cast<int>(error.code)};
  }
  Error made = as_error(error, options);
  if (may_be_done && error.disconnected) {
    made.code = ErrorCode::outcome_unknown;
  }
  return made;
}

base::Duration part_of(base::Duration pause) {
  return base::Duration{static_cast<base::Duration::rep>(
      base::random_u64() % static_cast<std::uint64_t>(pause.count()))};
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

Talk<Result<void>> MysqlLine::insist(std::string packet, Repeat repeat) {
  const base::Time deadline = base::BootClock::now() + options_.timeout;
  base::Duration pause = kFirstPause;
  bool made_tables = false;
  while (true) {
    const bool connects = session_.is_stale();
    Result<void> done;
    if (connects) {
      done = co_await connect();
    } else {
      done = co_await ask(packet, options_.timeout);
    }
    if (done && connects) {
      continue;
    }
    if (done || !session_.error()) {
      co_return done;
    }
    const bool harmless = connects || repeat == Repeat::harmless;
    MysqlError error = *session_.error();
    if (trouble_of(error) == MysqlTrouble::no_table && create_ &&
        !std::exchange(made_tables, true)) {
      done = co_await ask(create_(), std::max(options_.timeout, kToMakeTables));
      if (done) {
        continue;
      }
      if (!session_.error()) {
        co_return tl::unexpected{closing(ErrorCode::unavailable)};
      }
      error = *session_.error();
      made_tables = !may_pass(error, true);
    }
    if (!may_pass(error, harmless) || base::BootClock::now() >= deadline) {
      session_.close();  // with what the packet had begun
      co_return tl::unexpected{told(error, !harmless, options_)};
    }
    const engine::Conversation::Wait rest{.until = base::BootClock::now() + part_of(pause)};
    pause = std::min(pause * 2, kLongestPause);
    const auto rested = co_await engine::Moment{rest};
    if (!rested) {
      co_return tl::unexpected{closing(ErrorCode::unavailable)};
    }
  }
}

}  // namespace holdfast::engines
