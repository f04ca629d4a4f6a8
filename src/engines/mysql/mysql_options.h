#pragma once

#include <holdfast/error.h>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "base/time.h"
#include "engine/url.h"

namespace holdfast::engines {

struct MysqlOptions {
  enum class Tls : std::uint8_t { off, verify, unverified };

  std::string host;
  std::uint16_t port = 3306;
  std::string socket;  // instead of host and port
  std::string user;
  std::string password;
  std::string database;
  std::string prefix = "holdfast_";  // of our tables
  base::Duration timeout = std::chrono::seconds{5};
  // How far the clocks of a cluster's nodes may be apart.
  base::Duration max_skew{};
  // How long an unused name's row stays.
  base::Duration keep_idle = std::chrono::hours{1};
  Tls tls = Tls::off;
  std::string ca;         // a file; empty: the system's authorities
  bool doorbell = true;   // false: waiters poll
  bool returning = true;  // false: not even where the server has INSERT ... RETURNING

  // The classics.
  std::string strategy = "lease";
  std::string table;                                        // empty: the strategy's own
  std::map<std::string, std::string, std::less<>> columns;  // called otherwise than by default
  base::Duration period{};                                  // status: at most one run in this time
  base::Duration lock_at_least{};                           // shedlock: lockAtLeastFor
  std::uint64_t max_sessions = 16;  // row, upsert, advisory: locks held or awaited at a time

  std::string locks_table() const { return "`" + prefix + "locks`"; }
  std::string notes_table() const { return "`" + prefix + "notes`"; }
  std::string fences_table() const { return "`" + prefix + "fences`"; }
  std::string schema_table() const { return "`" + prefix + "schema`"; }

  // mysql://user@host:port/database?option=...
  static Result<MysqlOptions> from(const engine::Url& url);
};

}  // namespace holdfast::engines
