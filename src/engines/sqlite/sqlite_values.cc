// The values of a SQLite file: rows that run core::ValueRecord.
#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/batch.h"
#include "engines/sqlite/sqlite_engine.h"

namespace holdfast::engines {
namespace {

std::string_view bytes_of(const base::Id& id) {
  return {reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size()};
}

core::ValueRecord record_of(const SqliteRun& row) {
  core::ValueRecord record;
  if (row.integer(5) == 0) {
    record.bytes.emplace(row.bytes(0));
  }
  record.version = static_cast<std::uint64_t>(row.integer(1));
  const std::string_view writer = row.bytes(2);
  std::memcpy(record.writer.bytes.data(), writer.data(),
              std::min(writer.size(), record.writer.bytes.size()));
  record.written = static_cast<core::Micros>(row.integer(3));
  record.hold_off_until = static_cast<core::Micros>(row.integer(4));
  return record;
}

}  // namespace

// --- rows

Result<std::optional<core::ValueRecord>> SqliteTables::find_value(std::string_view name) {
  SqliteRun run{*session_, Sql::find_value};
  return run.blob(1, name).next().map(
      [&](bool row) { return row ? std::optional{record_of(run)} : std::nullopt; });
}

Result<void> SqliteTables::put_value(std::string_view name, const core::ValueRecord& record) {
  SqliteRun run{*session_, Sql::put_value};
  run.blob(1, name);
  record.bytes ? run.blob(2, *record.bytes) : run.null(2);
  return run.integer(3, static_cast<std::int64_t>(record.version))
      .blob(4, bytes_of(record.writer))
      .integer(5, static_cast<std::int64_t>(record.written))
      .integer(6, static_cast<std::int64_t>(record.hold_off_until))
      .finish();
}

Result<void> SqliteTables::values_from(std::string_view first, const VisitValue& visit) {
  SqliteRun run{*session_, Sql::values_from};
  run.blob(1, first);
  while (true) {
    const auto row = run.next();
    if (!row) {
      return tl::unexpected{row.error()};
    }
    if (!*row || !visit(run.bytes(6), record_of(run))) {
      return {};
    }
  }
}

Result<std::uint64_t> SqliteTables::last_forgettable_value(core::Micros erased_by) {
  SqliteRun run{*session_, Sql::last_forgettable_value};
  return run.integer(1, static_cast<std::int64_t>(erased_by)).next().map([&](bool row) {
    return row ? static_cast<std::uint64_t>(run.integer(0)) : 0;
  });
}

Result<void> SqliteTables::forget_values(core::Micros erased_by) {
  SqliteRun run{*session_, Sql::forget_values};
  return run.integer(1, static_cast<std::int64_t>(erased_by)).finish();
}

// --- the engine's calls

Result<std::optional<core::Value>> SqliteEngine::load_value(std::string_view name) {
  if (inherited()) {
    return tl::unexpected{engine::inherited_by_fork()};
  }
  const std::lock_guard lock{mutex_};
  return engine::check_name(name)
      .and_then([&] { return connect(); })
      .and_then([&] { return tables_->find_value(name); })
      .map([&](const std::optional<core::ValueRecord>& found) {
        return found ? std::optional{found->seen(engine::moment(client_).token_floor)}
                     : std::nullopt;
      });
}

Result<core::ValueOutcome> SqliteEngine::write_value(const core::ValueWrite& write) {
  if (inherited()) {
    return tl::unexpected{engine::inherited_by_fork()};
  }
  const std::lock_guard lock{mutex_};
  auto ready = engine::check_name(write.name).and_then([&] { return connect(); });
  if (!ready) {
    return tl::unexpected{std::move(ready.error())};
  }
  auto outcome = apply_durably(write);
  if (!outcome) {
    disconnect_after(outcome.error());
  }
  return outcome;
}

// Unlike locks, whose holders die with the machine, values outlive a power cut.
Result<core::ValueOutcome> SqliteEngine::apply_durably(const core::ValueWrite& write) {
  SqliteSession& session = tables_->session();
  auto outcome = session.set_durability(Durability::power_cut)
                     .and_then([&] { return session.begin_write(); })
                     .and_then([&] { return apply(write); })
                     .and_then([&](core::ValueOutcome done) {
                       return session.commit().map([&] { return done; });
                     });
  session.roll_back();
  auto restored = session.set_durability(Durability::ordered);
  if (outcome && !restored) {
    disconnect_after(restored.error());  // the value is there all the same
  }
  return outcome;
}

Result<core::ValueOutcome> SqliteEngine::apply(const core::ValueWrite& write) {
  auto record = tables_->find_value(write.name);
  auto floor = tables_->token_floor();
  if (!record || !floor) {
    return tl::unexpected{!record ? record.error() : floor.error()};
  }
  const core::ValueOutcome outcome =
      core::apply(*record, write, engine::moment(client_).token_floor, *floor);
  if (!outcome.applied) {
    return outcome;
  }
  return tables_->put_value(write.name, **record).map([&] { return outcome; });
}

Result<std::vector<core::NamedValue>> SqliteEngine::list_values(std::string_view prefix) {
  if (inherited()) {
    return tl::unexpected{engine::inherited_by_fork()};
  }
  const std::lock_guard lock{mutex_};
  std::vector<core::NamedValue> all;
  const core::Micros time = engine::moment(client_).token_floor;
  return connect()
      .and_then([&] {
        return tables_->values_from(
            prefix, [&](std::string_view name, const core::ValueRecord& record) {
              const bool wanted = name.starts_with(prefix);
              if (wanted && record.bytes) {
                all.push_back({.name = std::string{name}, .value = record.seen(time)});
              }
              return wanted;
            });
      })
      .map([&] { return std::move(all); });
}

// Versions must not fall, even if the clock did: the floor of the tokens, from
// which new values start as well, goes above what is forgotten.
Result<void> SqliteEngine::forget_values() {
  const core::Micros time = engine::moment(client_).token_floor;
  const auto memory = static_cast<core::Micros>(
      std::chrono::duration_cast<std::chrono::microseconds>(core::kEraseMemory).count());
  const core::Micros erased_by = time > memory ? time - memory : 0;
  auto last = tables_->last_forgettable_value(erased_by);
  if (!last || *last == 0) {
    return std::move(last).map([](std::uint64_t) {});
  }
  return tables_->session()
      .begin_write()
      .and_then([&] { return tables_->last_forgettable_value(erased_by); })
      .and_then([&](std::uint64_t version) {
        return tables_->token_floor().and_then([&](std::uint64_t floor) {
          return tables_->set_token_floor(std::max(floor, version + 1));
        });
      })
      .and_then([&] { return tables_->forget_values(erased_by); })
      .and_then([&] { return tables_->session().commit(); });
}

}  // namespace holdfast::engines
