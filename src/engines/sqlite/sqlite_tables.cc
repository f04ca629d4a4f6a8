#include "engines/sqlite/sqlite_tables.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/time.h"
#include "engines/sqlite/sqlite_files.h"

namespace holdfast::engines {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kBootId = "boot_id";
constexpr std::string_view kFloor = "token_floor";
constexpr std::string_view kCeiling = "token_ceiling";

std::string_view bytes_of(const core::SessionId& id) {
  return {reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size()};
}

bool exists(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0;
}

tl::unexpected<Error> foreign(const std::string& what) {
  return fail(ErrorCode::invalid_argument,
              "not a holdfast database: " + what + "; choose another file");
}

}  // namespace

Result<std::unique_ptr<SqliteTables>> SqliteTables::open(const SqliteOptions& options,
                                                         std::uint64_t token_now) {
  const bool had_wal = exists(options.path + "-wal");
  auto session = SqliteSession::open(options.path, options.busy_timeout);
  if (!session) {
    return tl::unexpected{session.error()};
  }
  std::unique_ptr<SqliteTables> tables{new SqliteTables{*std::move(session)}};
  bool fresh = false;
  if (auto ours = tables->check_identity(fresh); !ours) {
    if (had_wal) {
      tables->session_->close_without_checkpoint();  // what is in it is not ours to move
    }
    Error named = ours.error();
    if (named.text.find(options.path) == std::string::npos) {
      named.text.insert(0, options.path + ": ");
    }
    return tl::unexpected{std::move(named)};
  }
  auto boot_id = options.boot_id.empty() ? kernel_boot_id() : Result<std::string>{options.boot_id};
  if (!boot_id) {
    return tl::unexpected{boot_id.error()};
  }
  auto ready = tables->use_wal(options.busy_timeout);
  if (ready && fresh) {
    ready = tables->create(*boot_id, token_now);
  }
  if (ready) {
    ready = tables->add_values();
  }
  if (ready) {
    ready = tables->session_->set_durability(Durability::ordered);
  }
  if (ready) {
    ready = tables->notice_restart(*boot_id, token_now);
  }
  if (!ready) {
    return tl::unexpected{ready.error()};
  }
  return tables;
}

Result<void> SqliteTables::check_identity(bool& fresh) {
  // One view of the file: somebody else may be creating the tables just now.
  if (auto begun = SqliteRun{*session_, Sql::begin_read}.finish(); !begun) {
    return begun;
  }
  auto verdict = read_identity(fresh);
  session_->roll_back();
  return verdict;
}

Result<void> SqliteTables::read_identity(bool& fresh) {
  const auto application = session_->number(Sql::application_id);
  if (!application) {
    return is_not_a_database(application.error())
               ? foreign(application.error().text)
               : Result<void>{tl::unexpected{application.error()}};
  }
  const auto version = session_->number(Sql::user_version);
  const auto tables = session_->number(Sql::count_tables);
  if (!version || !tables) {
    return tl::unexpected{(!version ? version : tables).error()};
  }
  fresh = *application == 0 && *version == 0 && *tables == 0;
  if (!fresh && *application != kSqliteApplicationId) {
    return foreign("the file belongs to another application");
  }
  if (!fresh && *version != kSqliteSchemaVersion) {
    return fail(ErrorCode::unsupported, "the database has version " + std::to_string(*version) +
                                            ", this holdfast knows version " +
                                            std::to_string(kSqliteSchemaVersion) +
                                            "; update holdfast, or choose another file");
  }
  return {};
}

// While others open the file too, SQLite answers "busy" here without asking
// the busy handler.
Result<void> SqliteTables::use_wal(base::Duration at_most) {
  const base::Time start = base::BootClock::now();
  // A record is some hundred bytes, and every page that a batch touches is
  // written whole. Without effect on a file that exists.
  auto changed = session_->execute("PRAGMA page_size = 1024");
  if (!changed) {
    return changed;
  }
  changed = session_->execute("PRAGMA journal_mode = WAL");
  while (!changed && is_busy(changed.error()) && base::BootClock::now() - start < at_most) {
    base::sleep_for(1ms);
    changed = session_->execute("PRAGMA journal_mode = WAL");
  }
  if (!changed) {
    return changed;
  }
  auto mode = session_->word(Sql::journal_mode);
  if (mode && *mode != "wal") {
    return fail(ErrorCode::unsupported,
                "the file system lacks what SQLite's write-ahead log needs; choose a local disk");
  }
  return std::move(mode).map([](const std::string&) {});
}

Result<void> SqliteTables::in_durable_transaction(const std::function<Result<void>()>& work) {
  auto done = session_->set_durability(Durability::power_cut);
  if (done) {
    done = session_->begin_write().and_then(work).and_then([&] { return session_->commit(); });
    session_->roll_back();
  }
  if (!done) {
    done.error().code = done.error().code == ErrorCode::outcome_unknown
                            ? ErrorCode::unavailable  // nobody's request was in it
                            : done.error().code;
  }
  // Even after a failure: the next commits must be as quick as ever.
  auto restored = session_->set_durability(Durability::ordered);
  return done ? restored : done;
}

Result<void> SqliteTables::create(const std::string& boot_id, std::uint64_t token_now) {
  return in_durable_transaction([&]() -> Result<void> {
    bool fresh = false;
    if (auto ours = read_identity(fresh); !ours || !fresh) {
      return ours;  // somebody was faster
    }
    return session_->execute(kSqliteSchema)
        .and_then([&] { return session_->execute(kSqliteValues); })
        .and_then([&] { return put_meta(kBootId, boot_id); })
        .and_then([&] { return put_meta(kFloor, 1); })
        .and_then([&] { return put_meta(kCeiling, token_now + kTokenBlock); });
  });
}

// For files of before there were any.
Result<void> SqliteTables::add_values() {
  return session_->number(Sql::has_values).and_then([&](std::int64_t there) {
    return there != 0 ? Result<void>{} : session_->execute(kSqliteValues);
  });
}

Result<void> SqliteTables::notice_restart(const std::string& boot_id, std::uint64_t token_now) {
  auto known = meta_word(kBootId);
  if (!known) {
    return tl::unexpected{known.error()};
  }
  if (*known != boot_id) {
    auto forgotten = in_durable_transaction([&] { return forget_everybody(boot_id, token_now); });
    if (!forgotten) {
      return forgotten;
    }
  }
  return meta_number(kCeiling).map([&](std::uint64_t ceiling) { ceiling_ = ceiling; });
}

Result<void> SqliteTables::forget_everybody(const std::string& boot_id, std::uint64_t token_now) {
  auto known = meta_word(kBootId);
  auto ceiling = meta_number(kCeiling);
  if (!known || !ceiling) {
    return tl::unexpected{!known ? known.error() : ceiling.error()};
  }
  if (*known == boot_id) {
    return {};  // somebody was faster
  }
  return SqliteRun{*session_, Sql::erase_all_locks}
      .finish()
      .and_then([&] {
        return SqliteRun{*session_, Sql::erase_all_sessions}.finish();
      })
      .and_then([&] { return put_meta(kBootId, boot_id); })
      .and_then([&] { return put_meta(kFloor, *ceiling); })
      .and_then([&] { return put_meta(kCeiling, std::max(*ceiling, token_now) + kTokenBlock); });
}

Result<std::optional<std::string>> SqliteTables::find_lock(std::string_view name) {
  SqliteRun run{*session_, Sql::find_lock};
  return run.blob(1, name).next().map(
      [&](bool row) { return row ? std::optional{std::string{run.bytes(0)}} : std::nullopt; });
}

Result<void> SqliteTables::insert_lock(std::string_view name, std::string_view record,
                                       std::int64_t until) {
  SqliteRun run{*session_, Sql::insert_lock};
  return run.blob(1, name).blob(2, record).integer(3, until).finish();
}

Result<void> SqliteTables::update_lock(std::string_view name, std::string_view record,
                                       std::int64_t until) {
  SqliteRun run{*session_, Sql::update_lock};
  return run.blob(1, name).blob(2, record).integer(3, until).finish();
}

Result<void> SqliteTables::erase_lock(std::string_view name) {
  return SqliteRun{*session_, Sql::erase_lock}.blob(1, name).finish();
}

Result<void> SqliteTables::locks_from(std::string_view first,
                                      const std::function<bool(const LockRow&)>& visit) {
  SqliteRun run{*session_, Sql::locks_from};
  run.blob(1, first);
  while (true) {
    const auto row = run.next();
    if (!row) {
      return tl::unexpected{row.error()};
    }
    if (!*row || !visit({.name = run.bytes(0), .record = run.bytes(1), .until = run.integer(2)})) {
      return {};
    }
  }
}

Result<void> SqliteTables::put_session(const core::SessionId& id, const Party& party) {
  SqliteRun run{*session_, Sql::put_session};
  return run.blob(1, bytes_of(id))
      .text(2, party.label)
      .text(3, party.host)
      .integer(4, party.pid)
      .finish();
}

Result<void> SqliteTables::erase_session(const core::SessionId& id) {
  return SqliteRun{*session_, Sql::erase_session}.blob(1, bytes_of(id)).finish();
}

Result<std::vector<SqliteTables::SessionRow>> SqliteTables::sessions() {
  SqliteRun run{*session_, Sql::sessions};
  std::vector<SessionRow> all;
  while (true) {
    const auto row = run.next();
    if (!row) {
      return tl::unexpected{row.error()};
    }
    if (!*row) {
      return all;
    }
    SessionRow session;
    const std::string_view id = run.bytes(0);
    if (id.size() == session.id.bytes.size()) {
      std::memcpy(session.id.bytes.data(), id.data(), id.size());
      session.party = {.label = std::string{run.bytes(1)},
                       .host = std::string{run.bytes(2)},
                       .pid = run.integer(3)};
      all.push_back(std::move(session));
    }
  }
}

Result<std::uint64_t> SqliteTables::token_floor() {
  return meta_number(kFloor);
}

Result<void> SqliteTables::set_token_floor(std::uint64_t floor) {
  return put_meta(kFloor, floor);
}

Result<void> SqliteTables::raise_token_ceiling(std::uint64_t above) {
  std::uint64_t raised = 0;
  auto done = in_durable_transaction([&] {
    return meta_number(kCeiling).and_then([&](std::uint64_t ceiling) -> Result<void> {
      raised = ceiling;
      if (above < ceiling) {
        return {};  // somebody was faster
      }
      raised = above + kTokenBlock;
      return put_meta(kCeiling, raised);
    });
  });
  if (done) {
    ceiling_ = raised;
  }
  return done;
}

Result<std::uint64_t> SqliteTables::meta_number(std::string_view key) {
  SqliteRun run{*session_, Sql::get_meta};
  return run.text(1, key).next().map(
      [&](bool row) { return row ? static_cast<std::uint64_t>(run.integer(0)) : 0; });
}

Result<std::string> SqliteTables::meta_word(std::string_view key) {
  SqliteRun run{*session_, Sql::get_meta};
  return run.text(1, key).next().map(
      [&](bool row) { return row ? std::string{run.bytes(0)} : ""; });
}

Result<void> SqliteTables::put_meta(std::string_view key, std::uint64_t value) {
  SqliteRun run{*session_, Sql::put_meta};
  return run.text(1, key).integer(2, static_cast<std::int64_t>(value)).finish();
}

Result<void> SqliteTables::put_meta(std::string_view key, std::string_view value) {
  SqliteRun run{*session_, Sql::put_meta};
  return run.text(1, key).text(2, value).finish();
}

}  // namespace holdfast::engines
