#include "engines/sqlite/sqlite_engine.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/fork.h"
#include "core/lock_record_codec.h"
#include "engine/batch.h"
#include "engines/sqlite/sqlite_files.h"
#include "engines/sqlite/sqlite_forks.h"

namespace holdfast::engines {
namespace {

// Others' transactions are shorter than that; so even those who will not wait
// rarely need another thread.
constexpr base::Duration kShortestPatience = std::chrono::milliseconds{2};

bool only_looks(std::span<const core::Command> batch) {
  return std::all_of(batch.begin(), batch.end(), [](const core::Command& command) {
    const auto* poll = std::get_if<core::Poll>(&command.operation);
    return poll != nullptr && !poll->heartbeat;
  });
}

bool asks_for_a_lock(const core::Command& command) {
  return std::holds_alternative<core::Acquire>(command.operation) ||
         std::holds_alternative<core::Requeue>(command.operation) ||
         std::holds_alternative<core::Transfer>(command.operation);
}

}  // namespace

struct SqliteEngine::Entry {
  std::string_view name;
  bool stored = false;
  std::string before;  // as it is in the table
  core::LockRecord record;
  std::optional<Error> damage;
};

SqliteEngine::SqliteEngine(SqliteOptions options, const engine::EngineOptions& client)
    : options_{std::move(options)}, client_{client}, generation_{base::fork_generation()} {
  SqliteForks::add(*this);
}

Result<std::unique_ptr<SqliteEngine>> SqliteEngine::open(const SqliteOptions& options,
                                                         const engine::EngineOptions& client) {
  auto located = locate(options);
  if (!located) {
    return tl::unexpected{located.error()};
  }
  std::unique_ptr<SqliteEngine> engine{new SqliteEngine{*std::move(located), client}};
  if (auto connected = engine->init(); !connected) {
    return tl::unexpected{connected.error()};
  }
  engine->doorbell_ = std::make_unique<SqliteDoorbell>(engine->options_.path, client.session);
  return engine;
}

SqliteEngine::~SqliteEngine() {
  if (inherited()) {
    return;  // what is left to close does not say anything on our parent's behalf
  }
  deputy_.reset();
  SqliteForks::remove(*this);
  const std::lock_guard lock{mutex_};
  if (introduced_) {
    [[maybe_unused]] const auto best_effort = forget_own_session();
  }
  if (doorbell_) {
    doorbell_->say_goodbye();
  }
}

void SqliteEngine::prepare_fork() {
  mutex_.lock();
  if (tables_) {
    tables_->session().close_without_checkpoint();
    tables_.reset();
  }
}

void SqliteEngine::finish_fork() {
  mutex_.unlock();
}

bool SqliteEngine::inherited() const noexcept {
  return generation_ != base::fork_generation();
}

base::Time SqliteEngine::now() const {
  return client_.now ? client_.now() : base::BootClock::now();
}

Result<void> SqliteEngine::connect() {
  if (tables_ && tables_->session().moved()) {
    // Whoever opens the path now meets another file: so must we, even though
    // our grants are not in it.
    tables_.reset();
  }
  if (tables_) {
    return {};
  }
  introduced_ = false;
  seen_version_.reset();
  return create_if_missing(options_.path)
      .and_then([&] { return SqliteTables::open(options_, engine::moment(client_).token_floor); })
      .map([&](std::unique_ptr<SqliteTables> opened) { tables_ = std::move(opened); });
}

void SqliteEngine::disconnect_after(const Error& error) {
  tables_->session().roll_back();
  if (!is_passing(error)) {
    tables_.reset();
  }
}

void SqliteEngine::submit(std::size_t, std::span<const core::Command> batch,
                          engine::Patience patience, engine::Done done) {
  if (inherited()) {
    done(engine::all_failed(batch.size(), engine::inherited_by_fork()));
    return;
  }
  const base::Time until = std::max(patience.until, base::BootClock::now() + kShortestPatience);
  if (auto outcomes = try_until(until, batch)) {
    done(*std::move(outcomes));
    return;
  }
  deputy_->take_over(
      [this, batch, finish = std::move(done)] { finish(*try_until(base::kNever, batch)); });
}

std::optional<engine::Outcomes> SqliteEngine::try_until(base::Time until,
                                                        std::span<const core::Command> batch) {
  engine::Outcomes outcomes;
  std::vector<core::Wake> wakes;
  {
    const std::lock_guard lock{mutex_};
    const base::Time start = base::BootClock::now();
    const bool in_a_hurry = until - options_.busy_timeout < start;
    if (in_a_hurry && !tables_) {
      return std::nullopt;  // to open a file takes time
    }
    if (in_a_hurry) {
      tables_->session().set_busy_timeout(until - start);
    }
    outcomes = run(batch, wakes);
    if (tables_) {
      tables_->session().set_busy_timeout(options_.busy_timeout);
    }
    const bool busy =
        !outcomes.empty() && outcomes.front().error && is_busy(*outcomes.front().error);
    if (in_a_hurry && busy) {
      return std::nullopt;
    }
  }
  ring(wakes);
  return outcomes;
}

engine::Outcomes SqliteEngine::run(std::span<const core::Command> batch,
                                   std::vector<core::Wake>& wakes) {
  if (auto connected = connect(); !connected) {
    return engine::all_failed(batch.size(), connected.error());
  }
  if (only_looks(batch)) {
    if (auto seen = look(batch)) {
      return *std::move(seen);
    }
  }
  while (true) {
    std::uint64_t ceiling = 0;
    wakes.clear();
    auto outcomes = write(batch, wakes, ceiling);
    if (outcomes && *outcomes) {
      return **std::move(outcomes);
    }
    Result<void> raised = outcomes ? tables_->raise_token_ceiling(ceiling)
                                   : Result<void>{tl::unexpected{outcomes.error()}};
    if (!raised) {
      wakes.clear();
      disconnect_after(raised.error());
      return engine::all_failed(batch.size(), raised.error());
    }
  }
}

// Readers do not wait for writers. nullopt if time has made changes that must
// be written, or the read fails: write() will do the one or say the other.
std::optional<engine::Outcomes> SqliteEngine::look(std::span<const core::Command> batch) {
  const core::LockRecord::Context context = engine::moment(client_);
  engine::Outcomes outcomes;
  std::vector<core::Wake> nobody;
  for (const core::Command& command : batch) {
    const auto found =
        engine::check_name(command.name).and_then([&] { return tables_->find_lock(command.name); });
    if (!found) {
      return std::nullopt;
    }
    auto record = *found ? core::decode(**found) : core::LockRecord{};
    if (!record || record->next_change() <= context.now) {
      return std::nullopt;
    }
    outcomes.push_back(record->apply(command.operation, context, nobody));
  }
  return outcomes;
}

Result<std::optional<engine::Outcomes>> SqliteEngine::write(std::span<const core::Command> batch,
                                                            std::vector<core::Wake>& wakes,
                                                            std::uint64_t& ceiling) {
  SqliteSession& session = tables_->session();
  if (auto begun = session.begin_write(); !begun) {
    return tl::unexpected{begun.error()};
  }
  std::vector<Entry> entries;
  auto outcomes = apply(batch, wakes, ceiling, entries);
  if (!outcomes) {
    return tl::unexpected{outcomes.error()};
  }
  if (ceiling >= tables_->token_ceiling()) {
    session.roll_back();
    return std::nullopt;
  }
  // With the first request only, so that whoever just looks leaves no trace.
  const bool introducing = !introduced_ && std::any_of(batch.begin(), batch.end(), asks_for_a_lock);
  auto stored = store(entries);
  if (stored && introducing) {
    stored = tables_->put_session(client_.session, client_.party);
  }
  if (stored) {
    stored = session.commit();
  }
  if (!stored) {
    return tl::unexpected{stored.error()};
  }
  introduced_ = introduced_ || introducing;
  return *std::move(outcomes);
}

Result<engine::Outcomes> SqliteEngine::apply(std::span<const core::Command> batch,
                                             std::vector<core::Wake>& wakes,
                                             std::uint64_t& last_token,
                                             std::vector<Entry>& entries) {
  // Read inside the transaction: for a record, time must not run backwards.
  core::LockRecord::Context context = engine::moment(client_);
  engine::Outcomes outcomes;
  outcomes.reserve(batch.size());
  entries.reserve(batch.size());
  std::unordered_map<std::string_view, std::size_t> index;
  for (const core::Command& command : batch) {
    if (auto good = engine::check_name(command.name); !good) {
      outcomes.push_back(engine::failed(good.error()));
      continue;
    }
    const auto [place, added] = index.try_emplace(command.name, entries.size());
    if (added) {
      auto loaded = load(command.name, context.token_floor);
      if (!loaded) {
        return tl::unexpected{loaded.error()};
      }
      entries.push_back(*std::move(loaded));
    }
    Entry& entry = entries[place->second];
    outcomes.push_back(entry.damage ? engine::failed(*entry.damage)
                                    : entry.record.apply(command.operation, context, wakes));
    last_token = std::max(last_token, entry.record.last_token());
  }
  return outcomes;
}

Result<SqliteEngine::Entry> SqliteEngine::load(std::string_view name, std::uint64_t& token_floor) {
  Entry entry;
  entry.name = name;
  auto found = tables_->find_lock(name);
  if (!found) {
    return tl::unexpected{found.error()};
  }
  if (!*found) {
    // Perhaps it was there before and was forgotten.
    return tables_->token_floor().map([&](std::uint64_t floor) {
      token_floor = std::max(token_floor, floor);
      return std::move(entry);
    });
  }
  entry.stored = true;
  entry.before = **std::move(found);
  if (auto record = core::decode(entry.before)) {
    entry.record = *std::move(record);
  } else {
    entry.damage = record.error();
  }
  return entry;
}

Result<void> SqliteEngine::store(const std::vector<Entry>& entries) {
  for (const Entry& entry : entries) {
    const bool never_used = !entry.stored && entry.record.last_token() == 0;
    if (entry.damage || never_used) {
      continue;
    }
    core::encode(entry.record, encoded_);
    if (entry.stored && encoded_ == entry.before) {
      continue;
    }
    const std::int64_t until = entry.record.idle_from().time_since_epoch().count();
    auto put = entry.stored ? tables_->update_lock(entry.name, encoded_, until)
                            : tables_->insert_lock(entry.name, encoded_, until);
    if (!put) {
      return put;
    }
  }
  return {};
}

void SqliteEngine::ring(const std::vector<core::Wake>& wakes) {
  std::map<core::SessionId, std::vector<engine::Ring>> bells;
  for (const core::Wake& wake : wakes) {
    bells[wake.session].push_back({.id = wake.id, .token = wake.token});
  }
  for (const auto& [session, rings] : bells) {
    if (!doorbell_->ring(session, rings) && session == client_.session) {
      missed_ring_ = true;  // data_version does not tell us of our own changes
    }
  }
}

std::vector<engine::Ring> SqliteEngine::answer_doorbell() {
  // In a child it would take its parent's.
  return inherited() || doorbell_->fd() < 0 ? std::vector<engine::Ring>{} : doorbell_->answer();
}

bool SqliteEngine::may_have_changed() {
  if (inherited()) {
    return false;
  }
  const std::unique_lock lock{mutex_, std::try_to_lock};
  if (!lock || !tables_) {
    return true;
  }
  const auto version = tables_->session().number(Sql::data_version);
  const bool same = version && seen_version_ == *version && !missed_ring_.exchange(false);
  seen_version_ = version ? std::optional{*version} : std::nullopt;
  return !same;
}

}  // namespace holdfast::engines
