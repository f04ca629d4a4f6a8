#include "engines/postgres/postgres_doorbell.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <utility>

#include "engines/postgres/postgres_rows.h"

namespace holdfast::engines::postgres {
namespace {

using engine::Talk;

// A server that is connected tells everything; but a line may be dead without
// a word. So of that many looks one is taken.
constexpr int kLooksInVain = 10;
// Those beyond learn of a revocation when they renew.
constexpr std::size_t kMostUnheard = 1000;
// Whoever waits for a connection that takes longer waits in vain, most likely.
constexpr base::Duration kMostConnectWithin = std::chrono::seconds{1};

std::optional<engine::Ring> parse(std::string_view payload) {
  engine::Ring ring;
  const std::size_t digits = 2 * ring.id.bytes.size();
  if (payload.size() < digits + 2 || payload[digits] != ' ') {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < ring.id.bytes.size(); ++i) {
    const char* pair = payload.data() + 2 * i;
    if (std::from_chars(pair, pair + 2, ring.id.bytes.at(i), 16).ptr != pair + 2) {
      return std::nullopt;
    }
  }
  const char* end = payload.data() + payload.size();
  if (std::from_chars(payload.data() + digits + 1, end, ring.token).ptr != end) {
    return std::nullopt;
  }
  return ring;
}

}  // namespace

std::string Doorbell::channel_of(const core::SessionId& session) {
  return "holdfast_" + session.hex();
}

std::string Doorbell::payload_of(const core::Wake& wake) {
  return wake.id.hex() + " " + std::to_string(wake.token);
}

Doorbell::Doorbell(const Shared& shared)
    : shared_{shared},
      listen_{"LISTEN " + channel_of(shared.client.session)},
      epoll_{epoll_create1(EPOLL_CLOEXEC)},
      unread_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)},
      session_{shared.options} {
  epoll_event event{.events = EPOLLIN, .data = {}};
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, unread_.get(), &event);
}

bool Doorbell::is_settled() {
  const std::lock_guard lock{mutex_};
  look_and_tell();
  return state_ == State::listening || state_ == State::impossible;
}

// With mutex_ held.
bool Doorbell::is_deaf() const noexcept {
  return state_ == State::silent || state_ == State::connecting;
}

void Doorbell::holds(std::string_view key, const core::RequestId& id) {
  const std::lock_guard lock{mutex_};
  if (is_deaf() && unheard_.size() < kMostUnheard) {
    unheard_.push_back({.key = std::string{key}, .id = id});
  }
}

void Doorbell::gives_back(const core::RequestId& id) {
  const std::lock_guard lock{mutex_};
  const auto found = std::find_if(unheard_.begin(), unheard_.end(),
                                  [&](const Unheard& held) { return held.id == id; });
  if (found != unheard_.end()) {
    leaving_.push_back(std::move(*found));
    unheard_.erase(found);
  }
}

void Doorbell::gave_back(const core::RequestId& id) {
  const std::lock_guard lock{mutex_};
  std::erase_if(leaving_, [&](const Unheard& held) { return held.id == id; });
}

void Doorbell::may_still_hold(const core::RequestId& id) {
  const std::lock_guard lock{mutex_};
  const auto found = std::find_if(leaving_.begin(), leaving_.end(),
                                  [&](const Unheard& held) { return held.id == id; });
  if (found == leaving_.end()) {
    return;
  }
  if (is_deaf()) {
    unheard_.push_back(std::move(*found));
  } else {
    // Those who were unheard have been looked after meanwhile, without this one.
    rings_.push_back({.id = id, .token = 0});
    look_and_tell();
  }
  leaving_.erase(found);
}

void Doorbell::hang(engine::Driver& driver) {
  {
    const std::lock_guard lock{mutex_};
    if (hanging_ || state_ != State::silent) {
      return;
    }
    hanging_ = true;
    state_ = State::connecting;
    connecting_since_ = base::BootClock::now();
  }
  talk_.begin(driver, listen(), engine::Patience::none, [this](bool) {
    const std::lock_guard lock{mutex_};
    hanging_ = false;
  });
}

Talk<bool> Doorbell::await_settled() {
  while (true) {
    const base::Time now = base::BootClock::now();
    {
      const std::lock_guard lock{mutex_};
      if (state_ != State::connecting || now > connecting_since_ + kMostConnectWithin) {
        co_return state_ == State::listening;
      }
    }
    if (!co_await engine::Moment{{.until = now + std::chrono::milliseconds{1}}}) {
      co_return false;
    }
  }
}

// While it connects the session is this conversation's alone.
Talk<bool> Doorbell::listen() {
  auto connected = co_await session_.connect();
  State reached = State::silent;
  if (connected && session_.is_pooled()) {
    session_.close();
    reached = State::impossible;
  } else if (connected) {
    const auto listening = co_await session_.ask({.sql = &listen_});
    epoll_event event{.events = EPOLLIN, .data = {}};
    // A copy, to be taken out by hand: libpq closes its own when it likes, and a
    // forked child that has it as well would keep it in there.
    watched_ = base::FileDescriptor{fcntl(session_.fd(), F_DUPFD_CLOEXEC, 0)};
    if (listening && epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, watched_.get(), &event) == 0) {
      reached = State::listening;
    } else {
      session_.close();
    }
  }
  while (reached == State::listening) {
    if (co_await look_after_the_unheard()) {
      co_return true;
    }
    if (!session_.is_open()) {
      epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, watched_.get(), nullptr);
      watched_ = {};
      reached = State::silent;
    }
  }
  const std::lock_guard lock{mutex_};
  state_ = reached;
  if (reached == State::impossible) {
    unheard_.clear();
  }
  co_return false;
}

// On a line that listens already. Rings for those who hold no more, though they
// gave nothing back. True when there is nobody left: from that moment on it counts as listening,
// so that whoever comes is either looked after or heard.
Talk<bool> Doorbell::look_after_the_unheard() {
  ArrayOf names{Element::text};
  std::set<core::RequestId> asked;
  {
    const std::lock_guard lock{mutex_};
    for (const Unheard& held : unheard_) {
      names.add(held.key);
      asked.insert(held.id);
    }
    if (asked.empty()) {
      state_ = State::listening;
      looks_ = 0;
      look_and_tell();  // libpq may have read more than its answer
      co_return true;
    }
  }
  Call call{.sql = &shared_.sql.read};
  call.values.push_back(shared_.test_time());
  call.values.emplace_back(names.bytes());
  const auto rows = co_await session_.ask(std::move(call));
  if (!rows) {
    session_.close();
    co_return false;
  }
  std::set<core::RequestId> holders;
  for (int i = 0; i < rows->size(); ++i) {
    if (const auto record = StoredLock::from(*rows, i).row.to_record()) {
      for (const core::Holder& holder : record->holders()) {
        if (!holder.revoked) {
          holders.insert(holder.id);
        }
      }
    }
  }
  const std::lock_guard lock{mutex_};
  for (const Unheard& held : unheard_) {
    if (asked.contains(held.id) && !holders.contains(held.id)) {
      rings_.push_back({.id = held.id, .token = 0});
    }
  }
  std::erase_if(unheard_, [&](const Unheard& held) { return asked.contains(held.id); });
  co_return false;
}

bool Doorbell::may_have_missed() {
  const std::lock_guard lock{mutex_};
  if (state_ != State::listening) {
    return true;
  }
  epoll_event event{};
  const bool unread = epoll_wait(epoll_.get(), &event, 1, 0) > 0;
  looks_ = (looks_ + 1) % kLooksInVain;
  return unread || looks_ == 1;
}

std::vector<engine::Ring> Doorbell::answer() {
  const std::lock_guard lock{mutex_};
  eventfd_t count = 0;
  eventfd_read(unread_.get(), &count);
  look();
  return std::exchange(rings_, {});
}

// With mutex_ held, by others than answer().
void Doorbell::look_and_tell() {
  look();
  if (!rings_.empty()) {
    eventfd_write(unread_.get(), 1);  // the descriptor must not fall silent over it
  }
}

// With mutex_ held. Takes what has come, and notices that the line is dead.
void Doorbell::look() {
  if (state_ != State::listening) {
    return;
  }
  std::vector<Notice> notices;
  if (!session_.take_notices(notices)) {
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, watched_.get(), nullptr);
    watched_ = {};
    session_.close();
    state_ = State::silent;
  }
  for (const Notice& notice : notices) {
    if (const auto ring = parse(notice.payload)) {
      rings_.push_back(*ring);
    }
  }
}

}  // namespace holdfast::engines::postgres
