#pragma once

#include <string>
#include <string_view>

// What several statements have in common. {s} is the schema.
namespace holdfast::engines::postgres {

std::string replaced(std::string text, std::string_view what, std::string_view by);

// The time, once a statement, and from it the least token of a grant.
inline constexpr std::string_view kTime =
    R"sql(c AS MATERIALIZED (SELECT n.now,
  least((extract(epoch FROM n.now) * 1000000)::bigint, 4503599627370496) AS floor{also}
  FROM (SELECT coalesce($1::timestamptz, clock_timestamp()) AS now) n))sql";

// For a row that may be new, and must then be above all that was forgotten.
inline constexpr std::string_view kTimeAndFloor =
    R"sql(c AS MATERIALIZED (SELECT n.now, greatest(
  least((extract(epoch FROM n.now) * 1000000)::bigint, 4503599627370496),
  (SELECT m.token_floor FROM {s}.meta m)) AS floor
  FROM (SELECT coalesce($1::timestamptz, clock_timestamp()) AS now) n))sql";

// Rows of `locks` as they are; postgres_sql.h counts the columns.
inline constexpr std::string_view kColumns =
    "l.token, l.ttl, c.now, c.floor, l.version, l.last_token, l.request, l.session, l.holder, "
    "l.host, l.pid, l.since, l.until, l.fenced, l.record, l.parties";

// A statement with all of that put in.
std::string completed(std::string_view text, std::string_view schema);

}  // namespace holdfast::engines::postgres
