#include "engines/mysql/mysql_claim.h"

#include <mariadb/mysql.h>

#include "base/ids.h"
#include "engines/mysql/mysql_claim_statement.h"
#include "engines/mysql/mysql_features.h"
#include "engines/relational/job_table.h"

namespace holdfast::engines {
namespace {

using Value = MysqlStatement::Value;
using Values = std::vector<Value>;

constexpr int kAttempts = 10;

tl::unexpected<Error> no_connection() {
  return fail(ErrorCode::invalid_argument, "connection is null; open one first");
}

std::string text_of(const Value& value) {
  const auto* number = std::get_if<std::int64_t>(&value);
  return number == nullptr ? std::get<std::string>(value) : std::to_string(*number);
}

// Deadlocks and the like: whoever tries again succeeds.
bool is_collision(const Error& error) {
  const int code = error.native.value_or(0);
  return code == 1213 || code == 1205 || code == 1020;
}

bool is_in_transaction(MYSQL* connection) {
  return (connection->server_status & SERVER_STATUS_IN_TRANS) != 0 ||
         (connection->server_status & SERVER_STATUS_AUTOCOMMIT) == 0;
}

// One claim: its statements, in the caller's transaction or in its own.
class Claim {
 public:
  Claim(MYSQL* connection, const JobTable& table, const QuotedJobTable& names,
        std::uint32_t at_most)
      : connection_{connection}, table_{table}, names_{names}, at_most_{at_most} {}

  Result<ClaimedJobs> run(SkipLocked how) {
    auto keys = how == SkipLocked::yes ? skipping() : optimistic();
    if (!keys) {
      return tl::unexpected{std::move(keys.error())};
    }
    ClaimedJobs claimed{.claim = id_, .keys = {}};
    for (const Value& key : *keys) {
      claimed.keys.push_back(text_of(key));
    }
    return claimed;
  }

 private:
  // Rows that others are about to take are passed over.
  Result<Values> skipping() {
    Values values;
    MysqlStatement select{connection_};
    const std::string condition = is_open(values);
    values.emplace_back(std::int64_t{at_most_});
    auto keys = select
                    .run("SELECT " + names_.key + " FROM " + names_.table + " WHERE " + condition +
                             " ORDER BY " + names_.key + " LIMIT ? FOR UPDATE SKIP LOCKED",
                         values)
                    .and_then([&] { return select.first_column(); });
    if (!keys || keys->empty()) {
      return keys;
    }
    Values marks;
    std::string update = mark(marks) + " WHERE " + names_.key + " IN (";
    for (const Value& key : *keys) {
      update += update.ends_with('(') ? "?" : ",?";
      marks.push_back(key);
    }
    return MysqlStatement{connection_}.run(update + ")", marks).map([&] { return *keys; });
  }

  // Takes what is open when it gets there, then asks which rows that were.
  Result<Values> optimistic() {
    Values values;
    std::string update = mark(values);
    update += " WHERE " + is_open(values) + " ORDER BY " + names_.key + " LIMIT ?";
    values.emplace_back(std::int64_t{at_most_});
    MysqlStatement change{connection_};
    if (auto done = change.run(update, values); !done) {
      return tl::unexpected{std::move(done.error())};
    }
    if (change.rows_changed() == 0) {
      return Values{};
    }
    MysqlStatement select{connection_};
    return select
        .run("SELECT " + names_.key + " FROM " + names_.table + " WHERE " + names_.claimed_by +
                 " = ? ORDER BY " + names_.key,
             {id_})
        .and_then([&] { return select.first_column(); });
  }

  std::string is_open(Values& values) const {
    values.emplace_back(table_.open);
    std::string condition = names_.status + " = ?";
    if (table_.again_after) {
      values.emplace_back(table_.taken);
      const auto micros =
          std::chrono::duration_cast<std::chrono::microseconds>(*table_.again_after).count();
      values.emplace_back(std::int64_t{micros});
      condition = "(" + condition + " OR (" + names_.status + " = ? AND " + names_.claimed_at +
                  " < UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND))";
    }
    return condition;
  }

  std::string mark(Values& values) const {
    values.emplace_back(table_.taken);
    values.emplace_back(id_);
    std::string update =
        "UPDATE " + names_.table + " SET " + names_.status + " = ?, " + names_.claimed_by + " = ?";
    if (!names_.claimed_at.empty()) {
      update += ", " + names_.claimed_at + " = UTC_TIMESTAMP(6)";
    }
    return update;
  }

  MYSQL* connection_;
  const JobTable& table_;
  const QuotedJobTable& names_;
  std::uint32_t at_most_;
  std::string id_ = base::Id::random().hex();
};

Result<void> plain(MYSQL* connection, const char* statement) {
  if (mysql_query(connection, statement) != 0) {
    return tl::unexpected{
        MysqlStatement::error_of(mysql_errno(connection), mysql_error(connection))};
  }
  return {};
}

// READ COMMITTED: rows that were looked at and not taken stay free.
Result<ClaimedJobs> in_own_transaction(MYSQL* connection, Claim& claim, SkipLocked how) {
  auto begun = plain(connection, "SET TRANSACTION ISOLATION LEVEL READ COMMITTED").and_then([&] {
    return plain(connection, "START TRANSACTION");
  });
  if (!begun) {
    return tl::unexpected{std::move(begun.error())};
  }
  auto claimed = claim.run(how);
  if (!claimed) {
    mysql_rollback(connection);
    return claimed;
  }
  if (auto committed = plain(connection, "COMMIT"); !committed) {
    return tl::unexpected{std::move(committed.error())};
  }
  return claimed;
}

}  // namespace

SkipLocked skips_locked(st_mysql* connection) {
  return MysqlFeatures::of(mysql_get_server_info(connection)).skip_locked ? SkipLocked::yes
                                                                          : SkipLocked::no;
}

Result<ClaimedJobs> claim_jobs(st_mysql* connection, const JobTable& table, std::uint32_t at_most,
                               SkipLocked how) {
  if (connection == nullptr) {
    return no_connection();
  }
  const auto names = check_count(at_most).and_then([&] { return quote(table, kMysqlQuoting); });
  if (!names) {
    return tl::unexpected{names.error()};
  }
  Claim claim{connection, table, *names, at_most};
  if (is_in_transaction(connection)) {
    return claim.run(how);
  }
  auto claimed = in_own_transaction(connection, claim, how);
  for (int attempt = 1; !claimed && is_collision(claimed.error()) && attempt < kAttempts;
       ++attempt) {
    claimed = in_own_transaction(connection, claim, how);
  }
  return claimed;
}

Result<void> complete_job(st_mysql* connection, const JobTable& table, std::string_view claim,
                          std::string_view key, std::string_view status) {
  if (connection == nullptr) {
    return no_connection();
  }
  const auto names = quote(table, kMysqlQuoting);
  if (!names) {
    return tl::unexpected{names.error()};
  }
  if (status == table.taken || status == table.open) {
    return fail(ErrorCode::invalid_argument, "status must differ from open and taken");
  }
  const std::string text = "UPDATE " + names->table + " SET " + names->status + " = ? WHERE " +
                           names->key + " = ? AND " + names->claimed_by + " = ? AND " +
                           names->status + " = ?";
  const Values values{std::string{status}, std::string{key}, std::string{claim}, table.taken};
  // In a transaction of the caller's a collision has undone the whole of it.
  const int attempts = is_in_transaction(connection) ? 1 : kAttempts;
  Result<std::uint64_t> changed;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    MysqlStatement update{connection};
    changed = update.run(text, values).map([&] { return update.rows_changed(); });
    if (changed || !is_collision(changed.error())) {
      break;
    }
  }
  if (!changed) {
    return tl::unexpected{std::move(changed.error())};
  }
  if (*changed != 1) {
    return fail(ErrorCode::lease_lost, "the job is not ours any more: somebody else took it over");
  }
  return {};
}

}  // namespace holdfast::engines

// Declared in <holdfast/mysql.h>, which stands above the engines.
namespace holdfast::mysql {

Result<ClaimedJobs> claim(st_mysql* connection, const JobTable& table, std::uint32_t at_most) {
  const auto how =
      connection == nullptr ? engines::SkipLocked::no : engines::skips_locked(connection);
  return engines::claim_jobs(connection, table, at_most, how);
}

Result<void> complete(st_mysql* connection, const JobTable& table, std::string_view claim,
                      std::string_view key, std::string_view status) {
  return engines::complete_job(connection, table, claim, key, status);
}

}  // namespace holdfast::mysql
