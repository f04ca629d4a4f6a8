#include "engines/postgres/postgres_session.h"

#include <libpq-fe.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/fork.h"
#include "engines/postgres/postgres_errors.h"

namespace holdfast::engines::postgres {
namespace {

using engine::Moment;
using engine::Talk;

// The server gives up a statement first, and says so: then we know that
// nothing was applied.
std::string statement_timeout(Duration timeout) {
  const auto time = std::chrono::duration_cast<std::chrono::milliseconds>(timeout * 3 / 4);
  return std::to_string(std::max<std::int64_t>(time.count(), 1)) + "ms";
}

// A pooler gives us its own process number in place of the server's. Settings
// would then stay with a connection that is not ours. A plan is made once, often while
// the table is small, and must still be good when it is large: by the index, row by row.
const std::string kIntroduction = R"sql(
SELECT pg_backend_pid(), CASE WHEN pg_backend_pid() = $1::int4 THEN
  set_config('search_path', 'pg_catalog', false)
  || set_config('default_transaction_isolation', 'read committed', false)
  || set_config('plan_cache_mode', 'force_generic_plan', false)
  || set_config('jit', 'off', false)  -- the one row of meta is scanned, at a price that calls for it
  || set_config('enable_seqscan', 'off', false)
  || set_config('enable_bitmapscan', 'off', false)
  || set_config('enable_hashjoin', 'off', false)
  || set_config('enable_mergejoin', 'off', false)
  || set_config('statement_timeout', $2::text, false)
  || CASE WHEN current_setting('idle_session_timeout', true) IS NULL THEN ''
     ELSE set_config('idle_session_timeout', '0', false) END
  || CASE current_setting('synchronous_commit')
     WHEN 'off' THEN set_config('synchronous_commit', 'on', false) ELSE '' END
END)sql";

std::string prepared_name(const std::string* sql) {
  return "h" + std::to_string(reinterpret_cast<std::uintptr_t>(sql));
}

}  // namespace

void Rows::Clear::operator()(pg_result* result) const noexcept {
  PQclear(result);
}

int Rows::size() const noexcept {
  return PQntuples(result_.get());
}

std::optional<std::string_view> Rows::at(int row, int column) const noexcept {
  if (PQgetisnull(result_.get(), row, column) != 0) {
    return std::nullopt;
  }
  return std::string_view{PQgetvalue(result_.get(), row, column),
                          static_cast<std::size_t>(PQgetlength(result_.get(), row, column))};
}

Session::Session(const Options& options)
    : options_{options}, generation_{base::fork_generation()}, patience_{options.timeout} {}

Session::~Session() {
  close();
}

void Session::close() noexcept {
  // In a forked child the connection is still the parent's: no goodbye on it.
  if (connection_ != nullptr && generation_ == base::fork_generation()) {
    PQfinish(connection_);
  }
  connection_ = nullptr;
  prepared_.clear();
}

// What comes unasked and is fatal is the server's goodbye.
void Session::on_notice(void* session, const pg_result* notice) {
  const char* severity = PQresultErrorField(notice, PG_DIAG_SEVERITY_NONLOCALIZED);
  if (severity != nullptr && std::string_view{severity} == "FATAL") {
    static_cast<Session*>(session)->leaving_ = true;
  }
}

bool Session::is_open() noexcept {
  // What a server says unasked is mostly that it is leaving: the news, then the end.
  for (int i = 0; i < 2 && connection_ != nullptr; ++i) {
    pollfd socket{.fd = PQsocket(connection_), .events = POLLIN, .revents = 0};
    if (socket.fd < 0 || PQstatus(connection_) != CONNECTION_OK) {
      close();
    } else if (poll(&socket, 1, 0) == 1) {
      if (PQconsumeInput(connection_) == 0 || PQisBusy(connection_) != 0 || leaving_) {
        close();
      }
    } else {
      break;
    }
  }
  return connection_ != nullptr;
}

int Session::server_version() const noexcept {
  return connection_ == nullptr ? 0 : PQserverVersion(connection_);
}

bool Session::has_tls() const noexcept {
  return connection_ != nullptr && PQsslInUse(connection_) != 0;
}

int Session::fd() const noexcept {
  return connection_ == nullptr ? -1 : PQsocket(connection_);
}

Talk<Result<void>> Session::connect() {
  close();
  const base::Time until = base::BootClock::now() + options_.timeout;
  // To resolve a name may block: not on the thread of somebody in a hurry.
  if (!(co_await Moment{{.until = base::BootClock::now()}})) {
    co_return tl::unexpected{gone(ErrorCode::unavailable)};
  }
  std::vector<const char*> keywords;
  std::vector<const char*> values;
  for (const auto& [key, value] : options_.connection) {
    keywords.push_back(key.c_str());
    values.push_back(value.c_str());
  }
  keywords.push_back(nullptr);
  values.push_back(nullptr);
  {
    const base::ForksWait until_here;  // GSSAPI's locks
    connection_ = PQconnectStartParams(keywords.data(), values.data(), 0);
  }
  if (connection_ == nullptr) {
    co_return tl::unexpected{gone(ErrorCode::unavailable)};
  }
  PQsetErrorVerbosity(connection_, PQERRORS_VERBOSE);  // has the SQLSTATE in it
  // Warnings of the server do not belong on the program's standard error.
  leaving_ = false;
  PQsetNoticeReceiver(connection_, &Session::on_notice, this);
  auto shaken = co_await shake_hands(until);
  if (!shaken) {
    close();
    co_return shaken;
  }
  PQsetErrorVerbosity(connection_, PQERRORS_DEFAULT);
  PQsetnonblocking(connection_, 1);
  PQenterPipelineMode(connection_);
  auto introduced = co_await introduce();
  if (!introduced) {
    close();
  }
  co_return introduced;
}

Talk<Result<void>> Session::shake_hands(base::Time until) {
  PostgresPollingStatusType next = PGRES_POLLING_WRITING;
  while (next != PGRES_POLLING_OK) {
    if (next == PGRES_POLLING_FAILED || PQstatus(connection_) == CONNECTION_BAD) {
      co_return tl::unexpected{connect_error(why())};
    }
    const short events = next == PGRES_POLLING_READING ? POLLIN : POLLOUT;
    const auto news =
        co_await Moment{{.fd = PQsocket(connection_), .events = events, .until = until}};
    if (!news) {
      co_return fail(ErrorCode::unavailable, "PostgreSQL: the client was closed meanwhile");
    }
    if (*news == 0 && base::BootClock::now() >= until) {
      co_return fail(ErrorCode::unavailable, "PostgreSQL does not answer: no connection in time");
    }
    if (*news != 0) {
      const base::ForksWait until_here;
      next = PQconnectPoll(connection_);
    }
  }
  co_return Result<void>{};
}

Talk<Result<void>> Session::introduce() {
  Call call{.sql = &kIntroduction};
  call.values.emplace_back(binary(static_cast<std::int32_t>(PQbackendPID(connection_))));
  call.values.emplace_back(statement_timeout(options_.timeout));
  pooled_ = true;  // nothing is prepared for a stranger's connection
  auto answer = co_await ask(std::move(call));
  if (!answer) {
    co_return tl::unexpected{answer.error().code == ErrorCode::outcome_unknown
                                 ? Error{ErrorCode::unavailable, answer.error().text, std::nullopt}
                                 : answer.error()};
  }
  const bool direct = answer->size() == 1 && answer->integer(0, 0) == PQbackendPID(connection_);
  switch (options_.pooler) {
    case Pooler::detect:
      pooled_ = !direct;
      break;
    case Pooler::transaction:
      break;
    case Pooler::none:
    case Pooler::session:
      pooled_ = false;
      break;
  }
  has_our_settings_ = direct && !pooled_;
  co_return Result<void>{};
}

Talk<Result<Rows>> Session::ask(Call call) {
  std::vector<Call> calls;
  calls.push_back(std::move(call));
  auto results = co_await exchange(std::move(calls));
  co_return std::move(results.front());
}

bool Session::send(const Call& call) {
  std::vector<const char*> values;
  std::vector<int> lengths;
  for (const Bytes& value : call.values) {
    values.push_back(value ? value->data() : nullptr);
    lengths.push_back(value ? static_cast<int>(value->size()) : 0);
  }
  const std::vector<int> formats(values.size(), 1);
  const auto count = static_cast<int>(values.size());
  if (pooled_) {
    return PQsendQueryParams(connection_, call.sql->c_str(), count, nullptr, values.data(),
                             lengths.data(), formats.data(), 1) == 1;
  }
  const std::string name = prepared_name(call.sql);
  if (prepared_.insert(call.sql).second) {
    preparing_.back() = call.sql;
    if (PQsendPrepare(connection_, name.c_str(), call.sql->c_str(), 0, nullptr) != 1) {
      return false;
    }
  }
  return PQsendQueryPrepared(connection_, name.c_str(), count, values.data(), lengths.data(),
                             formats.data(), 1) == 1;
}

bool Session::send(const std::vector<Call>& calls) {
  preparing_.clear();
  return std::all_of(calls.begin(), calls.end(), [&](const Call& call) {
    preparing_.push_back(nullptr);
    return send(call) && PQpipelineSync(connection_) == 1;
  });
}

// Until there is something to read, sending what is left meanwhile.
Talk<Result<void>> Session::await_input(base::Time until) {
  const int unsent = PQflush(connection_);
  if (unsent < 0) {
    co_return tl::unexpected{gone(ErrorCode::outcome_unknown)};
  }
  const short events = unsent > 0 ? POLLIN | POLLOUT : POLLIN;
  const auto news =
      co_await Moment{{.fd = PQsocket(connection_), .events = events, .until = until}};
  if (!news) {
    co_return fail(ErrorCode::outcome_unknown, "PostgreSQL: the client was closed meanwhile");
  }
  if (*news == 0 && base::BootClock::now() >= until) {
    co_return fail(ErrorCode::outcome_unknown, "PostgreSQL did not answer in time");
  }
  if ((*news & ~POLLOUT) != 0 && PQconsumeInput(connection_) == 0) {
    co_return tl::unexpected{gone(ErrorCode::outcome_unknown)};
  }
  co_return Result<void>{};
}

Talk<std::vector<Result<Rows>>> Session::exchange(std::vector<Call> calls) {
  std::vector<Result<Rows>> results;
  const base::Time until = base::BootClock::now() + patience_;
  std::optional<Error> broken;
  std::optional<Result<Rows>> current;
  if (!send(calls)) {
    broken = gone(ErrorCode::outcome_unknown);
  }
  while (!broken && results.size() < calls.size()) {
    if (PQisBusy(connection_) != 0) {
      if (auto arrived = co_await await_input(until); !arrived) {
        broken = arrived.error();
      }
      continue;
    }
    pg_result* result = PQgetResult(connection_);
    if (result == nullptr) {
      if (PQstatus(connection_) == CONNECTION_BAD) {
        broken = gone(ErrorCode::outcome_unknown);
      }
    } else if (PQresultStatus(result) == PGRES_PIPELINE_SYNC) {
      PQclear(result);
      auto last = std::exchange(current, std::nullopt);
      results.push_back(last ? *std::move(last) : Result<Rows>{Rows{nullptr}});
    } else {
      auto taken = take_result(result);
      if (taken && !current) {
        preparing_[results.size()] = nullptr;  // the first answer is to the preparation
      }
      if (taken || !current || *current) {
        current = std::move(taken);  // the first error counts
      }
    }
  }
  if (broken) {
    if (current && !*current && current->error().text.size() > broken->text.size()) {
      broken->text = current->error().text;  // the server's last words
    }
    while (results.size() < calls.size()) {
      results.emplace_back(tl::unexpected{*broken});
    }
    close();
  }
  for (const std::string* sql : preparing_) {
    prepared_.erase(sql);  // it could not be
  }
  co_return results;
}

Result<Rows> Session::take_result(pg_result* result) {
  Rows rows{result};
  const ExecStatusType status = PQresultStatus(result);
  if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
    return rows;
  }
  if (status == PGRES_PIPELINE_ABORTED) {
    return fail(ErrorCode::unavailable, "an earlier statement failed");
  }
  const char* state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const char* text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  return tl::unexpected{
      server_error(state == nullptr ? "" : state, text == nullptr ? why() : text)};
}

Talk<Result<void>> Session::run_script(std::string script) {
  const base::Time until = base::BootClock::now() + options_.timeout;
  Result<void> outcome;
  PQexitPipelineMode(connection_);
  if (PQsendQuery(connection_, script.c_str()) != 1) {
    outcome = tl::unexpected{gone(ErrorCode::outcome_unknown)};
    close();
  }
  while (connection_ != nullptr) {
    if (PQisBusy(connection_) != 0) {
      if (auto arrived = co_await await_input(until); !arrived) {
        outcome = arrived;
        close();
      }
      continue;
    }
    pg_result* result = PQgetResult(connection_);
    if (result == nullptr) {
      break;
    }
    if (auto taken = take_result(result); !taken && outcome) {
      outcome = tl::unexpected{taken.error()};
    }
  }
  if (connection_ != nullptr) {
    PQenterPipelineMode(connection_);
  }
  co_return outcome;
}

bool Session::take_notices(std::vector<Notice>& notices) {
  if (connection_ == nullptr || PQconsumeInput(connection_) == 0) {
    return false;
  }
  while (PGnotify* notify = PQnotifies(connection_)) {
    notices.push_back({.channel = notify->relname, .payload = notify->extra});
    PQfreemem(notify);
  }
  return PQstatus(connection_) == CONNECTION_OK && !leaving_;
}

Result<std::map<std::string, std::string>> Session::parse_keywords(const std::string& conninfo) {
  char* problem = nullptr;
  PQconninfoOption* parsed = PQconninfoParse(conninfo.c_str(), &problem);
  if (parsed == nullptr) {
    PQfreemem(problem);  // it may quote a password
    return fail(
        ErrorCode::invalid_argument,
        "malformed keywords of a PostgreSQL connection; write host=... dbname=... user=...");
  }
  std::map<std::string, std::string> found;
  for (const PQconninfoOption* option = parsed; option->keyword != nullptr; ++option) {
    if (option->val != nullptr) {
      found.emplace(option->keyword, option->val);
    }
  }
  PQconninfoFree(parsed);
  return found;
}

std::string Session::why() const {
  return connection_ == nullptr ? "" : PQerrorMessage(connection_);
}

Error Session::gone(ErrorCode code) {
  return lost_connection(code, why());
}

}  // namespace holdfast::engines::postgres
