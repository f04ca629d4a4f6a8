#pragma once

#include <holdfast/error.h>
#include <holdfast/inspect.h>
#include <memory>
#include <string>
#include <string_view>

#include "engine/engine.h"
#include "engines/postgres/postgres_options.h"

namespace holdfast::engines::postgres {

// strategy=row and strategy=advisory: the server's own locks.
Capabilities session_locks_row(Strategy strategy);
Result<std::unique_ptr<engine::Engine>> open_session_locks(const Options& options,
                                                           const engine::EngineOptions& client);

// The statements of one kind of session lock.
class SessionLockSql {
 private:
  std::string schema_;
  std::string table_;  // whose rows strategy=row locks

 public:
  explicit SessionLockSql(const Options& options);

  std::string create;
  std::string settle;   // $1 beacon: this session is to last; its number
  std::string know;     // $1 name: its hash; nothing if another name has that
  std::string add_row;  // $1 name: where the row is in a table of the user's own; else empty

  // $1: the hash, or for `row` the name. One row: got it, there is something to lock.
  std::string try_exclusive;
  std::string try_shared;
  std::string wait_exclusive;
  std::string wait_shared;
  // Empty where a transaction is the lock.
  std::string free_exclusive;
  std::string free_shared;

  std::string write;      // $1 request, $2 name, $3 waiting, $4 shared, $5 ttl, $6 label, $7 host,
                          // $8 process, $9 connection, $10 beacon
  std::string strike;     // $1 requests
  std::string look;       // $1 connections, $2 beacons: those that live
  std::string revoked;    // $1 requests: those that are revoked
  std::string interrupt;  // $1 connection, $2 beacon
  std::string is_revoked;
  std::string revoke;
  std::string terminate;  // connections and beacons that were told to end
  std::string find;       // $1 prefix
  std::string tidy;
  std::string forget_names;

 private:
  std::string filled(std::string_view text) const;
  void keep_books();
  void end_others();
  void lock_rows();
  void lock_numbers(Scope scope);
};

}  // namespace holdfast::engines::postgres
