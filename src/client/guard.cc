// Leases checked in the user's own transaction.
#include <holdfast/mysql.h>
#include <holdfast/postgres.h>
#include <utility>

#include "client/service.h"

namespace holdfast {
namespace client {

class Guard {
 public:
  // The engine of a lease that holds something, its name and its token.
  template <typename Use>
  static auto with(const Lease& lease, Use use)
      -> decltype(use(std::declval<engine::Engine&>(), lease.name(), std::uint64_t{})) {
    if (!lease) {
      return fail(ErrorCode::invalid_argument,
                  "this lease holds nothing: it is empty, released or moved from");
    }
    if (!lease.token()) {
      return fail(ErrorCode::unsupported, "only a lease with a token can be checked");
    }
    return lease.handle_->engine().and_then(
        [&](engine::Engine* engine) { return use(*engine, lease.name(), *lease.token()); });
  }

  static Result<void> run(const Lease& lease, const engine::NativeConnection& connection,
                          engine::AfterGuard after) {
    if (connection.handle == nullptr) {
      return fail(ErrorCode::invalid_argument, "there is no connection to guard");
    }
    return with(lease, [&](engine::Engine& engine, const std::string& name, std::uint64_t token) {
      return engine.guard(name, token, connection, after);
    });
  }
};

}  // namespace client

Result<std::string> Lease::fence_sql() const {
  return client::Guard::with(
      *this, [](engine::Engine& engine, const std::string& name, std::uint64_t token) {
        return engine.fence_sql(name, token);
      });
}

namespace mysql {

Result<void> guard(const Lease& lease, st_mysql* connection) {
  return client::Guard::run(lease, {.type = "MYSQL", .handle = connection},
                            engine::AfterGuard::go_on);
}

Result<void> guarded_commit(const Lease& lease, st_mysql* connection) {
  return client::Guard::run(lease, {.type = "MYSQL", .handle = connection},
                            engine::AfterGuard::commit);
}

}  // namespace mysql

namespace postgres {

Result<void> guard(const Lease& lease, pg_conn* connection) {
  return client::Guard::run(lease, {.type = "PGconn", .handle = connection},
                            engine::AfterGuard::go_on);
}

Result<void> guarded_commit(const Lease& lease, pg_conn* connection) {
  return client::Guard::run(lease, {.type = "PGconn", .handle = connection},
                            engine::AfterGuard::commit);
}

}  // namespace postgres
}  // namespace holdfast
