#include "engines/postgres/postgres_shedlock.h"

#include <algorithm>
#include <utility>

#include "base/fork.h"
#include "engine/batch.h"
#include "engines/postgres/postgres_errors.h"
#include "engines/relational/odd_bytes.h"
#include "engines/relational/owner_text.h"
#include "engines/relational/pauses.h"

namespace holdfast::engines::postgres {
namespace {

using core::Outcome;
using core::Status;
using engine::Talk;
using relational::escaped;
using namespace std::chrono_literals;

Outcome unsupported() {
  return engine::failed({ErrorCode::unsupported,
                         "strategy=shedlock has exclusive locks alone; strategy=lease can do it",
                         std::nullopt});
}

Outcome failed_with(const Error& error) {
  if (error.native == sqlstate("22001")) {
    return engine::failed(
        {ErrorCode::invalid_argument, "the name is longer than the table's column", error.native});
  }
  return engine::failed(error);
}

}  // namespace

Capabilities ShedlockEngine::row() {
  Capabilities row;
  row.engine = "postgres";
  row.strategy = "shedlock";
  row.token = TokenKind::none;
  row.fifo = false;
  row.wake_up = WakeUp::retry;
  row.shared = false;
  row.permits = false;
  row.clock = "store";
  return row;
}

ShedlockEngine::ShedlockEngine(const Options& options, const engine::EngineOptions& client)
    : options_{options},
      sql_{options_},
      client_{client},
      generation_{base::fork_generation()},
      session_{options_},
      desk_{options_} {}

Result<std::unique_ptr<engine::Engine>> ShedlockEngine::open(const Options& options,
                                                             const engine::EngineOptions& client) {
  std::unique_ptr<ShedlockEngine> engine{new ShedlockEngine{options, client}};
  auto connected =
      engine->desk_.run<Result<void>>(*engine->driver_, [&] { return engine->session_.connect(); });
  if (!connected) {
    return tl::unexpected{connected.error()};
  }
  return engine;
}

bool ShedlockEngine::inherited() const noexcept {
  return generation_ != base::fork_generation();
}

Bytes ShedlockEngine::test_time() const {
  return client_.now ? Bytes{binary(client_.now())} : std::nullopt;
}

// Different for each request, so that nobody ends another's.
std::string ShedlockEngine::locked_by(const core::RequestId& id) const {
  return relational::owner_text(client_.party, id);
}

Call ShedlockEngine::call(const std::string& sql, const std::string& key) const {
  Call made{.sql = &sql};
  made.values.push_back(test_time());
  made.values.emplace_back(key);
  return made;
}

void ShedlockEngine::submit(std::size_t, std::span<const core::Command> batch,
                            engine::Patience patience, engine::Done done) {
  if (inherited()) {
    done(engine::all_failed(batch.size(), engine::inherited_by_fork()));
    return;
  }
  lane_.begin(*driver_, run(batch), patience, std::move(done));
}

Talk<engine::Outcomes> ShedlockEngine::run(std::span<const core::Command> batch) {
  engine::Outcomes outcomes;
  for (const core::Command& command : batch) {
    if (auto good = engine::check_name(command.name); !good) {
      outcomes.push_back(engine::failed(good.error()));
      continue;
    }
    if (!session_.is_open()) {
      if (auto connected = co_await session_.connect(); !connected) {
        outcomes.push_back(engine::failed(connected.error()));
        continue;
      }
    }
    outcomes.push_back(co_await apply(command));
  }
  co_return outcomes;
}

Talk<Outcome> ShedlockEngine::apply(const core::Command& command) {
  const std::string key = escaped(command.name);
  if (const auto* acquire = std::get_if<core::Acquire>(&command.operation)) {
    co_return co_await take(key, *acquire);
  }
  if (const auto* renewal = std::get_if<core::Renew>(&command.operation)) {
    co_return co_await renew(key, renewal->id);
  }
  if (const auto* given = std::get_if<core::Release>(&command.operation)) {
    co_return co_await release(key, given->id);
  }
  if (const auto* how = std::get_if<core::Revoke>(&command.operation)) {
    co_return co_await revoke(key, *how);
  }
  if (const auto* poll = std::get_if<core::Poll>(&command.operation)) {
    const auto known = requests_.find(poll->id);
    if (known == requests_.end()) {
      co_return Outcome{.status = Status::not_held};
    }
    co_return co_await take(key, known->second.wish);
  }
  if (const auto* requeue = std::get_if<core::Requeue>(&command.operation)) {
    const Outcome back = co_await release(key, requeue->id);
    if (back.status == Status::failed) {
      co_return back;
    }
    Outcome outcome = co_await take(key, requeue->next);
    outcome.gave_back = back.status == Status::released;
    if (outcome.gave_back && outcome.status == Status::queued) {
      outcome.look_again = relational::step_aside();
    }
    co_return outcome;
  }
  co_return unsupported();
}

// Also answers for a request that has the lock: asked again, it gets the same.
Talk<Outcome> ShedlockEngine::take(std::string key, core::Acquire wish) {
  if (wish.shape != core::Shape{}) {
    co_return unsupported();
  }
  const std::string mine = locked_by(wish.id);
  const auto known = requests_.find(wish.id);
  // What we held and lost is not taken again behind the holder's back.
  const bool only_look = known != requests_.end() && known->second.held;
  Call question = call(only_look ? sql_.look : sql_.take, key);
  if (!only_look) {
    question.values.emplace_back(mine);
    question.values.emplace_back(binary(wish.ttl));
  }
  auto rows = co_await session_.ask(std::move(question));
  if (!rows) {
    co_return failed_with(rows.error());
  }
  const bool any = rows->size() > 0;
  const base::Duration left = any ? to_duration(rows->text(0, 0)) : base::Duration{};
  const std::string holder{any ? rows->text(0, 1) : ""};
  if (any && left > 0s && holder == mine) {
    const bool waited = known != requests_.end() && !known->second.held;
    requests_[wish.id] = {.key = key, .wish = wish, .held = true};
    if (waited) {
      co_await forget_waiter(wish.id);
    }
    const bool fresh = to_int(rows->text(0, 2)) != 0;
    co_return Outcome{.status = Status::granted, .lease_for = fresh ? wish.ttl : left};
  }
  if (any && left > 0s && holder == mine + std::string{relational::kRevokedMark}) {
    co_return Outcome{.status = Status::revoked, .lease_for = left};
  }
  if (only_look) {
    requests_.erase(wish.id);
    co_return Outcome{.status = Status::not_held};
  }
  if (!wish.queue) {
    co_return Outcome{.status = Status::busy};
  }
  const base::Duration pause = relational::pause_before_retry();
  Outcome queued{.status = Status::queued, .look_again = left > 0s ? std::min(pause, left) : 1ms};
  co_return co_await wait_in_table(std::move(key), wish, std::move(queued));
}

Talk<Outcome> ShedlockEngine::wait_in_table(std::string key, core::Acquire wish, Outcome outcome) {
  requests_[wish.id] = {.key = key, .wish = wish, .held = false};
  Call note = call(sql_.note_waiter, key);
  note.values.emplace_back(binary(wish.id));
  note.values.emplace_back(relational::waiter_text(client_.party));
  note.values.emplace_back(binary(wish.window));
  // Somebody else's table may have no list of waiters: then nobody sees them.
  co_await session_.ask(std::move(note));
  co_return outcome;
}

Talk<bool> ShedlockEngine::forget_waiter(core::RequestId id) {
  Call forget{.sql = &sql_.forget_waiter};
  forget.values.emplace_back(binary(id));
  forget.values.push_back(test_time());
  auto done = co_await session_.ask(std::move(forget));
  co_return done.has_value();
}

Talk<Outcome> ShedlockEngine::renew(std::string key, core::RequestId id) {
  const auto known = requests_.find(id);
  if (known == requests_.end() || !known->second.held) {
    co_return Outcome{.status = Status::not_held};
  }
  const core::Acquire wish = known->second.wish;
  Call question = call(sql_.renew, key);
  question.values.emplace_back(locked_by(id));
  question.values.emplace_back(binary(wish.ttl));
  auto rows = co_await session_.ask(std::move(question));
  if (!rows) {
    co_return failed_with(rows.error());
  }
  if (rows->size() == 1) {
    co_return Outcome{.status = Status::renewed, .lease_for = wish.ttl};
  }
  co_return co_await take(std::move(key), wish);  // revoked, or lost
}

Talk<Outcome> ShedlockEngine::release(std::string key, core::RequestId id) {
  const auto known = requests_.find(id);
  const bool waits = known != requests_.end() && !known->second.held;
  Call question = call(sql_.release, key);
  question.values.emplace_back(locked_by(id));
  question.values.emplace_back(binary(options_.lock_at_least));
  auto rows = co_await session_.ask(std::move(question));
  if (!rows) {
    co_return failed_with(rows.error());
  }
  if (waits) {
    co_await forget_waiter(id);
  }
  requests_.erase(id);
  co_return Outcome{.status = waits || rows->size() == 1 ? Status::released : Status::not_held};
}

Talk<Outcome> ShedlockEngine::revoke(std::string key, core::Revoke how) {
  auto rows = co_await session_.ask(call(how.now ? sql_.free_now : sql_.revoke, key));
  if (!rows) {
    co_return failed_with(rows.error());
  }
  co_return Outcome{.status = Status::done, .count = static_cast<std::uint32_t>(rows->size())};
}

Talk<Result<std::vector<LockInfo>>> ShedlockEngine::find(std::string prefix, bool whole) {
  Session& session = desk_.session();
  if (!session.is_open()) {
    if (auto connected = co_await session.connect(); !connected) {
      co_return tl::unexpected{connected.error()};
    }
  }
  std::vector<Call> calls;
  calls.push_back(call(sql_.list, prefix));
  calls.push_back(call(sql_.waiters, prefix));
  const auto answers = co_await session.exchange(std::move(calls));
  if (!answers[0]) {
    Error error = answers[0].error();
    error.code = error.code == ErrorCode::outcome_unknown ? ErrorCode::unavailable : error.code;
    co_return tl::unexpected{std::move(error)};
  }
  std::map<std::string, LockInfo> found;
  for (int i = 0; i < answers[0]->size(); ++i) {
    const Rows& rows = *answers[0];
    std::string_view who = rows.text(i, 1);
    HolderInfo holder;
    holder.revoked = who.ends_with(relational::kRevokedMark);
    holder.party = relational::party_in(who);
    holder.held_for = to_duration(rows.text(i, 2));
    holder.expires_in = to_duration(rows.text(i, 3));
    found[std::string{rows.text(i, 0)}].holders.push_back(std::move(holder));
  }
  for (int i = 0; answers[1] && i < answers[1]->size(); ++i) {
    const Rows& rows = *answers[1];
    found[std::string{rows.text(i, 0)}].queue.push_back(
        {.party = relational::party_in(rows.text(i, 1)),
         .waiting_for = to_duration(rows.text(i, 2))});
  }
  std::vector<LockInfo> all;
  for (auto& [key, info] : found) {
    if (!whole || key == prefix) {
      info.name = relational::unescaped(key);
      all.push_back(std::move(info));
    }
  }
  std::sort(all.begin(), all.end(),
            [](const LockInfo& a, const LockInfo& b) { return a.name < b.name; });
  co_return all;
}

Result<std::vector<LockInfo>> ShedlockEngine::list(std::string_view prefix) {
  if (inherited()) {
    return tl::unexpected{engine::inherited_by_fork()};
  }
  return desk_.run<Result<std::vector<LockInfo>>>(*driver_,
                                                  [&] { return find(escaped(prefix), false); });
}

Result<LockInfo> ShedlockEngine::show(std::string_view name) {
  if (inherited()) {
    return tl::unexpected{engine::inherited_by_fork()};
  }
  if (auto good = engine::check_name(name); !good) {
    return tl::unexpected{good.error()};
  }
  auto found =
      desk_.run<Result<std::vector<LockInfo>>>(*driver_, [&] { return find(escaped(name), true); });
  return std::move(found).map([&](std::vector<LockInfo> locks) {
    LockInfo nobody;
    nobody.name = name;
    return locks.empty() ? nobody : std::move(locks.front());
  });
}

Result<std::string> ShedlockEngine::init_script() {
  return "BEGIN;" + sql_.create + "COMMIT;\n";
}

Result<void> ShedlockEngine::init() {
  if (inherited()) {
    return tl::unexpected{engine::inherited_by_fork()};
  }
  return desk_.run<Result<void>>(*driver_, [&] { return create(); });
}

Talk<Result<void>> ShedlockEngine::create() {
  if (!desk_.session().is_open()) {
    if (auto connected = co_await desk_.session().connect(); !connected) {
      co_return connected;
    }
  }
  co_return co_await desk_.session().run_script(sql_.create);
}

std::vector<Finding> ShedlockEngine::doctor() {
  auto found = list("");
  if (!found) {
    return {{.level = Finding::Level::problem,
             .topic = "table",
             .text = found.error().text,
             .advice = "create ShedLock's table, or run `holdfast init`"}};
  }
  return {{.level = Finding::Level::ok,
           .topic = "table",
           .text = std::to_string(found->size()) + " locks in use",
           .advice = ""}};
}

}  // namespace holdfast::engines::postgres
