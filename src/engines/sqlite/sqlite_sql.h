#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

// All SQL of the engine. Values are always bound, never pasted.
namespace holdfast::engines {

inline constexpr std::int64_t kSqliteApplicationId = 0x686F6C64;  // "hold"
inline constexpr std::int64_t kSqliteSchemaVersion = 1;

// locks: one row a name; `record` is core/lock_record_codec, `until` the time
// on CLOCK_BOOTTIME (ns) after which it means nothing any more, 0 when idle.
// sessions: who is who, for people. meta: boot_id, token_floor (above every
// token of forgotten names) and token_ceiling (durable, above every token).
inline constexpr const char* kSqliteSchema = R"sql(
CREATE TABLE locks (
  name BLOB NOT NULL PRIMARY KEY,
  record BLOB NOT NULL,
  until INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE sessions (
  id BLOB NOT NULL PRIMARY KEY,
  label TEXT NOT NULL,
  host TEXT NOT NULL,
  pid INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE meta (
  key TEXT NOT NULL PRIMARY KEY,
  value NOT NULL
) WITHOUT ROWID;
PRAGMA application_id = 1752132708;
PRAGMA user_version = 1;
)sql";

// `value` is NULL if it was erased a while ago; times are microseconds since
// 1970. It came later and disturbs no older holdfast, so the schema's version
// stays: whoever opens a file without it makes it.
inline constexpr const char* kSqliteValues = R"sql(
CREATE TABLE IF NOT EXISTS versioned_values (
  name BLOB NOT NULL PRIMARY KEY,
  value BLOB,
  version INTEGER NOT NULL,
  writer BLOB NOT NULL,
  written INTEGER NOT NULL,
  hold_off_until INTEGER NOT NULL
) WITHOUT ROWID;
)sql";

enum class Sql : std::uint8_t {
  begin_read,
  begin_write,
  commit,
  find_lock,
  insert_lock,
  update_lock,
  erase_lock,
  locks_from,
  put_session,
  erase_session,
  sessions,
  get_meta,
  put_meta,
  erase_all_locks,
  erase_all_sessions,
  has_values,
  find_value,
  put_value,
  values_from,
  last_forgettable_value,
  forget_values,
  data_version,
  application_id,
  user_version,
  count_tables,
  quick_check,
  page_count,
  page_size,
  journal_mode,
  end_of_list,
};

inline constexpr std::array<const char*, static_cast<std::size_t>(Sql::end_of_list)> kSqliteSql{
    "BEGIN",
    "BEGIN IMMEDIATE",
    "COMMIT",
    "SELECT record FROM locks WHERE name = ?1",
    "INSERT INTO locks (name, record, until) VALUES (?1, ?2, ?3)",
    "UPDATE locks SET record = ?2, until = ?3 WHERE name = ?1",
    "DELETE FROM locks WHERE name = ?1",
    "SELECT name, record, until FROM locks WHERE name >= ?1 ORDER BY name",
    "REPLACE INTO sessions (id, label, host, pid) VALUES (?1, ?2, ?3, ?4)",
    "DELETE FROM sessions WHERE id = ?1",
    "SELECT id, label, host, pid FROM sessions",
    "SELECT value FROM meta WHERE key = ?1",
    "REPLACE INTO meta (key, value) VALUES (?1, ?2)",
    "DELETE FROM locks",
    "DELETE FROM sessions",
    "SELECT count(*) FROM sqlite_schema WHERE name = 'versioned_values'",
    "SELECT value, version, writer, written, hold_off_until, value IS NULL FROM versioned_values"
    " WHERE name = ?1",
    "REPLACE INTO versioned_values (name, value, version, writer, written, hold_off_until)"
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    "SELECT value, version, writer, written, hold_off_until, value IS NULL, name"
    " FROM versioned_values WHERE name >= ?1 ORDER BY name",
    "SELECT max(version) FROM versioned_values WHERE value IS NULL AND written <= ?1",
    "DELETE FROM versioned_values WHERE value IS NULL AND written <= ?1",
    "PRAGMA data_version",
    "PRAGMA application_id",
    "PRAGMA user_version",
    "SELECT count(*) FROM sqlite_schema",
    "PRAGMA quick_check(1)",
    "PRAGMA page_count",
    "PRAGMA page_size",
    "PRAGMA journal_mode",
};

}  // namespace holdfast::engines
