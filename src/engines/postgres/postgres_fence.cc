// How LeaseEngine lets users check a lock in their own transaction. Names get
// a row in `fences` when this is first asked for; until then grants are spared
// the second row.
#include <algorithm>
#include <utility>

#include "engine/batch.h"
#include "engines/postgres/postgres_engine.h"
#include "engines/postgres/postgres_errors.h"
#include "engines/postgres/postgres_guard.h"
#include "engines/relational/odd_bytes.h"

namespace holdfast::engines::postgres {
namespace {

using engine::Talk;

constexpr std::size_t kRememberedFences = 1000;
constexpr int kAttempts = 20;

// The lowest token of those who hold the lock together with this one; nullopt
// if this one does not.
std::optional<std::uint64_t> lowest_beside(std::uint64_t token, const core::LockRecord& record) {
  std::uint64_t lowest = token;
  bool holds = false;
  for (const core::Holder& holder : record.holders()) {
    holds = holds || (token >= holder.token && token - holder.token < core::kTokenStride);
    lowest = std::min(lowest, holder.token);
  }
  return holds ? std::optional{lowest} : std::nullopt;
}

Error not_held() {
  return {ErrorCode::lease_lost, "the lock is not ours any more", std::nullopt};
}

}  // namespace

Talk<Result<void>> LeaseEngine::make_fence(std::string key, std::uint64_t token) {
  Session& session = desk_.session();
  if (!session.is_open()) {
    if (auto connected = co_await session.connect(); !connected) {
      co_return connected;
    }
  }
  ArrayOf names{Element::text};
  names.add(key);
  for (int i = 0; i < kAttempts; ++i) {
    Call read{.sql = &shared_.sql.read};
    read.values.push_back(shared_.test_time());
    read.values.emplace_back(names.bytes());
    auto rows = co_await session.ask(std::move(read));
    if (!rows) {
      co_return tl::unexpected{rows.error()};
    }
    const StoredLock stored = StoredLock::from(*rows, 0);
    const auto record = stored.row.to_record();
    const auto lowest = record ? lowest_beside(token, *record) : std::nullopt;
    if (!lowest) {
      co_return tl::unexpected{record ? not_held() : record.error()};
    }
    if (stored.fenced) {
      co_return Result<void>{};
    }
    Call make{.sql = &shared_.sql.make_fence};
    make.values.emplace_back(key);
    make.values.emplace_back(binary(stored.version));
    make.values.emplace_back(binary(static_cast<std::int64_t>(*lowest)));
    auto made = co_await session.ask(std::move(make));
    if (!made && !is_contention(made.error())) {
      co_return tl::unexpected{made.error()};
    }
    if (made && made->size() == 1) {
      co_return Result<void>{};
    }
  }
  co_return fail(ErrorCode::unavailable, "PostgreSQL: too many others want the same row");
}

Result<std::string> LeaseEngine::fence_sql(std::string_view name, std::uint64_t token) {
  if (inherited()) {
    return tl::unexpected{engine::inherited_by_fork()};
  }
  const std::string key = relational::escaped(name);
  {
    const std::lock_guard lock{fences_mutex_};
    const auto known = fences_.find(key);
    if (known != fences_.end() && known->second == token) {
      return fence_condition(shared_.options.schema, key, token);
    }
  }
  auto made = desk_.run<Result<void>>(*driver_, [&] { return make_fence(key, token); });
  if (!made) {
    // Whether there is a fence is not what the caller wants to know.
    Error error = made.error();
    error.code = error.code == ErrorCode::outcome_unknown ? ErrorCode::unavailable : error.code;
    return tl::unexpected{std::move(error)};
  }
  const std::lock_guard lock{fences_mutex_};
  if (fences_.size() >= kRememberedFences) {
    fences_.clear();
  }
  fences_[key] = token;
  return fence_condition(shared_.options.schema, key, token);
}

Result<void> LeaseEngine::guard(std::string_view name, std::uint64_t token,
                                const engine::NativeConnection& connection,
                                engine::AfterGuard after) {
  if (connection.type != "PGconn") {
    return fail(ErrorCode::invalid_argument,
                "this lock is kept in PostgreSQL, and the connection is to something else");
  }
  auto* native = static_cast<pg_conn*>(connection.handle);
  auto condition = fence_sql(name, token);
  if (!condition) {
    if (condition.error().code == ErrorCode::lease_lost) {
      roll_back(native);
    }
    return tl::unexpected{condition.error()};
  }
  return guard_transaction(native, *condition, after);
}

}  // namespace holdfast::engines::postgres
