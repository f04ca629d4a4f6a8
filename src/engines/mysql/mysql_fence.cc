// How users check a lock in their own transaction. A name gets a fence when
// that is first asked for; until then grants are spared the second row.
#include <algorithm>
#include <optional>
#include <utility>

#include "base/ids.h"
#include "engine/batch.h"
#include "engines/mysql/mysql_engine.h"
#include "engines/mysql/mysql_errors.h"
#include "engines/mysql/mysql_guard.h"

namespace holdfast::engines {
namespace {

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

}  // namespace

Result<void> MysqlClerk::make_fence(std::string_view name, std::uint64_t token) {
  const std::lock_guard lock{mutex_};
  for (int i = 0; i < kAttempts; ++i) {
    const auto made = try_to_make_fence(name, token);
    if (made && *made) {
      return {};
    }
    if (made) {
      continue;  // the row changed meanwhile
    }
    if (no_tables()) {
      std::string packet;
      for (const std::string& statement : sql_.schema()) {
        packet += (packet.empty() ? "" : ";") + statement;
      }
      if (auto good = run(std::move(packet)); !good) {
        return good;
      }
      continue;
    }
    const auto& error = session_.error();
    if (!error || trouble_of(*error) != MysqlTrouble::collision) {
      return tl::unexpected{made.error()};
    }
    session_.close();  // with what it had begun
  }
  return fail(ErrorCode::unavailable, "too many others want the same row");
}

Result<bool> MysqlClerk::try_to_make_fence(std::string_view name, std::uint64_t token) {
  std::string packet = "SHOW VARIABLES LIKE 'wsrep_on'";
  sql_.read(packet, std::span{&name, 1});
  if (auto good = run(std::move(packet)); !good) {
    return tl::unexpected{good.error()};
  }
  // A row that one node's transaction has locked can be written on another. Nearly always that ends
  // the transaction, but not one whose own commit has just been certified.
  const MysqlReply& wsrep = session_.replies().front();
  if (wsrep.rows() > 0 && wsrep.cell(0, 1) == "ON") {
    return fail(ErrorCode::unsupported,
                "in a Galera cluster a transaction on one node cannot hold off a grant on another; "
                "compare the token in the row that you write (docs/fencing.md)");
  }
  const MysqlReply& reply = session_.replies().back();
  MysqlRow row;
  for (std::size_t i = 0; i < reply.rows(); ++i) {
    MysqlRow each = read_row(reply, i);
    if (!each.is_clock_only) {
      row = std::move(each);
    }
  }
  auto entry = entry_of(row.row);
  if (!entry) {
    return tl::unexpected{entry.error()};
  }
  const auto lowest = lowest_beside(token, entry->record);
  if (!lowest) {
    return fail(ErrorCode::lease_lost, "the lock is not ours any more");
  }
  if (entry->fenced) {
    return true;
  }
  entry->fenced = true;
  const std::uint64_t mark = base::random_u64() | 1U;
  const MysqlSql::Change change{.name = name, .version = row.version, .row = row_of(*entry)};
  packet = "START TRANSACTION";
  sql_.update(packet, std::span{&change, 1}, mark);
  sql_.make_fence(packet, name, *lowest, mark);
  packet += ";COMMIT";
  sql_.read_marked(packet, std::span{&name, 1}, mark, 1);  // a COMMIT alone is no proof on Galera
  if (auto good = run(std::move(packet)); !good) {
    return tl::unexpected{good.error()};
  }
  return session_.replies().back().rows() == 1;
}

Result<std::string> MysqlEngine::fence_sql(std::string_view name, std::uint64_t token) {
  if (inherited()) {
    return tl::unexpected{engine::inherited_by_fork()};
  }
  const MysqlFence fence{options_, name, token};
  {
    const std::lock_guard lock{fences_mutex_};
    const auto known = fences_.find(name);
    if (known != fences_.end() && known->second == token) {
      return fence.condition();
    }
  }
  if (auto made = clerk_.make_fence(name, token); !made) {
    return tl::unexpected{made.error()};
  }
  const std::lock_guard lock{fences_mutex_};
  if (fences_.size() >= kRememberedFences) {
    fences_.clear();
  }
  fences_.insert_or_assign(std::string{name}, token);
  return fence.condition();
}

Result<void> MysqlEngine::guard(std::string_view name, std::uint64_t token,
                                const engine::NativeConnection& connection,
                                engine::AfterGuard after) {
  if (connection.type != "MYSQL") {
    return fail(ErrorCode::invalid_argument,
                "this lock is kept in MySQL, and the connection is to something else");
  }
  auto* native = static_cast<st_mysql*>(connection.handle);
  if (auto good = check_transaction(native); !good) {
    return good;
  }
  if (auto condition = fence_sql(name, token); !condition) {
    if (condition.error().code == ErrorCode::lease_lost) {
      roll_back(native);
    }
    return tl::unexpected{condition.error()};
  }
  return guard_transaction(native, MysqlFence{options_, name, token}, after);
}

}  // namespace holdfast::engines
