#pragma once

#include <holdfast/error.h>
#include <holdfast/options.h>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>

#include "engine/url.h"

namespace holdfast::engines::postgres {

enum class Strategy : std::uint8_t { lease, row, advisory, shedlock };

// What stands between us and the server.
enum class Pooler : std::uint8_t {
  detect,  // by comparing process numbers; what is found counts as `transaction`
  none,
  session,      // one server connection a client connection: as good as none
  transaction,  // another one each time: no LISTEN, no session locks, nothing prepared
};

// strategy=advisory: what frees the lock by itself.
enum class Scope : std::uint8_t { session, transaction };

struct Options {
  // For libpq: keyword -> value. What is not here it takes from the PG*
  // environment, a service file and its defaults.
  std::map<std::string, std::string> connection;

  Strategy strategy = Strategy::lease;
  std::string schema = "holdfast";
  // To connect, and for one statement.
  Duration timeout = std::chrono::seconds{5};
  Pooler pooler = Pooler::detect;

  // strategy=row, advisory: sessions that may hold a lock at the same time.
  std::uint64_t max_sessions = 16;
  Scope scope = Scope::session;
  // strategy=row and shedlock, in `schema`: the table. Empty: our own.
  std::string table;
  // ShedLock's lockAtLeastFor.
  Duration lock_at_least{};

  static Result<Options> from(const engine::Url& url);
};

}  // namespace holdfast::engines::postgres
