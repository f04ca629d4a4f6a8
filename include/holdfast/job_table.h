#pragma once

#include <holdfast/options.h>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace holdfast {

// A table of jobs of the user's own: what claim() in <holdfast/mysql.h> and
// <holdfast/postgres.h> needs to know of it. An index on (status, key) spares
// the server a scan.
struct JobTable {
  std::string table;       // "jobs", or with its schema: "shop.jobs"
  std::string key = "id";  // the column that tells rows apart
  std::string status = "status";
  std::string open = "open";    // the status of rows that are to be had
  std::string taken = "taken";  // what they get
  // A text column of at least 32 characters: which call took the row.
  std::string claimed_by = "claimed_by";
  // A column for the time (timestamptz; DATETIME(6), in UTC); empty: none.
  std::string claimed_at = {};
  // Rows that were taken longer ago than this are to be had again: their
  // worker died. Needs claimed_at. By the server's clock.
  std::optional<Duration> again_after = std::nullopt;
};

inline constexpr std::uint32_t kMaxJobsAtOnce = 1000;

struct ClaimedJobs {
  std::string claim;              // stands in claimed_by
  std::vector<std::string> keys;  // as text
};

}  // namespace holdfast
