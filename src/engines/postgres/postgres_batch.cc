#include "engines/postgres/postgres_batch.h"

#include <algorithm>
#include <set>
#include <utility>

#include "engine/batch.h"
#include "engines/postgres/postgres_errors.h"
#include "engines/relational/odd_bytes.h"

namespace holdfast::engines::postgres {
namespace {

using core::Status;
using engine::Moment;
using engine::Talk;
using relational::escaped;

// Those who come first at the same row again and again step aside for a moment.
constexpr int kRoundsInARow = 3;
constexpr base::Duration kLongestPause = std::chrono::milliseconds{20};

// How long a guarded transaction counts as a holder before one looks again.
constexpr base::Duration kGuardTime = std::chrono::milliseconds{100};

core::Duration whole(core::Duration duration) {
  return std::chrono::floor<std::chrono::microseconds>(duration);
}

bool lasts(core::Duration duration) {
  return duration >= std::chrono::microseconds{1} && duration <= kMaxTtl;
}

bool is_plain(const core::Acquire& acquire) {
  return acquire.shape == core::Shape{} && lasts(acquire.ttl) && lasts(acquire.window);
}

// The store counts in microseconds.
core::Operation in_microseconds(core::Operation operation) {
  const auto shorten = [](core::Acquire& acquire) {
    acquire.ttl = whole(acquire.ttl);
    acquire.window = whole(acquire.window);
  };
  if (auto* acquire = std::get_if<core::Acquire>(&operation)) {
    shorten(*acquire);
  } else if (auto* requeue = std::get_if<core::Requeue>(&operation)) {
    shorten(requeue->next);
  } else if (auto* transfer = std::get_if<core::Transfer>(&operation)) {
    shorten(transfer->next);
  }
  return operation;
}

}  // namespace

Batch::Batch(const Shared& shared, engine::Driver& driver, Session& session, Doorbell& doorbell,
             relational::KnownNames& known, std::span<const core::Command> commands)
    : shared_{shared},
      driver_{driver},
      session_{session},
      doorbell_{doorbell},
      known_{known},
      commands_{commands},
      give_up_{base::BootClock::now() + shared.options.timeout},
      outcomes_(commands.size()) {}

Talk<engine::Outcomes> Batch::run() {
  sort_out();
  if (entries_.empty()) {
    co_return std::move(outcomes_);
  }
  if (!session_.is_open()) {
    if (auto connected = co_await session_.connect(); !connected) {
      for (auto& [key, entry] : entries_) {
        fail(entry, connected.error());
      }
      co_return std::move(outcomes_);
    }
  }
  // Whoever asks how its place in the queue stands wants to hear the bell.
  const bool waits = std::any_of(commands_.begin(), commands_.end(), [](const auto& command) {
    return std::holds_alternative<core::Poll>(command.operation);
  });
  if (waits) {
    co_await hear();
  }
  bool go_on = co_await first_round();
  while (go_on) {
    Entries changed;
    for (Entry* entry : on(Way::record)) {
      if (entry->stored && apply(*entry)) {
        changed.push_back(entry);
      }
    }
    if (!changed.empty()) {
      go_on = co_await write(changed);
    }
    const Entries again = on(Way::record);
    if (again.empty() || !go_on) {
      break;
    }
    go_on = co_await pause_before_retry();
    if (go_on) {
      auto rows = co_await session_.ask(read_call(again));
      take_rows(again, rows, true);
    }
  }
  for (Entry* entry : on(Way::record)) {
    fail(*entry, lost_connection(ErrorCode::unavailable, ""));
  }
  co_return std::move(outcomes_);
}

void Batch::sort_out() {
  for (std::size_t i = 0; i < commands_.size(); ++i) {
    if (auto good = engine::check_name(commands_[i].name); !good) {
      outcomes_[i] = engine::failed(good.error());
      continue;
    }
    std::string key = escaped(commands_[i].name);
    Entry& entry = entries_[key];
    entry.key = std::move(key);
    entry.commands.push_back(i);
  }
  for (auto& [key, entry] : entries_) {
    entry.way = way_for(entry);
  }
}

Batch::Way Batch::way_for(const Entry& entry) const {
  if (entry.commands.size() > 1) {
    return Way::record;
  }
  const core::Operation& operation = commands_[entry.commands.front()].operation;
  if (const auto* acquire = std::get_if<core::Acquire>(&operation)) {
    return is_plain(*acquire) ? Way::take : Way::record;
  }
  if (std::holds_alternative<core::Release>(operation)) {
    return Way::release;
  }
  if (const auto* requeue = std::get_if<core::Requeue>(&operation)) {
    return is_plain(requeue->next) && requeue->id != requeue->next.id ? Way::requeue : Way::record;
  }
  return std::holds_alternative<core::Renew>(operation) ? Way::renew : Way::record;
}

Batch::Entries Batch::on(Way way) {
  Entries found;
  for (auto& [key, entry] : entries_) {
    if (entry.way == way) {
      found.push_back(&entry);
    }
  }
  return found;
}

// What can go together, in one statement and one commit: if there is more than one kind.
Batch::Entries Batch::exchangeable() {
  Entries found;
  std::set<Way> kinds;
  for (auto& [key, entry] : entries_) {
    if (entry.way == Way::release || entry.way == Way::renew ||
        (entry.way == Way::take && known_.contains(key))) {
      found.push_back(&entry);
      kinds.insert(entry.way);
    }
  }
  return kinds.size() > 1 ? found : Entries{};
}

// What else is in the batch, and renewals that come after it, must not wait for a connection that
// cannot be made: then the next look makes up for the bell.
Talk<bool> Batch::hear() {
  if (!doorbell_.is_settled()) {
    doorbell_.hang(driver_);
    co_return co_await doorbell_.await_settled();
  }
  co_return true;
}

// The short ways, and the reads for the long one, in one round trip.
Talk<bool> Batch::first_round() {
  const Entries exchanged = exchangeable();
  for (Entry* entry : exchanged) {
    entry->from = std::exchange(entry->way, Way::exchange);
  }
  const Entries releases = on(Way::release);
  const Entries renewals = on(Way::renew);
  const Entries takes = on(Way::take);
  const Entries requeues = on(Way::requeue);
  const Entries reads = on(Way::record);
  std::vector<Call> calls;
  if (!exchanged.empty()) {
    calls.push_back(exchange_call(exchanged));
  }
  if (!releases.empty()) {
    calls.push_back(change_call(releases, shared_.sql.release_one, shared_.sql.release));
  }
  if (!renewals.empty()) {
    calls.push_back(change_call(renewals, shared_.sql.renew_one, shared_.sql.renew));
  }
  if (!takes.empty()) {
    calls.push_back(take_call(takes));
  }
  if (!reads.empty()) {
    calls.push_back(read_call(reads));
  }
  for (const Entry* entry : requeues) {
    calls.push_back(requeue_call(*entry));
  }
  const auto results = co_await session_.exchange(std::move(calls));
  std::size_t next = 0;
  for (const Entries* entries : {&exchanged, &releases, &renewals, &takes, &reads}) {
    if (!entries->empty()) {
      take_rows(*entries, results[next++], entries == &reads);
    }
  }
  for (Entry* entry : requeues) {
    const Entries alone{entry};
    take_rows(alone, results[next++], false);
  }
  co_return session_.is_open();
}

void Batch::take_rows(const Entries& entries, const Result<Rows>& rows, bool read_only) {
  if (!rows && is_contention(rows.error())) {
    for (Entry* entry : entries) {
      entry->way = Way::record;  // to be read
      entry->stored.reset();
    }
    return;
  }
  if (!rows) {
    Error error = rows.error();
    if (read_only && error.code == ErrorCode::outcome_unknown) {
      error.code = ErrorCode::unavailable;  // a question changes nothing
    }
    for (Entry* entry : entries) {
      fail(*entry, error);
    }
    return;
  }
  for (Entry* entry : entries) {
    // The row is not there, until one is found below.
    const bool known_missing = rows->size() > 0 && read_only;
    entry->stored = known_missing ? std::optional<StoredLock>{StoredLock{}} : std::nullopt;
    if (known_missing) {
      entry->stored->now = to_time(rows->text(0, kNow));
      entry->stored->token_floor = static_cast<std::uint64_t>(rows->integer(0, kFloor));
    }
    entry->way = Way::record;
  }
  for (int i = 0; i < rows->size(); ++i) {
    if (const auto found = entries_.find(std::string{rows->text(i, kName)});
        found != entries_.end()) {
      known_.add(found->first);
      settle_short_way(found->second, *rows, i);
    }
  }
}

void Batch::settle_short_way(Entry& entry, const Rows& rows, int index) {
  if (to_int(rows.text(index, kApplied)) == 0) {
    entry.stored = StoredLock::from(rows, index);
    return;
  }
  const std::size_t place = entry.commands.front();
  if (std::holds_alternative<core::Release>(commands_[place].operation)) {
    outcomes_[place] = {.status = Status::released};
  } else {
    const bool renewed = std::holds_alternative<core::Renew>(commands_[place].operation);
    outcomes_[place] = {.status = renewed ? Status::renewed : Status::granted,
                        .token = static_cast<std::uint64_t>(rows.integer(index, kToken)),
                        .lease_for = to_duration(rows.text(index, kTtl))};
    outcomes_[place].gave_back = std::holds_alternative<core::Requeue>(commands_[place].operation);
  }
  entry.way = Way::done;
}

void Batch::fail(Entry& entry, const Error& error) {
  for (const std::size_t place : entry.commands) {
    outcomes_[place] = engine::failed(error);
  }
  entry.way = Way::done;
}

bool Batch::apply(Entry& entry) {
  const StoredLock& stored = *entry.stored;
  auto record = stored.row.to_record();
  if (!record) {
    fail(entry, record.error());
    return false;
  }
  entry.before = *record;
  entry.after = before_commands(entry, *std::move(record));
  entry.wakes.clear();
  const core::LockRecord::Context context{.now = stored.now, .token_floor = stored.token_floor};
  for (const std::size_t place : entry.commands) {
    outcomes_[place] =
        entry.after.apply(in_microseconds(commands_[place].operation), context, entry.wakes);
  }
  const bool never_used = !stored.exists && entry.after.last_token() == 0;
  const bool unchanged = entry.after == entry.before && entry.wakes.empty();
  if (never_used || (unchanged && !tells_of_a_grant(entry))) {
    entry.way = Way::done;
    return false;
  }
  return true;
}

// Whoever learns by a look that it holds the lock counts from then, not from its last heartbeat:
// what passed the lock to it (postgres_next.h) must be on disk first. To write the row again takes
// it there.
bool Batch::tells_of_a_grant(const Entry& entry) const {
  return !entry.stored->row.record &&
         std::any_of(entry.commands.begin(), entry.commands.end(),
                     [&](std::size_t place) { return outcomes_[place].status == Status::granted; });
}

// A transaction that was guarded by the last holder and still runs counts as a
// holder, for a moment at a time.
core::LockRecord Batch::before_commands(const Entry& entry, core::LockRecord record) const {
  if (!entry.guarded) {
    return record;
  }
  core::LockRecord::Parts parts{.limit = record.limit(),
                                .last_token = record.last_token(),
                                .holders = record.holders(),
                                .queue = record.queue()};
  const core::Time now = entry.stored->now;
  std::erase_if(parts.holders, [&](const core::Holder& each) { return each.expires <= now; });
  if (parts.holders.empty() && parts.last_token >= core::kTokenStride) {
    core::Shape shape;
    if (parts.limit > 0) {
      shape = {.mode = Mode::permits, .permits = parts.limit, .limit = parts.limit};
    }
    parts.holders.push_back({.id = core::RequestId::random(),
                             .session = {},
                             .shape = shape,
                             .token = parts.last_token - (core::kTokenStride - 1),
                             .ttl = kGuardTime,
                             .since = now,
                             .expires = now + kGuardTime});
  }
  return core::LockRecord::from_parts(std::move(parts));
}

bool Batch::queues_someone(const Entries& entries) const {
  return std::any_of(entries.begin(), entries.end(), [&](const Entry* entry) {
    return std::any_of(entry->commands.begin(), entry->commands.end(), [&](std::size_t place) {
      return outcomes_[place].status == Status::queued;
    });
  });
}

// A fence rises when nobody is left who held the lock before.
std::optional<std::uint64_t> Batch::new_fence(const Entry& entry) const {
  if (!entry.stored->fenced || entry.after.holders().empty()) {
    return std::nullopt;
  }
  std::uint64_t lowest = core::kMaxToken;
  for (const core::Holder& holder : entry.after.holders()) {
    lowest = std::min(lowest, holder.token);
  }
  return lowest > entry.before.last_token() ? std::optional{lowest} : std::nullopt;
}

Talk<bool> Batch::write(const Entries& entries) {
  // Whoever queues up must be able to hear the bell first.
  if (queues_someone(entries)) {
    co_await hear();
  }
  auto rows = co_await session_.ask(write_call(entries));
  take_written(entries, rows);
  co_return session_.is_open();
}

void Batch::take_written(const Entries& entries, const Result<Rows>& rows) {
  for (Entry* entry : entries) {
    if (rows || is_contention(rows.error())) {
      entry->stored.reset();  // unless it was written, somebody was faster
    } else {
      fail(*entry, rows.error());
    }
  }
  for (int i = 0; rows && i < rows->size(); ++i) {
    Entry& entry = entries_.at(std::string{rows->text(i, 0)});
    if (to_int(rows->text(i, 1)) != 0) {
      entry.way = Way::done;
    } else {
      entry.guarded = true;
    }
  }
}

Talk<bool> Batch::pause_before_retry() {
  const base::Time now = base::BootClock::now();
  ++rounds_;
  bool given_up = false;
  if (rounds_ > kRoundsInARow) {
    const auto longest = std::min(kLongestPause, base::Duration{std::chrono::microseconds{200}} *
                                                     (1 << std::min(rounds_, 7)));
    const base::Duration pause{static_cast<std::int64_t>(
        base::random_u64() % static_cast<std::uint64_t>(longest.count()))};
    given_up = !(co_await Moment{{.until = now + pause}});
  }
  if (given_up || now >= give_up_) {
    for (Entry* entry : on(Way::record)) {
      fail(*entry,
           {ErrorCode::unavailable, "PostgreSQL: too many others want the same row", std::nullopt});
    }
    co_return false;
  }
  co_return true;
}

}  // namespace holdfast::engines::postgres
