#include "engines/mysql/mysql_clerk.h"

#include <algorithm>
#include <utility>

#include "engine/batch.h"
#include "engine/describe.h"
#include "engines/mysql/mysql_errors.h"
#include "engines/mysql/mysql_row.h"

namespace holdfast::engines {
namespace {

constexpr std::size_t kPage = 1000;

// Drives a session to the end of what it has begun.
class ToTheEnd : public engine::Conversation {
 public:
  explicit ToTheEnd(MysqlSession& session) : session_{session} {}
  std::optional<Wait> advance(short ready) override { return session_.advance(ready); }
  void give_up() override { session_.close(); }
  void finish() override {}

 private:
  MysqlSession& session_;
};

void forget_row(const MysqlSql& sql, std::string& packet, const MysqlRow& row, bool fenced) {
  if (!fenced) {
    sql.forget(packet, row.name, row.version);
    return;
  }
  // A fence must not outlive its row: it would no longer follow.
  packet += packet.empty() ? "START TRANSACTION" : ";START TRANSACTION";
  sql.lock_fence(packet, row.name, true);
  sql.forget(packet, row.name, row.version);
  sql.forget_fence(packet, row.name);
  packet += ";COMMIT";
}

}  // namespace

MysqlClerk::MysqlClerk(const MysqlOptions& options, const MysqlSql& sql, engine::Driver& driver)
    : options_{options}, sql_{sql}, driver_{driver}, session_{options} {}

Result<void> MysqlClerk::connect() {
  if (!session_.is_stale()) {
    return {};
  }
  ToTheEnd end{session_};
  session_.start_connect();
  driver_.run(end, engine::Patience::for_outcomes);
  if (session_.error()) {
    return tl::unexpected{as_error(*session_.error(), options_)};
  }
  return {};
}

Result<void> MysqlClerk::run(std::string packet) {
  if (auto connected = connect(); !connected) {
    return connected;
  }
  ToTheEnd end{session_};
  session_.start_query(std::move(packet), options_.timeout);
  driver_.run(end, engine::Patience::for_outcomes);
  if (session_.error()) {
    return tl::unexpected{as_error(*session_.error(), options_)};
  }
  return {};
}

// They are made at the first use: until then nobody holds anything.
bool MysqlClerk::no_tables() const {
  return session_.error() && trouble_of(*session_.error()) == MysqlTrouble::no_table;
}

Result<std::string> MysqlClerk::ask(std::string question) {
  if (auto good = run(std::move(question)); !good) {
    return tl::unexpected{good.error()};
  }
  const MysqlReply& reply = session_.replies().back();
  const auto cell = reply.rows() == 0 ? MysqlReply::Cell{} : reply.cell(0, 0);
  return cell ? std::string{*cell} : std::string{};
}

Result<std::vector<LockInfo>> MysqlClerk::described() {
  std::vector<LockInfo> all;
  const MysqlReply& reply = session_.replies().back();
  for (std::size_t i = 0; i < reply.rows(); ++i) {
    const MysqlRow row = read_row(reply, i);
    if (row.is_clock_only) {
      continue;
    }
    const auto entry = entry_of(row.row);
    if (!entry) {
      return tl::unexpected{entry.error()};
    }
    all.push_back(
        engine::describe(std::string{row.name}, entry->record, row.now,
                         [&](const core::SessionId& session) { return entry->party_of(session); }));
  }
  return all;
}

Result<std::vector<LockInfo>> MysqlClerk::list(std::string_view prefix) {
  const std::lock_guard lock{mutex_};
  std::vector<LockInfo> all;
  std::string after;
  while (true) {
    std::string packet;
    sql_.read_used(packet, prefix, after, kPage);
    if (auto good = run(std::move(packet)); !good) {
      if (no_tables()) {
        return all;
      }
      return tl::unexpected{good.error()};
    }
    auto page = described();
    if (!page) {
      return page;
    }
    const bool last = page->size() < kPage;
    if (!page->empty()) {
      after = page->back().name;
    }
    for (LockInfo& info : *page) {
      if (!info.holders.empty() || !info.queue.empty()) {
        all.push_back(std::move(info));
      }
    }
    if (last) {
      return all;
    }
  }
}

Result<LockInfo> MysqlClerk::show(std::string_view name) {
  if (auto good = engine::check_name(name); !good) {
    return tl::unexpected{good.error()};
  }
  const std::lock_guard lock{mutex_};
  std::string packet;
  sql_.read(packet, std::span{&name, 1});
  LockInfo nothing;
  nothing.name = name;
  if (auto good = run(std::move(packet)); !good) {
    if (no_tables()) {
      return nothing;
    }
    return tl::unexpected{good.error()};
  }
  auto found = described();
  if (!found) {
    return tl::unexpected{found.error()};
  }
  return found->empty() ? nothing : std::move(found->front());
}

Result<void> MysqlClerk::init() {
  const std::lock_guard lock{mutex_};
  std::string packet;
  for (const std::string& statement : sql_.schema()) {
    packet += (packet.empty() ? "" : ";") + statement;
  }
  return run(packet + ";" + values_schema(options_));
}

void MysqlClerk::tidy() {
  const std::lock_guard lock{mutex_};
  if (!tidy_some()) {
    tidied_to_.clear();
  }
  forget_values();
  session_.close();  // not needed for a while
}

Result<void> MysqlClerk::tidy_some() {
  std::string packet;
  sql_.read_idle(packet, tidied_to_, kPage);
  if (auto good = run(std::move(packet)); !good) {
    return good;
  }
  const MysqlReply& reply = session_.replies().back();
  std::string forget;
  std::string forget_fenced;
  std::string last;
  for (std::size_t i = 0; i < reply.rows(); ++i) {
    const MysqlRow row = read_row(reply, i);
    const auto entry = entry_of(row.row);
    if (entry && entry->record.idle_from() <= row.now) {
      forget_row(sql_, entry->fenced ? forget_fenced : forget, row, entry->fenced);
    }
    last = row.name;
  }
  tidied_to_ = reply.rows() < kPage ? "" : last;
  sql_.drop_old_notes(forget);
  // Last: it ends at the first that somebody's transaction still relies on.
  forget += forget_fenced.empty() ? "" : ";" + forget_fenced;
  return run(std::move(forget));
}

}  // namespace holdfast::engines
