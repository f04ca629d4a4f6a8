// What LeaseEngine shows to people, and how it keeps the house.
#include <algorithm>
#include <utility>

#include "engine/batch.h"
#include "engine/describe.h"
#include "engines/postgres/postgres_engine.h"
#include "engines/postgres/postgres_errors.h"
#include "engines/relational/odd_bytes.h"

namespace holdfast::engines::postgres {
namespace {

using engine::Talk;
using namespace std::chrono_literals;

// A name is forgotten when it is idle, and its tokens are behind the clock,
// for this long; one with a fence later.
constexpr base::Duration kIdleTime = 1min;
constexpr base::Duration kFencedIdleTime = 24h;

Talk<Result<void>> open_if_needed(Session& session) {
  if (session.is_open()) {
    co_return Result<void>{};
  }
  co_return co_await session.connect();
}

LockInfo described(std::string name, const StoredLock& lock) {
  LockInfo nobody;
  nobody.name = name;
  const auto record = lock.row.to_record();
  if (!record) {
    return nobody;
  }
  auto parties = lock.row.known_parties();
  return engine::describe(std::move(name), *record, lock.now,
                          [&](const core::SessionId& session) { return parties[session]; });
}

}  // namespace

Talk<Result<std::vector<LockInfo>>> LeaseEngine::find(std::string key,
                                                      std::optional<std::string> prefix) {
  if (auto connected = co_await open_if_needed(desk_.session()); !connected) {
    co_return tl::unexpected{connected.error()};
  }
  Call call{.sql = prefix ? &shared_.sql.list : &shared_.sql.read};
  call.values.push_back(shared_.test_time());
  if (prefix) {
    call.values.emplace_back(*prefix);
  } else {
    ArrayOf names{Element::text};
    names.add(key);
    call.values.emplace_back(names.bytes());
  }
  auto rows = co_await desk_.session().ask(std::move(call));
  if (!rows) {
    Error error = rows.error();
    error.code = error.code == ErrorCode::outcome_unknown ? ErrorCode::unavailable : error.code;
    co_return tl::unexpected{std::move(error)};
  }
  std::vector<LockInfo> all;
  for (int i = 0; i < rows->size(); ++i) {
    LockInfo info =
        described(relational::unescaped(rows->text(i, kName)), StoredLock::from(*rows, i));
    if (!info.holders.empty() || !info.queue.empty()) {
      all.push_back(std::move(info));
    }
  }
  std::sort(all.begin(), all.end(),
            [](const LockInfo& a, const LockInfo& b) { return a.name < b.name; });
  co_return all;
}

Result<std::vector<LockInfo>> LeaseEngine::list(std::string_view prefix) {
  if (inherited()) {
    return tl::unexpected{engine::inherited_by_fork()};
  }
  return desk_.run<Result<std::vector<LockInfo>>>(
      *driver_, [&] { return find("", relational::escaped(prefix)); });
}

Result<LockInfo> LeaseEngine::show(std::string_view name) {
  if (inherited()) {
    return tl::unexpected{engine::inherited_by_fork()};
  }
  if (auto good = engine::check_name(name); !good) {
    return tl::unexpected{good.error()};
  }
  auto found = desk_.run<Result<std::vector<LockInfo>>>(
      *driver_, [&] { return find(relational::escaped(name), std::nullopt); });
  return std::move(found).map([&](std::vector<LockInfo> locks) {
    LockInfo nobody;
    nobody.name = name;
    return locks.empty() ? nobody : std::move(locks.front());
  });
}

void LeaseEngine::tidy() {
  if (!inherited()) {
    desk_.run_in_background(*driver_, [&] { return tidy_up(); });
  }
}

Talk<bool> LeaseEngine::tidy_up() {
  if (auto connected = co_await open_if_needed(desk_.session()); !connected) {
    co_return false;
  }
  Call call{.sql = &shared_.sql.tidy,
            .values = {shared_.test_time(), binary(kIdleTime), binary(kFencedIdleTime)}};
  auto done = co_await desk_.session().ask(std::move(call));
  Call values{.sql = &shared_.sql.forget_values,
              .values = {shared_.test_time(), binary(core::kEraseMemory)}};
  auto forgotten = co_await desk_.session().ask(std::move(values));
  co_return done.has_value() && forgotten.has_value();
}

Result<std::string> LeaseEngine::init_script() {
  return "BEGIN;" + shared_.sql.create + "COMMIT;\n";
}

Result<void> LeaseEngine::init() {
  if (inherited()) {
    return tl::unexpected{engine::inherited_by_fork()};
  }
  return desk_.run<Result<void>>(*driver_, [&] { return create(); });
}

Talk<Result<void>> LeaseEngine::create() {
  if (auto connected = co_await open_if_needed(desk_.session()); !connected) {
    co_return connected;
  }
  // Several statements in one message are one transaction. Two at once may
  // still collide in the catalogue: the second then finds everything there.
  auto done = co_await desk_.session().run_script(shared_.sql.create);
  if (!done && desk_.session().is_open()) {
    auto version = co_await desk_.session().ask({.sql = &shared_.sql.version});
    if (version && version->size() == 1 && version->integer(0, 0) == kSchemaVersion) {
      co_return Result<void>{};
    }
  }
  co_return done;
}

}  // namespace holdfast::engines::postgres
