#include "engines/mysql/mysql_session_locks.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "base/ids.h"
#include "engines/mysql/mysql_line.h"
#include "engines/relational/odd_bytes.h"
#include "engines/relational/session_locks.h"

namespace holdfast::engines {
namespace {

using engine::Talk;
using relational::Books;
using relational::Identity;
using relational::LockSession;
using relational::unescaped;
using relational::Wanted;
using namespace std::chrono_literals;

// The server ends a wait first.
constexpr base::Duration kLongestWait = 40s;
constexpr int kOldestVersion = 50705;  // before, a second GET_LOCK freed the first

struct Shared {
  MysqlOptions options;
  MysqlSessionSql sql;
};

std::int64_t number(const MysqlReply::Cell& cell) {
  return cell ? std::strtoll(std::string{*cell}.c_str(), nullptr, 10) : 0;
}

class MysqlLockSession : public LockSession {
 public:
  explicit MysqlLockSession(std::shared_ptr<const Shared> shared)
      : shared_{std::move(shared)}, line_{shared_->options} {}

  Talk<Result<void>> connect() override {
    auto connected = co_await line_.connect();
    if (!connected) {
      co_return connected;
    }
    // Positive, so that it is written in one way only.
    identity_.beacon = static_cast<std::int64_t>(base::random_u64() >> 1U);
    auto settled =
        co_await line_.ask(shared_->sql.settle(identity_.beacon), shared_->options.timeout);
    if (settled) {
      identity_.connection = number(line_.last().cell(0, 1));
    }
    co_return settled;
  }
  bool is_open() override { return line_.is_open(); }
  int fd() const override { return line_.fd(); }
  void close() override { line_.close(); }
  Identity identity() const override { return identity_; }

  Talk<Result<Got>> try_lock(Wanted wanted) override {
    co_return co_await lock(shared_->sql.try_lock(wanted, line_.server_version()),
                            shared_->options.timeout, wanted);
  }
  Talk<Result<Got>> await_lock(Wanted wanted) override {
    const auto ready = co_await line_.ask(shared_->sql.before_await(), shared_->options.timeout);
    if (!ready) {
      const bool interrupted =
          line_.trouble() && trouble_of(*line_.trouble()) == MysqlTrouble::collision;
      co_return interrupted ? Result<Got>{Got::nothing} : tl::unexpected{ready.error()};
    }
    co_return co_await lock(shared_->sql.await_lock(wanted), kLongestWait, wanted);
  }
  Talk<Result<void>> free(Wanted wanted) override {
    // A second time if an interruption, meant for the wait, hit it.
    auto freed = co_await line_.ask(shared_->sql.free(wanted), shared_->options.timeout);
    if (!freed && line_.trouble() && trouble_of(*line_.trouble()) == MysqlTrouble::collision) {
      freed = co_await line_.ask(shared_->sql.free(wanted), shared_->options.timeout);
    }
    co_return freed;
  }

 private:
  // A transaction stays open if, and only if, we got it.
  Talk<Result<Got>> lock(std::string packet, base::Duration timeout, Wanted wanted) {
    const auto asked = co_await line_.ask(std::move(packet), timeout);
    if (!asked && (!line_.trouble() || trouble_of(*line_.trouble()) != MysqlTrouble::collision)) {
      co_return tl::unexpected{asked.error()};
    }
    const bool any = asked && line_.last().rows() > 0;
    const bool got =
        shared_->sql.answers() ? any && number(line_.last().cell(0, 0)) == 1 : asked.has_value();
    if (got) {
      co_return Got::lock;
    }
    // What was interrupted may have got it all the same.
    const auto freed = co_await free(wanted);
    if (!freed) {
      co_return tl::unexpected{freed.error()};
    }
    co_return asked && !any ? Got::no_row : Got::nothing;
  }

  const std::shared_ptr<const Shared> shared_;
  MysqlLine line_;
  Identity identity_;
};

class MysqlBooks : public Books {
 public:
  explicit MysqlBooks(std::shared_ptr<const Shared> shared)
      : shared_{std::move(shared)}, sql_{shared_->sql}, line_{shared_->options, [this] {
                                                                return sql_.create();
                                                              }} {}

  Talk<Result<void>> admit() override;

  Talk<Result<Wanted>> know(Wanted wanted) override {
    if (std::string packet = sql_.know(wanted); !packet.empty()) {
      const auto made = co_await ask(std::move(packet));
      if (!made && !(line_.trouble() && is_lock_wait(*line_.trouble()))) {
        co_return tl::unexpected{made.error()};
      }
    }
    co_return wanted;
  }
  Talk<Result<void>> write(Note note) override { co_return co_await ask(sql_.write(note)); }
  Talk<Result<void>> strike(std::vector<core::RequestId> requests) override {
    co_return co_await ask(sql_.strike(requests));
  }

  Talk<Result<std::vector<Standing>>> look(
      std::vector<std::pair<core::RequestId, Identity>> holds) override {
    const auto asked = co_await ask(sql_.look(holds));
    if (!asked) {
      co_return tl::unexpected{asked.error()};
    }
    std::vector<Standing> standings(holds.size());
    const MysqlReply& alive = line_.replies().front();
    const MysqlReply& revoked = line_.replies().back();
    for (std::size_t i = 0; i < holds.size(); ++i) {
      standings[i].alive = number(alive.cell(0, i)) == 1;
      const auto& id = holds[i].first.bytes;
      for (std::size_t row = 0; row < revoked.rows(); ++row) {
        const std::string_view found = revoked.cell(row, 0).value_or("");
        standings[i].revoked |=
            std::equal(found.begin(), found.end(), id.begin(), id.end(),
                       [](char a, std::uint8_t b) { return static_cast<std::uint8_t>(a) == b; });
      }
    }
    co_return standings;
  }

  Talk<Result<bool>> is_revoked(std::string) override { co_return false; }  // none are shared

  Talk<Result<void>> interrupt(Identity session) override {
    co_return co_await end(session, "KILL QUERY ");
  }

  Talk<Result<std::uint32_t>> revoke(std::string key, core::Revoke how) override;
  Talk<Result<std::vector<LockInfo>>> find(std::string prefix) override;
  Talk<Result<void>> create() override { co_return co_await ask(sql_.create()); }
  Talk<Result<void>> tidy() override;
  Talk<std::vector<Finding>> examine() override;

 private:
  // All that is asked here may be asked again: a lost answer is no mystery.
  Talk<Result<void>> ask(std::string packet) {
    co_return co_await line_.insist(std::move(packet), MysqlLine::Repeat::harmless);
  }
  Talk<Result<bool>> lives(Identity session);
  // Never a stranger: numbers start again when the server does.
  Talk<Result<void>> end(Identity session, std::string how) {
    const auto alive = co_await lives(session);
    if (!alive) {
      co_return tl::unexpected{alive.error()};
    }
    if (*alive) {
      // It may be gone by now: then there is nothing to do.
      co_await line_.ask(how + std::to_string(session.connection), shared_->options.timeout);
    }
    co_return Result<void>{};
  }

  const std::shared_ptr<const Shared> shared_;
  const MysqlSessionSql& sql_;
  MysqlLine line_;
};

// Each node of a Galera cluster has locks of its own: they exclude nobody on
// another.
Talk<Result<void>> MysqlBooks::admit() {
  const auto asked = co_await ask("SHOW VARIABLES LIKE 'wsrep_on'");
  if (!asked) {
    co_return asked;
  }
  const MysqlReply& reply = line_.last();
  if (reply.rows() > 0 && reply.cell(0, 1).value_or("") == "ON") {
    co_return fail(ErrorCode::unsupported,
                   "in a Galera cluster each node grants its own session locks, so two may hold "
                   "one; use strategy=lease");
  }
  const std::string version = line_.server_version();
  int parts[3]{};
  const char* at = version.data();
  const char* const end = version.data() + version.size();
  for (int& part : parts) {
    at = std::from_chars(at, end, part).ptr;
    at += at != end ? 1 : 0;
  }
  if (parts[0] * 10000 + parts[1] * 100 + parts[2] < kOldestVersion) {
    co_return fail(ErrorCode::unsupported,
                   "a session of this server has one user lock at most; MySQL 5.7.5 or MariaDB "
                   "10.0.2 is needed, or strategy=lease");
  }
  co_return Result<void>{};
}

Talk<Result<bool>> MysqlBooks::lives(Identity session) {
  const auto asked = co_await ask("SELECT " + MysqlSessionSql::is_alive(session));
  if (!asked) {
    co_return tl::unexpected{asked.error()};
  }
  co_return number(line_.last().cell(0, 0)) == 1;
}

Talk<Result<std::uint32_t>> MysqlBooks::revoke(std::string key, core::Revoke how) {
  std::string packet = sql_.holders(key);
  const auto asked = co_await ask(std::move(packet));
  if (!asked) {
    co_return tl::unexpected{asked.error()};
  }
  std::vector<Identity> holders;
  for (std::size_t i = 0; i < line_.last().rows(); ++i) {
    holders.push_back(
        {.connection = number(line_.last().cell(i, 0)), .beacon = number(line_.last().cell(i, 1))});
  }
  if (!how.now && !holders.empty()) {
    const auto marked = co_await ask(sql_.revoke(key));
    if (!marked) {
      co_return tl::unexpected{marked.error()};
    }
  }
  const base::Time until = base::BootClock::now() + shared_->options.timeout;
  for (const Identity& holder : how.now ? holders : std::vector<Identity>{}) {
    co_await end(holder, "KILL CONNECTION ");
    while (base::BootClock::now() < until) {  // it needs a moment
      const auto alive = co_await lives(holder);
      if (!alive || !*alive) {
        break;
      }
      const auto rested = co_await engine::Moment{{.until = base::BootClock::now() + 1ms}};
      if (!rested) {
        break;
      }
    }
  }
  co_return static_cast<std::uint32_t>(holders.size());
}

Talk<Result<std::vector<LockInfo>>> MysqlBooks::find(std::string prefix) {
  // Spaces at the end are written in another way.
  const std::string searched = prefix.substr(0, prefix.find_last_not_of(' ') + 1);
  const auto asked = co_await ask(sql_.find(searched));
  if (!asked) {
    co_return tl::unexpected{asked.error()};
  }
  const MysqlReply& rows = line_.last();
  const auto text = [&](std::size_t row, std::size_t column) {
    return unescaped(rows.cell(row, column).value_or(""));
  };
  const auto micros = [&](std::size_t row, std::size_t column) -> base::Duration {
    return std::chrono::microseconds{std::max<std::int64_t>(number(rows.cell(row, column)), 0)};
  };
  std::map<std::string, LockInfo> found;
  for (std::size_t i = 0; i < rows.rows(); ++i) {
    LockInfo& info = found[text(i, 0)];
    const Party party{.label = text(i, 5), .host = text(i, 6), .pid = number(rows.cell(i, 7))};
    if (number(rows.cell(i, 1)) != 0) {
      info.queue.push_back({.party = party, .waiting_for = micros(i, 3)});
      continue;
    }
    HolderInfo holder;
    holder.party = party;
    holder.held_for = micros(i, 3);
    holder.expires_in = micros(i, 4);
    holder.revoked = number(rows.cell(i, 2)) != 0;
    info.holders.push_back(std::move(holder));
  }
  std::vector<LockInfo> all;
  for (auto& [name, info] : found) {
    if (name.starts_with(unescaped(prefix))) {
      info.name = name;
      all.push_back(std::move(info));
    }
  }
  co_return all;
}

// Notes of the dead, and rows of names that nobody uses: one that is wanted
// again meanwhile is made again.
Talk<Result<void>> MysqlBooks::tidy() {
  const auto swept = co_await ask(sql_.tidy());
  if (!swept || !sql_.owns_rows()) {
    co_return swept;
  }
  const auto found = co_await ask(sql_.unused_names());
  if (!found) {
    co_return found;
  }
  std::vector<std::string> names;
  for (std::size_t i = 0; i < line_.last().rows(); ++i) {
    names.emplace_back(line_.last().cell(i, 0).value_or(""));
  }
  for (const std::string& name : names) {
    // Where somebody locks the row after all, it stays.
    co_await line_.ask(sql_.forget_name(name), shared_->options.timeout);
  }
  co_return Result<void>{};
}

Talk<std::vector<Finding>> MysqlBooks::examine() {
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

class MysqlSessionStore : public relational::SessionStore {
 public:
  MysqlSessionStore(const MysqlOptions& options, const Party& party)
      : shared_{std::make_shared<Shared>(
            Shared{.options = options, .sql = MysqlSessionSql{options, party}})} {}

  std::unique_ptr<LockSession> session() override {
    return std::make_unique<MysqlLockSession>(shared_);
  }
  std::unique_ptr<Books> books() override { return std::make_unique<MysqlBooks>(shared_); }
  std::string script() const override { return shared_->sql.create() + ";\n"; }

 private:
  const std::shared_ptr<const Shared> shared_;
};

}  // namespace

bool is_session_strategy(std::string_view strategy) {
  return std::find(kMysqlSessionStrategies.begin(), kMysqlSessionStrategies.end(), strategy) !=
         kMysqlSessionStrategies.end();
}

Capabilities mysql_session_locks_row(std::string_view strategy) {
  Capabilities row;
  row.engine = "mysql";
  row.strategy = strategy;
  row.exclusion = ExclusionBy::session;
  row.lease = false;
  row.token = TokenKind::none;
  row.fifo = false;
  row.wake_up = WakeUp::event;
  row.shared = false;
  row.permits = false;
  row.loss_signal = LossSignal::best_effort;
  row.clock = "none";
  return row;
}

Result<std::unique_ptr<engine::Engine>> open_mysql_session_locks(
    const MysqlOptions& options, const engine::EngineOptions& client) {
  return relational::SessionLocks::open(std::make_unique<MysqlSessionStore>(options, client.party),
                                        {.capabilities = mysql_session_locks_row(options.strategy),
                                         .max_sessions = options.max_sessions,
                                         .timeout = options.timeout});
}

}  // namespace holdfast::engines
