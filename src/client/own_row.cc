// Rows of the user's own tables, on the user's own connections.
#include <holdfast/mysql.h>
#include <holdfast/postgres.h>
#include <string>

#include "engine/registry.h"

namespace holdfast {
namespace {

Result<WriteOutcome> update(std::string_view scheme, void* connection, const RowUpdate& wanted) {
  if (connection == nullptr) {
    return fail(ErrorCode::invalid_argument, "there is no connection to use");
  }
  for (const engine::Registration& each : engine::registrations()) {
    if (each.scheme == scheme && each.update_row != nullptr) {
      return each.update_row(connection, wanted).map([&](bool changed) {
        return WriteOutcome{
            .stored = changed,
            .version = changed ? static_cast<std::uint64_t>(wanted.expected) + 1 : 0};
      });
    }
  }
  return fail(ErrorCode::unsupported,
              "this holdfast was built without " + std::string{scheme} + "; build it in");
}

}  // namespace

Result<WriteOutcome> mysql::update_row(st_mysql* connection, const RowUpdate& update) {
  return holdfast::update("mysql", connection, update);
}

Result<WriteOutcome> postgres::update_row(pg_conn* connection, const RowUpdate& update) {
  return holdfast::update("postgres", connection, update);
}

}  // namespace holdfast
