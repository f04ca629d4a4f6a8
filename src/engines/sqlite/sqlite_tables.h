#pragma once

#include <holdfast/error.h>
#include <holdfast/inspect.h>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/commands.h"
#include "core/value_record.h"
#include "engines/sqlite/sqlite_options.h"
#include "engines/sqlite/sqlite_session.h"

namespace holdfast::engines {

// Tokens that one durable commit makes available: an hour's worth, counted as
// the clock in microseconds counts them.
inline constexpr std::uint64_t kTokenBlock = 3'600'000'000;

// The tables of one database, by their meaning. Not thread-safe. After an
// error inside a transaction the caller rolls it back.
class SqliteTables {
 public:
  // Opens, and creates what is not there. A file that belongs to another
  // application is left as it is. If the machine was restarted since, the
  // locks are gone with their holders, and tokens go on at the ceiling.
  // `token_now`: no new token would be lower.
  static Result<std::unique_ptr<SqliteTables>> open(const SqliteOptions& options,
                                                    std::uint64_t token_now);

  SqliteSession& session() noexcept { return *session_; }

  Result<std::optional<std::string>> find_lock(std::string_view name);
  Result<void> insert_lock(std::string_view name, std::string_view record, std::int64_t until);
  Result<void> update_lock(std::string_view name, std::string_view record, std::int64_t until);
  Result<void> erase_lock(std::string_view name);
  // In the order of names, until `visit` returns false.
  struct LockRow {
    std::string_view name;
    std::string_view record;
    std::int64_t until;
  };
  Result<void> locks_from(std::string_view first, const std::function<bool(const LockRow&)>& visit);

  // By their names, as locks_from().
  Result<std::optional<core::ValueRecord>> find_value(std::string_view name);
  Result<void> put_value(std::string_view name, const core::ValueRecord& record);
  using VisitValue = std::function<bool(std::string_view name, const core::ValueRecord& record)>;
  Result<void> values_from(std::string_view first, const VisitValue& visit);
  // The highest version of the values that were erased by then; 0 if there are none.
  Result<std::uint64_t> last_forgettable_value(core::Micros erased_by);
  Result<void> forget_values(core::Micros erased_by);

  Result<void> put_session(const core::SessionId& id, const Party& party);
  Result<void> erase_session(const core::SessionId& id);
  struct SessionRow {
    core::SessionId id;
    Party party;
  };
  Result<std::vector<SessionRow>> sessions();

  Result<std::uint64_t> token_floor();
  Result<void> set_token_floor(std::uint64_t floor);

  // Every token handed out is below; that much survives a power cut.
  std::uint64_t token_ceiling() const noexcept { return ceiling_; }
  // In a transaction of its own: not inside another.
  Result<void> raise_token_ceiling(std::uint64_t above);

 private:
  explicit SqliteTables(std::unique_ptr<SqliteSession> session) : session_{std::move(session)} {}
  Result<void> check_identity(bool& fresh);
  Result<void> read_identity(bool& fresh);  // inside a transaction
  Result<void> use_wal(base::Duration at_most);
  Result<void> create(const std::string& boot_id, std::uint64_t token_now);
  Result<void> add_values();
  Result<void> notice_restart(const std::string& boot_id, std::uint64_t token_now);
  Result<void> forget_everybody(const std::string& boot_id, std::uint64_t token_now);
  Result<std::uint64_t> meta_number(std::string_view key);
  Result<std::string> meta_word(std::string_view key);
  Result<void> put_meta(std::string_view key, std::uint64_t value);
  Result<void> put_meta(std::string_view key, std::string_view value);
  Result<void> in_durable_transaction(const std::function<Result<void>()>& work);

  std::unique_ptr<SqliteSession> session_;
  std::uint64_t ceiling_ = 0;
};

}  // namespace holdfast::engines
