#include "engines/postgres/postgres_session_locks.h"

#include <algorithm>
#include <map>
#include <utility>

#include "engines/postgres/postgres_errors.h"
#include "engines/postgres/postgres_session.h"
#include "engines/relational/lock_session.h"
#include "engines/relational/odd_bytes.h"
#include "engines/relational/session_locks.h"

namespace holdfast::engines::postgres {
namespace {

using engine::Talk;
using relational::Books;
using relational::escaped;
using relational::Identity;
using relational::LockSession;
using relational::unescaped;
using relational::Wanted;
using namespace std::chrono_literals;

const std::string kBegin = "BEGIN";
const std::string kCommit = "COMMIT";
const std::string kRollBack = "ROLLBACK";

// The server's lock_timeout ends a wait first.
constexpr Duration kLongestWait = 90s;
constexpr int kTriesToKnow = 3;

struct Shared {
  Options options;
  SessionLockSql sql;
  Party party;
};

Error nothing_applied(Error error) {
  if (error.code == ErrorCode::outcome_unknown) {
    error.code = ErrorCode::unavailable;
  }
  return error;
}

// Somebody else has it, or the wait was cancelled: all that is over is the statement.
bool is_wait_over(const Error& error) {
  return is_contention(error) || error.native == sqlstate("57014");
}

class PostgresLockSession : public LockSession {
 public:
  explicit PostgresLockSession(std::shared_ptr<const Shared> shared)
      : shared_{std::move(shared)}, session_{shared_->options} {}

  Talk<Result<void>> connect() override {
    auto connected = co_await session_.connect();
    if (!connected) {
      co_return connected;
    }
    const auto beacon = static_cast<std::int64_t>(base::random_u64());
    Call settle{.sql = &shared_->sql.settle};
    settle.values.emplace_back(binary(beacon));
    const auto settled = co_await session_.ask(std::move(settle));
    if (!settled) {
      co_return tl::unexpected{nothing_applied(settled.error())};
    }
    identity_ = {.connection = settled->integer(0, 0), .beacon = beacon};
    co_return Result<void>{};
  }
  bool is_open() override { return session_.is_open(); }
  int fd() const override { return session_.fd(); }
  void close() override { session_.close(); }
  Identity identity() const override { return identity_; }

  Talk<Result<Got>> try_lock(Wanted wanted) override {
    const SessionLockSql& sql = shared_->sql;
    co_return co_await lock(wanted.shared ? sql.try_shared : sql.try_exclusive, wanted);
  }
  Talk<Result<Got>> await_lock(Wanted wanted) override {
    const SessionLockSql& sql = shared_->sql;
    session_.set_patience(kLongestWait);
    auto got = co_await lock(wanted.shared ? sql.wait_shared : sql.wait_exclusive, wanted);
    session_.set_patience(shared_->options.timeout);
    co_return got;
  }

  Talk<Result<void>> free(Wanted wanted) override {
    if (in_transaction()) {
      co_return co_await run(kCommit);
    }
    // If we do not have it the server only warns: a wait that was cancelled
    // may have got it all the same.
    const SessionLockSql& sql = shared_->sql;
    const auto freed =
        co_await session_.ask(call(wanted.shared ? sql.free_shared : sql.free_exclusive, wanted));
    if (!freed) {
      co_return tl::unexpected{freed.error()};
    }
    co_return Result<void>{};
  }

 private:
  bool in_transaction() const { return shared_->sql.free_exclusive.empty(); }

  Call call(const std::string& sql, const Wanted& wanted) const {
    Call made{.sql = &sql};
    made.values.emplace_back(shared_->options.strategy == Strategy::row ? binary(wanted.key)
                                                                        : binary(wanted.hash));
    return made;
  }

  Talk<Result<void>> run(const std::string& sql) {
    Call call{.sql = &sql};
    const auto done = co_await session_.ask(std::move(call));
    if (!done) {
      co_return tl::unexpected{done.error()};
    }
    co_return Result<void>{};
  }

  // A transaction stays open if, and only if, we got it.
  Talk<Result<Got>> lock(const std::string& sql, Wanted wanted) {
    std::vector<Call> calls;
    if (in_transaction()) {
      calls.push_back({.sql = &kBegin});
    }
    calls.push_back(call(sql, wanted));
    auto answers = co_await session_.exchange(std::move(calls));
    if (!answers.front() && answers.size() > 1) {
      co_return tl::unexpected{answers.front().error()};
    }
    const Result<Rows>& answer = answers.back();
    if (!answer && !is_wait_over(answer.error())) {
      co_return tl::unexpected{answer.error()};
    }
    if (answer && answer->size() > 0 && answer->integer(0, 0) != 0) {
      co_return Got::lock;
    }
    const bool missing = answer && (answer->size() == 0 || answer->integer(0, 1) == 0);
    if (in_transaction()) {
      const auto ended = co_await run(kRollBack);
      if (!ended) {
        co_return tl::unexpected{ended.error()};
      }
    } else if (!answer) {
      const auto freed = co_await free(wanted);
      if (!freed) {
        co_return tl::unexpected{freed.error()};
      }
    }
    co_return missing ? Got::no_row : Got::nothing;
  }

  const std::shared_ptr<const Shared> shared_;
  Session session_;
  Identity identity_;
};

class PostgresBooks : public Books {
 public:
  explicit PostgresBooks(std::shared_ptr<const Shared> shared)
      : shared_{std::move(shared)}, sql_{shared_->sql}, session_{shared_->options} {}

  Talk<Result<void>> admit() override {
    auto connected = co_await session_.connect();
    if (connected && session_.is_pooled()) {
      co_return fail(ErrorCode::unsupported,
                     "behind a pooler a session's locks belong to whoever comes next: use "
                     "strategy=lease, or pooler=session if it gives each client a connection of "
                     "its own");
    }
    co_return connected;
  }

  Talk<Result<Wanted>> know(Wanted wanted) override {
    for (int i = 0; i < kTriesToKnow; ++i) {
      auto rows = co_await ask(named(sql_.know, wanted.key));
      if (!rows) {
        co_return tl::unexpected{rows.error()};
      }
      if (rows->size() == 0) {
        continue;  // somebody else writes it at this moment, or the hash is taken
      }
      wanted.hash = rows->integer(0, 0);
      if (!sql_.add_row.empty()) {
        const auto added = co_await ask(named(sql_.add_row, wanted.key));
        if (!added) {
          co_return tl::unexpected{added.error()};
        }
      }
      co_return wanted;
    }
    co_return fail(ErrorCode::unavailable,
                   "another name in use has the same 64-bit hash; choose another name, or use "
                   "strategy=lease");
  }

  Talk<Result<void>> write(Note note) override {
    Call call{.sql = &sql_.write};
    call.values.emplace_back(binary(note.request));
    call.values.emplace_back(note.wanted.key);
    call.values.emplace_back(binary(std::int32_t{note.waiting ? 1 : 0}));
    call.values.emplace_back(binary(std::int32_t{note.wanted.shared ? 1 : 0}));
    call.values.emplace_back(binary(note.ttl));
    call.values.emplace_back(escaped(shared_->party.label));
    call.values.emplace_back(escaped(shared_->party.host));
    call.values.emplace_back(binary(std::int64_t{shared_->party.pid}));
    call.values.emplace_back(binary(static_cast<std::int32_t>(note.session.connection)));
    call.values.emplace_back(binary(note.session.beacon));
    co_return co_await run(std::move(call));
  }

  Talk<Result<void>> strike(std::vector<core::RequestId> requests) override {
    Call call{.sql = &sql_.strike};
    call.values.emplace_back(array_of(requests));
    co_return co_await run(std::move(call));
  }

  Talk<Result<std::vector<Standing>>> look(
      std::vector<std::pair<core::RequestId, Identity>> holds) override {
    ArrayOf connections{Element::int4};
    ArrayOf beacons{Element::int8};
    ArrayOf requests{Element::uuid};
    for (const auto& [request, session] : holds) {
      connections.add(static_cast<std::int32_t>(session.connection));
      beacons.add(session.beacon);
      requests.add(request);
    }
    Call alive{.sql = &sql_.look};
    alive.values.emplace_back(connections.bytes());
    alive.values.emplace_back(beacons.bytes());
    Call revoked{.sql = &sql_.revoked};
    revoked.values.emplace_back(requests.bytes());
    std::vector<Call> calls;
    calls.push_back(std::move(alive));
    calls.push_back(std::move(revoked));
    if (!session_.is_open()) {
      if (auto connected = co_await session_.connect(); !connected) {
        co_return tl::unexpected{connected.error()};
      }
    }
    const auto answers = co_await session_.exchange(std::move(calls));
    for (const auto& answer : answers) {
      if (!answer) {
        co_return tl::unexpected{nothing_applied(answer.error())};
      }
    }
    std::vector<Standing> standings(holds.size());
    for (std::size_t i = 0; i < holds.size(); ++i) {
      for (int row = 0; row < answers[0]->size(); ++row) {
        standings[i].alive |= answers[0]->integer(row, 0) == holds[i].second.beacon;
      }
      for (int row = 0; row < answers[1]->size(); ++row) {
        standings[i].revoked |= to_id(answers[1]->text(row, 0)) == holds[i].first;
      }
    }
    co_return standings;
  }

  Talk<Result<bool>> is_revoked(std::string key) override {
    const auto rows = co_await ask(named(sql_.is_revoked, key));
    if (!rows) {
      co_return tl::unexpected{rows.error()};
    }
    co_return rows->size() > 0;
  }

  Talk<Result<void>> interrupt(Identity session) override {
    Call call{.sql = &sql_.interrupt};
    call.values.emplace_back(binary(static_cast<std::int32_t>(session.connection)));
    call.values.emplace_back(binary(session.beacon));
    co_return co_await run(std::move(call));
  }

  Talk<Result<std::uint32_t>> revoke(std::string key, core::Revoke how) override {
    const auto rows = co_await ask(named(how.now ? sql_.terminate : sql_.revoke, key));
    if (!rows) {
      co_return tl::unexpected{rows.error()};
    }
    if (how.now) {
      co_await await_end_of(*rows);
    }
    co_return static_cast<std::uint32_t>(rows->size());
  }

  Talk<Result<std::vector<LockInfo>>> find(std::string prefix) override;
  Talk<std::vector<Finding>> examine() override;

  Talk<Result<void>> create() override {
    if (!session_.is_open()) {
      if (auto connected = co_await session_.connect(); !connected) {
        co_return connected;
      }
    }
    co_return co_await session_.run_script(sql_.create);
  }
  Talk<Result<void>> tidy() override {
    Call sweep{.sql = &sql_.tidy};
    const auto swept = co_await run(std::move(sweep));
    if (!swept) {
      co_return swept;
    }
    Call forget{.sql = &sql_.forget_names};
    co_return co_await run(std::move(forget));
  }

 private:
  static Call named(const std::string& sql, const std::string& key) {
    Call call{.sql = &sql};
    call.values.emplace_back(key);
    return call;
  }
  static std::string array_of(const std::vector<core::RequestId>& ids) {
    ArrayOf made{Element::uuid};
    for (const core::RequestId& id : ids) {
      made.add(id);
    }
    return made.bytes();
  }

  // A session that was told to end needs a moment.
  Talk<bool> await_end_of(const Rows& told) {
    const base::Time until = base::BootClock::now() + shared_->options.timeout;
    ArrayOf connections{Element::int4};
    ArrayOf beacons{Element::int8};
    for (int i = 0; i < told.size(); ++i) {
      connections.add(static_cast<std::int32_t>(told.integer(i, 0)));
      beacons.add(told.integer(i, 1));
    }
    while (base::BootClock::now() < until) {
      Call alive{.sql = &sql_.look};
      alive.values.emplace_back(connections.bytes());
      alive.values.emplace_back(beacons.bytes());
      const auto left = co_await ask(std::move(alive));
      if (!left || left->size() == 0) {
        break;
      }
      const auto rested = co_await engine::Moment{{.until = base::BootClock::now() + 1ms}};
      if (!rested) {
        break;
      }
    }
    co_return true;
  }

  // All of these may be asked again: a lost answer is no mystery.
  Talk<Result<Rows>> ask(Call call) {
    if (!session_.is_open()) {
      if (auto connected = co_await session_.connect(); !connected) {
        co_return tl::unexpected{connected.error()};
      }
    }
    auto rows = co_await session_.ask(std::move(call));
    if (!rows) {
      co_return tl::unexpected{nothing_applied(rows.error())};
    }
    co_return rows;
  }
  Talk<Result<void>> run(Call call) {
    const auto rows = co_await ask(std::move(call));
    if (!rows) {
      co_return tl::unexpected{rows.error()};
    }
    co_return Result<void>{};
  }

  const std::shared_ptr<const Shared> shared_;
  const SessionLockSql& sql_;
  Session session_;
};

Talk<Result<std::vector<LockInfo>>> PostgresBooks::find(std::string prefix) {
  const auto rows = co_await ask(named(sql_.find, prefix));
  if (!rows) {
    co_return tl::unexpected{rows.error()};
  }
  std::map<std::string, LockInfo> found;
  for (int i = 0; i < rows->size(); ++i) {
    LockInfo& info = found[unescaped(rows->text(i, 0))];
    const Party party{.label = unescaped(rows->text(i, 6)),
                      .host = unescaped(rows->text(i, 7)),
                      .pid = rows->integer(i, 8)};
    const Mode mode = rows->integer(i, 2) != 0 ? Mode::shared : Mode::exclusive;
    const Duration time = std::max<Duration>(to_duration(rows->text(i, 4)), Duration::zero());
    if (rows->integer(i, 1) != 0) {
      info.queue.push_back({.party = party, .mode = mode, .waiting_for = time});
    } else {
      HolderInfo holder;
      holder.party = party;
      holder.mode = mode;
      holder.held_for = time;
      holder.expires_in = to_duration(rows->text(i, 5));
      holder.revoked = rows->integer(i, 3) != 0;
      info.holders.push_back(std::move(holder));
    }
  }
  std::vector<LockInfo> all;
  for (auto& [name, info] : found) {
    info.name = name;
    all.push_back(std::move(info));
  }
  co_return all;
}

Talk<std::vector<Finding>> PostgresBooks::examine() {
  std::vector<Finding> findings;
  const auto found = co_await find("");
  if (!found) {
    findings.push_back({.level = Finding::Level::problem,
                        .topic = "tables",
                        .text = found.error().text,
                        .advice = "run `holdfast init`"});
    co_return findings;
  }
  findings.push_back({.level = Finding::Level::ok,
                      .topic = "tables",
                      .text = std::to_string(found->size()) + " locks in use",
                      .advice = ""});
  co_return findings;
}

class PostgresSessionStore : public relational::SessionStore {
 public:
  PostgresSessionStore(const Options& options, const Party& party)
      : shared_{std::make_shared<Shared>(
            Shared{.options = options, .sql = SessionLockSql{options}, .party = party})} {}

  std::unique_ptr<LockSession> session() override {
    return std::make_unique<PostgresLockSession>(shared_);
  }
  std::unique_ptr<Books> books() override { return std::make_unique<PostgresBooks>(shared_); }
  std::string script() const override { return "BEGIN;" + shared_->sql.create + "COMMIT;\n"; }

 private:
  const std::shared_ptr<const Shared> shared_;
};

}  // namespace

Capabilities session_locks_row(Strategy strategy) {
  Capabilities row;
  row.engine = "postgres";
  row.strategy = strategy == Strategy::advisory ? "advisory" : "row";
  row.exclusion = ExclusionBy::session;
  row.lease = false;
  row.token = TokenKind::none;
  row.fifo = false;
  row.wake_up = WakeUp::event;
  row.shared = strategy == Strategy::advisory;
  row.permits = false;
  row.loss_signal = LossSignal::best_effort;
  row.clock = "none";
  return row;
}

Result<std::unique_ptr<engine::Engine>> open_session_locks(const Options& options,
                                                           const engine::EngineOptions& client) {
  Options lasting = options;
  // A dead line is noticed by the kernel, for nothing is said on it for hours.
  lasting.connection.try_emplace("keepalives", "1");
  lasting.connection.try_emplace("keepalives_idle", "10");
  lasting.connection.try_emplace("keepalives_interval", "5");
  lasting.connection.try_emplace("keepalives_count", "3");
  return relational::SessionLocks::open(
      std::make_unique<PostgresSessionStore>(lasting, client.party),
      {.capabilities = session_locks_row(options.strategy),
       .max_sessions = options.max_sessions,
       .timeout = options.timeout});
}

}  // namespace holdfast::engines::postgres
