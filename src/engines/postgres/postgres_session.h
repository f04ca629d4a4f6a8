#pragma once

#include <holdfast/error.h>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "engine/talk.h"
#include "engines/postgres/postgres_options.h"
#include "engines/postgres/postgres_values.h"

struct pg_conn;
struct pg_result;

// The only door to libpq.
namespace holdfast::engines::postgres {

// The rows of one statement, in binary form.
class Rows {
 public:
  explicit Rows(pg_result* result) noexcept : result_{result} {}

  int size() const noexcept;
  std::optional<std::string_view> at(int row, int column) const noexcept;  // nullopt: NULL

  bool has(int row, int column) const noexcept { return at(row, column).has_value(); }
  std::string_view text(int row, int column) const noexcept { return at(row, column).value_or(""); }
  std::int64_t integer(int row, int column) const noexcept { return to_int(text(row, column)); }

 private:
  struct Clear {
    void operator()(pg_result* result) const noexcept;
  };
  std::unique_ptr<pg_result, Clear> result_;
};

// One statement, a transaction of its own. `sql` must live as long as the
// session: its address is the name under which it is prepared.
struct Call {
  const std::string* sql = nullptr;
  std::vector<Bytes> values = {};
};

struct Notice {
  std::string channel;
  std::string payload;
};

// One connection. Used by one conversation at a time. Nothing here blocks but
// the resolving of host names.
//
// Errors: `unavailable` and `unauthorized` if the statement was rolled back or
// never sent, `outcome_unknown` if its answer did not come.
class Session {
 public:
  explicit Session(const Options& options);
  ~Session();  // says goodbye, but for a forked child
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Connected, as far as one can tell without asking.
  bool is_open() noexcept;
  bool is_pooled() const noexcept { return pooled_; }
  // Then it plans by the index alone, and rows are locked in the order in which they are named.
  bool has_our_settings() const noexcept { return has_our_settings_; }
  int server_version() const noexcept;
  bool has_tls() const noexcept;
  int fd() const noexcept;

  engine::Talk<Result<void>> connect();
  void close() noexcept;
  // How long the answer to a statement may take, from now on; the server's
  // own limit is another matter.
  void set_patience(Duration patience) noexcept { patience_ = patience; }

  // All calls in one round trip, each its own transaction.
  engine::Talk<std::vector<Result<Rows>>> exchange(std::vector<Call> calls);
  engine::Talk<Result<Rows>> ask(Call call);
  // Several statements in one transaction, with neither values nor rows.
  engine::Talk<Result<void>> run_script(std::string script);

  // For the doorbell. False: the connection is gone.
  bool take_notices(std::vector<Notice>& notices);

  // As a conninfo string names things; invalid_argument.
  static Result<std::map<std::string, std::string>> parse_keywords(const std::string& conninfo);

 private:
  engine::Talk<Result<void>> shake_hands(base::Time until);
  engine::Talk<Result<void>> introduce();
  bool send(const std::vector<Call>& calls);
  bool send(const Call& call);
  engine::Talk<bool> flush(base::Time until);
  engine::Talk<Result<void>> await_input(base::Time until);
  Result<Rows> take_result(pg_result* result);
  Error gone(ErrorCode code);
  static void on_notice(void* session, const pg_result* notice);
  std::string why() const;

  const Options& options_;
  const std::uint64_t generation_;
  Duration patience_;
  pg_conn* connection_ = nullptr;
  bool pooled_ = false;
  bool has_our_settings_ = false;
  bool leaving_ = false;
  std::set<const std::string*> prepared_;
  std::vector<const std::string*> preparing_;  // by calls on their way; nullptr: nothing
};

}  // namespace holdfast::engines::postgres
