#include "engines/mysql/mysql_doorbell.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <set>
#include <utility>

#include "engines/mysql/mysql_errors.h"
#include "engines/mysql/mysql_row.h"

namespace holdfast::engines {
namespace {

constexpr std::chrono::seconds kSleep{5};
// Names in the statement that sleeps only if nothing has changed; beyond this
// the client's backstop poll makes up for a ring that falls in between.
constexpr std::size_t kMaxGuarded = 50;
constexpr base::Duration kFirstPause = std::chrono::milliseconds{100};
constexpr base::Duration kLongestPause = std::chrono::seconds{5};

void add(int events, int fd) {
  epoll_event wanted{};
  wanted.events = EPOLLIN;
  epoll_ctl(events, EPOLL_CTL_ADD, fd, &wanted);
}

}  // namespace

MysqlDoorbell::MysqlDoorbell(const MysqlOptions& options, const engine::EngineOptions& client,
                             const MysqlSql& sql)
    : self_{client.session},
      enabled_{options.doorbell},
      sql_{sql},
      events_{epoll_create1(EPOLL_CLOEXEC)},
      nudge_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)},
      timer_{timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)},
      session_{options} {
  add(events_.get(), nudge_.get());
  add(events_.get(), timer_.get());
}

std::vector<engine::Ring> MysqlDoorbell::answer() {
  const std::lock_guard lock{mutex_};
  eventfd_t count = 0;
  eventfd_read(nudge_.get(), &count);
  std::uint64_t times = 0;
  if (read(timer_.get(), &times, sizeof times) > 0 && step_ == Step::resting) {
    connect();
  }
  move_on();
  return std::exchange(rings_, {});
}

void MysqlDoorbell::expect(const core::RequestId& id, std::string_view name,
                           std::uint64_t looks_before, Awaits what) {
  const std::lock_guard lock{mutex_};
  const auto [place, added] = expected_.try_emplace(id, Expected{std::string{name}, 0, what});
  place->second.what = what;
  if (!added || !enabled_) {
    return;
  }
  if (looks_ != looks_before) {
    rings_.push_back({.id = id, .token = 0});
    eventfd_write(nudge_.get(), 1);
  }
  if (step_ == Step::off || (step_ == Step::resting && pause_ == base::Duration::zero())) {
    on_ = true;
    connect();
    move_on();
  }
}

// Most locks are given back long before anybody could revoke them.
void MysqlDoorbell::hold() {
  if (!enabled_ || on_.exchange(true)) {
    return;
  }
  const std::lock_guard lock{mutex_};
  if (step_ == Step::off) {
    step_ = Step::resting;
    set_timer(kFirstPause);
  }
}

void MysqlDoorbell::dismiss(const core::RequestId& id, Awaits what) {
  const std::lock_guard lock{mutex_};
  const auto found = expected_.find(id);
  if (found != expected_.end() && found->second.what == what) {
    expected_.erase(found);
  }
}

void MysqlDoorbell::dismiss(const core::RequestId& id) {
  const std::lock_guard lock{mutex_};
  expected_.erase(id);
}

void MysqlDoorbell::append_rings(std::string& packet, std::span<const core::Wake> wakes,
                                 bool on_mariadb) const {
  std::set<core::SessionId> rung{self_};
  for (const core::Wake& wake : wakes) {
    if (rung.insert(wake.session).second) {
      MysqlSql::wake(packet, wake.session, on_mariadb);
    }
  }
}

void MysqlDoorbell::ring_ourselves(std::span<const core::Wake> wakes) {
  const std::lock_guard lock{mutex_};
  for (const core::Wake& wake : wakes) {
    if (wake.session == self_) {
      rings_.push_back({.id = wake.id, .token = wake.token});
      expected_.erase(wake.id);
      eventfd_write(nudge_.get(), 1);
    }
  }
}

void MysqlDoorbell::move_on() {
  while (step_ != Step::off && step_ != Step::resting) {
    pollfd now{watched_, POLLIN | POLLOUT, 0};
    if (watched_ >= 0) {
      poll(&now, 1, 0);
    }
    const auto wait = session_.advance(now.revents);
    if (wait) {
      watch(wait->fd, wait->events);
      set_timer(std::max(wait->until - base::BootClock::now(), base::Duration{1}));
      return;
    }
    on_over();
  }
}

void MysqlDoorbell::on_over() {
  constexpr unsigned kFirstOfTheClients = 2000;  // errors below it are the server's
  // A server that refuses such locks leaves us the looks alone.
  const bool refused =
      step_ == Step::hanging && session_.error() && session_.error()->code < kFirstOfTheClients;
  // Rung, or in somebody's way.
  const bool disturbed =
      session_.error() && trouble_of(*session_.error()) == MysqlTrouble::collision;
  if (session_.error() && !disturbed && !refused) {
    rest();
    return;
  }
  pause_ = {};
  if (step_ == Step::hanging) {
    has_locks_ = !refused;
  }
  if (step_ == Step::connecting) {
    hang();
  } else if (step_ == Step::looking && !session_.error()) {
    if (!take_news() && look_ == Look::at_locks) {
      look(Look::settled);
    } else {
      sleep();
    }
  } else {
    // Rung, also during a look; or hung, or slept out. Not every sleep says that it was
    // interrupted.
    const bool rung =
        disturbed || (step_ == Step::sleeping && base::BootClock::now() - asleep_since_ < kSleep);
    look(rung && !expected_.empty() ? Look::at_locks : Look::at_all);
  }
}

void MysqlDoorbell::connect() {
  watched_ = -1;
  session_.start_connect();
  step_ = Step::connecting;
}

void MysqlDoorbell::hang() {
  on_mariadb_ = session_.server_version().find("MariaDB") != std::string::npos;
  std::string packet;
  sql_.hang(packet, on_mariadb_);
  send(Step::hanging, std::move(packet), kSleep);
}

void MysqlDoorbell::look(Look how) {
  ++looks_;
  look_ = how;
  std::vector<std::string_view> names;
  for (const auto& [id, expected] : expected_) {
    names.push_back(expected.name);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::string packet;
  if (how != Look::at_locks) {
    sql_.read_notes(packet);
  }
  if (how == Look::settled) {
    // One after the other: none is kept locked while the next one is waited for.
    for (const std::string& name : passing_) {
      sql_.read_settled(packet, name);
    }
  } else if (!names.empty()) {
    sql_.read_rows(packet, names);
  }
  send(Step::looking, std::move(packet), kSleep);
}

bool MysqlDoorbell::take_news() {
  const auto& replies = session_.replies();
  const std::size_t told = rings_.size();
  has_notes_ = false;
  if (look_ != Look::at_locks) {
    const MysqlReply& notes = replies.front();
    has_notes_ = notes.rows() > 0;
    for (std::size_t i = 0; i < notes.rows(); ++i) {
      rings_.push_back({.id = read_id(notes.cell(i, 0)), .token = 0});
    }
  }
  passing_.clear();
  std::map<std::string_view, MysqlRow> rows;
  for (std::size_t at = look_ == Look::at_locks ? 0 : 1; at < replies.size(); ++at) {
    for (std::size_t i = 0; i < replies[at].rows(); ++i) {
      MysqlRow row = read_row(replies[at], i);
      if (row.row.session == self_ && !row.row.rest.empty() && passing_.size() < kMaxGuarded) {
        passing_.emplace_back(row.name);
      }
      rows.emplace(row.name, std::move(row));
    }
  }
  for (auto each = expected_.begin(); each != expected_.end();) {
    const auto found = rows.find(each->second.name);
    const bool granted = found != rows.end() && tell(each->first, each->second, found->second);
    each = granted ? expected_.erase(each) : std::next(each);
  }
  return rings_.size() > told;
}

// True if it has the lock, and was told.
bool MysqlDoorbell::tell(const core::RequestId& id, Expected& expected, const MysqlRow& row) {
  if (row.version == expected.version) {
    return false;
  }
  expected.version = row.version;
  const auto entry = entry_of(row.row);
  if (!entry) {
    return false;  // the next command says so
  }
  const auto same = [&](const auto& party) { return party.id == id; };
  const auto& holders = entry->record.holders();
  const auto holder = std::find_if(holders.begin(), holders.end(), same);
  if (holder != holders.end() && holder->upgrading) {
    return false;
  }
  if (holder != holders.end() && !holder->revoked) {
    rings_.push_back({.id = id, .token = holder->token});
    return true;
  }
  const auto& queue = entry->record.queue();
  if (std::none_of(queue.begin(), queue.end(), same)) {
    rings_.push_back({.id = id, .token = 0});
  }
  return false;
}

void MysqlDoorbell::sleep() {
  std::vector<MysqlSql::Known> known;
  for (const auto& [id, expected] : expected_) {
    if (known.size() < kMaxGuarded) {
      known.push_back({expected.name, expected.version});
    }
  }
  std::string packet;
  if (has_notes_) {
    sql_.drop_notes(packet);
  }
  const bool at_the_door = on_mariadb_ && has_locks_;
  asleep_since_ = base::BootClock::now();
  sql_.sleep(packet, kSleep, known, at_the_door ? MysqlSql::Couch::door : MysqlSql::Couch::sleep);
  send(Step::sleeping, std::move(packet), kSleep * 2);
}

void MysqlDoorbell::send(Step step, std::string packet, base::Duration patience) {
  if (step != Step::looking || look_ != Look::at_locks) {
    MysqlSql::as_one(packet, on_mariadb_);
  }
  step_ = step;
  session_.start_query(std::move(packet), patience);
}

void MysqlDoorbell::rest() {
  session_.close();
  watched_ = -1;
  step_ = Step::resting;
  pause_ = std::clamp(pause_ * 2, kFirstPause, kLongestPause);
  set_timer(pause_);
}

void MysqlDoorbell::watch(int fd, short events) {
  epoll_event wanted{};
  wanted.events =
      ((events & POLLIN) != 0 ? EPOLLIN : 0U) | ((events & POLLOUT) != 0 ? EPOLLOUT : 0U);
  if (epoll_ctl(events_.get(), EPOLL_CTL_MOD, fd, &wanted) != 0) {
    epoll_ctl(events_.get(), EPOLL_CTL_ADD, fd, &wanted);
  }
  watched_ = fd;
}

void MysqlDoorbell::set_timer(base::Duration time) {
  itimerspec alarm{};
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  alarm.it_value.tv_sec = seconds.count();
  alarm.it_value.tv_nsec = (time - seconds).count();
  timerfd_settime(timer_.get(), 0, &alarm, nullptr);
}

}  // namespace holdfast::engines
