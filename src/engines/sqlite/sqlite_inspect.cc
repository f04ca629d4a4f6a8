// What SqliteEngine shows to people, and how it keeps the house.
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "core/lock_record_codec.h"
#include "engine/batch.h"
#include "engine/describe.h"
#include "engines/sqlite/sqlite_engine.h"
#include "engines/sqlite/sqlite_files.h"

namespace holdfast::engines {
namespace {

using namespace std::chrono_literals;

// Names forgotten in one transaction: the others do not wait long for it.
constexpr std::size_t kForgetAtOnce = 500;
// A process that ends does not wait long to say so.
constexpr base::Duration kGoodbye = 250ms;

std::span<const Capabilities> capability_rows() {
  static const std::array rows{[] {
    Capabilities row;
    row.engine = "sqlite";
    row.values = true;
    row.clock = "CLOCK_BOOTTIME + boot id";
    return row;
  }()};
  return rows;
}

Result<std::unique_ptr<engine::Engine>> open_sqlite(const engine::Url& url,
                                                    const engine::EngineOptions& client) {
  return SqliteOptions::from(url).and_then(
      [&](const SqliteOptions& options) { return SqliteEngine::open(options, client); });
}

bool mentions(const core::LockRecord& record, const core::SessionId& session) {
  const auto same = [&](const auto& party) { return party.session == session; };
  return std::any_of(record.holders().begin(), record.holders().end(), same) ||
         std::any_of(record.queue().begin(), record.queue().end(), same);
}

Finding ok(std::string topic, std::string text) {
  return {.level = Finding::Level::ok,
          .topic = std::move(topic),
          .text = std::move(text),
          .advice = ""};
}

Finding problem(std::string topic, std::string text, std::string advice) {
  return {.level = Finding::Level::problem,
          .topic = std::move(topic),
          .text = std::move(text),
          .advice = std::move(advice)};
}

}  // namespace

engine::Registration sqlite_registration() {
  return {.scheme = "sqlite",
          .example = "sqlite:/var/lib/app/locks.db",
          .open = &open_sqlite,
          .capabilities = &capability_rows};
}

const Capabilities& SqliteEngine::capabilities() const noexcept {
  return capability_rows().front();
}

// What tidy() can take away.
struct SqliteEngine::Survey {
  std::vector<std::string> names;
  std::vector<core::SessionId> sessions;
};

Result<SqliteEngine::Survey> SqliteEngine::survey() {
  Survey survey;
  std::set<core::SessionId> used{client_.session};
  const std::int64_t time = now().time_since_epoch().count();
  auto seen = tables_->locks_from("", [&](const SqliteTables::LockRow& row) {
    if (row.until <= time) {
      survey.names.emplace_back(row.name);
    } else if (const auto record = core::decode(row.record)) {
      for (const core::Holder& holder : record->holders()) {
        used.insert(holder.session);
      }
      for (const core::Waiter& waiter : record->queue()) {
        used.insert(waiter.session);
      }
    }
    return true;
  });
  auto sessions = tables_->sessions();
  if (!seen || !sessions) {
    return tl::unexpected{!seen ? seen.error() : sessions.error()};
  }
  for (const SqliteTables::SessionRow& row : *sessions) {
    if (!used.contains(row.id) && !doorbell_->is_alive(row.id)) {
      survey.sessions.push_back(row.id);
    }
  }
  return survey;
}

Result<void> SqliteEngine::forget(std::span<const std::string> names,
                                  std::span<const core::SessionId> sessions) {
  if (auto begun = tables_->session().begin_write(); !begun) {
    return begun;
  }
  const base::Time time = now();
  auto floor = tables_->token_floor();
  for (const std::string& name : names) {
    auto found = tables_->find_lock(name);
    if (!floor || !found) {
      return tl::unexpected{!floor ? floor.error() : found.error()};
    }
    const auto record = *found ? core::decode(**found) : core::LockRecord{};
    if (!*found || !record || record->idle_from() > time) {
      continue;  // used again meanwhile, or damaged and for people to see
    }
    floor = std::max(*floor, record->last_token() + 1);
    if (auto erased = tables_->erase_lock(name); !erased) {
      return erased;
    }
  }
  for (const core::SessionId& session : sessions) {
    if (auto erased = tables_->erase_session(session); !erased) {
      return erased;
    }
  }
  return std::move(floor)
      .and_then([&](std::uint64_t value) { return tables_->set_token_floor(value); })
      .and_then([&] { return tables_->session().commit(); });
}

void SqliteEngine::tidy() {
  if (inherited()) {
    return;
  }
  // Never at the cost of those who have locks to renew.
  const std::unique_lock lock{mutex_, std::try_to_lock};
  if (!lock || !connect()) {
    return;
  }
  tables_->session().set_busy_timeout(base::Duration::zero());
  tidy_up();
  if (tables_) {
    tables_->session().set_busy_timeout(options_.busy_timeout);
  }
}

void SqliteEngine::tidy_up() {
  if (auto forgotten = forget_values(); !forgotten) {
    disconnect_after(forgotten.error());
    return;
  }
  auto found = survey();
  if (!found) {
    disconnect_after(found.error());
    return;
  }
  std::span<const std::string> names{found->names};
  std::span<const core::SessionId> sessions{found->sessions};
  while (!names.empty() || !sessions.empty()) {
    const auto some = names.first(std::min(names.size(), kForgetAtOnce));
    if (auto forgotten = forget(some, sessions); !forgotten) {
      disconnect_after(forgotten.error());
      return;
    }
    names = names.subspan(some.size());
    sessions = {};
  }
  for (const core::SessionId& session : found->sessions) {
    doorbell_->remove(session);
  }
  doorbell_->remove_strays();
}

// Our name stays as long as `ls` needs it.
Result<void> SqliteEngine::forget_own_session() {
  if (auto connected = connect(); !connected || !introduced_) {
    return connected;
  }
  tables_->session().set_busy_timeout(kGoodbye);
  const std::int64_t time = now().time_since_epoch().count();
  bool used = false;
  auto seen = tables_->locks_from("", [&](const SqliteTables::LockRow& row) {
    const auto record = row.until > time ? core::decode(row.record) : core::LockRecord{};
    used = record && mentions(*record, client_.session);
    return !used;
  });
  return seen && !used ? tables_->erase_session(client_.session) : seen;
}

Result<std::vector<LockInfo>> SqliteEngine::describe_from(std::string_view first,
                                                          std::string_view prefix,
                                                          bool only_first) {
  auto sessions = tables_->sessions();
  if (!sessions) {
    return tl::unexpected{sessions.error()};
  }
  std::map<core::SessionId, Party> parties;
  for (SqliteTables::SessionRow& row : *sessions) {
    parties.emplace(row.id, std::move(row.party));
  }
  const base::Time time = now();
  std::vector<LockInfo> all;
  auto seen = tables_->locks_from(first, [&](const SqliteTables::LockRow& row) {
    if (!row.name.starts_with(prefix)) {
      return false;
    }
    if (const auto record = core::decode(row.record)) {
      LockInfo info = engine::describe(std::string{row.name}, *record, time,
                                       [&](const auto& session) { return parties[session]; });
      if (!info.holders.empty() || !info.queue.empty()) {
        all.push_back(std::move(info));
      }
    }
    return !only_first;
  });
  if (!seen) {
    return tl::unexpected{seen.error()};
  }
  return all;
}

Result<std::vector<LockInfo>> SqliteEngine::list(std::string_view prefix) {
  if (inherited()) {
    return tl::unexpected{engine::inherited_by_fork()};
  }
  const std::lock_guard lock{mutex_};
  return connect().and_then([&] { return describe_from(prefix, prefix, false); });
}

Result<LockInfo> SqliteEngine::show(std::string_view name) {
  if (inherited()) {
    return tl::unexpected{engine::inherited_by_fork()};
  }
  if (auto good = engine::check_name(name); !good) {
    return tl::unexpected{good.error()};
  }
  const std::lock_guard lock{mutex_};
  return connect()
      .and_then([&] { return describe_from(name, name, true); })
      .map([&](std::vector<LockInfo> found) {
        LockInfo nobody;
        nobody.name = name;
        return !found.empty() && found.front().name == name ? std::move(found.front()) : nobody;
      });
}

Result<void> SqliteEngine::init() {
  if (inherited()) {
    return tl::unexpected{engine::inherited_by_fork()};
  }
  const std::lock_guard lock{mutex_};
  return connect();
}

Result<std::string> SqliteEngine::init_script() {
  return "PRAGMA journal_mode = WAL;\nBEGIN;" + std::string{kSqliteSchema} + kSqliteValues +
         "COMMIT;\n";
}

std::vector<Finding> SqliteEngine::doctor() {
  std::vector<Finding> findings;
  if (inherited()) {
    findings.push_back(problem("store", engine::inherited_by_fork().text, ""));
    return findings;
  }
  const std::lock_guard lock{mutex_};
  if (auto connected = connect(); !connected) {
    findings.push_back(problem("store", connected.error().text, "see the message"));
    return findings;
  }
  examine(findings);
  return findings;
}

void SqliteEngine::examine(std::vector<Finding>& findings) {
  SqliteSession& session = tables_->session();
  struct stat info {};
  stat(options_.path.c_str(), &info);
  findings.push_back(ok("file", options_.path + ", " + std::to_string(info.st_size) + " bytes"));
  const std::string system = file_system_name(options_.path);
  findings.push_back(system == "FUSE"
                         ? Finding{.level = Finding::Level::warning,
                                   .topic = "file system",
                                   .text = "FUSE, permitted by allow_fuse",
                                   .advice = "make sure that it supports locks and shared mappings"}
                         : ok("file system", system));
  const auto mode = session.word(Sql::journal_mode);
  findings.push_back(mode == "wal" ? ok("journal", "write-ahead log")
                                   : problem("journal", mode.value_or("unreadable"),
                                             "let holdfast open the file with write permission"));
  findings.push_back(ok("sqlite", SqliteSession::version()));
  const auto check = session.word(Sql::quick_check);
  findings.push_back(check == "ok" ? ok("integrity", "no damage found")
                                   : problem("integrity", check ? *check : check.error().text,
                                             "stop all users and move the file away with its "
                                             "-wal file; a new one starts without locks"));
  const auto written = session.begin_write()
                           .and_then([&] { return tables_->token_floor(); })
                           .and_then([&](auto floor) { return tables_->set_token_floor(floor); })
                           .and_then([&] { return session.commit(); });
  session.roll_back();
  findings.push_back(written ? ok("write", "a transaction was committed")
                             : problem("write", written.error().text,
                                       "check space and permissions of the directory"));
  SqliteDoorbell caller{options_.path, core::SessionId::random()};
  const engine::Ring ring{.id = core::RequestId::random(), .token = 1};
  SqliteDoorbell listener{options_.path, core::SessionId{ring.id}};
  const bool heard =
      caller.ring(core::SessionId{ring.id}, {&ring, 1}) && !listener.answer().empty();
  listener.say_goodbye();
  caller.say_goodbye();
  findings.push_back(heard && doorbell_->fd() >= 0
                         ? ok("doorbell", "waiters are woken at once")
                         : problem("doorbell", "waiters cannot be woken and look every second",
                                   "let this user write " + options_.path + "-bells"));
}

}  // namespace holdfast::engines
