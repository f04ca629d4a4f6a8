#pragma once

#include <holdfast/error.h>
#include <holdfast/job_table.h>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::engines {

// A job table whose identifiers are checked and quoted.
struct QuotedJobTable {
  std::string table;
  std::string key;
  std::string status;
  std::string claimed_by;
  std::string claimed_at;  // empty: none
};

struct QuotingRules {
  char quote;                // doubled inside
  std::size_t longest_name;  // in bytes
};
inline constexpr QuotingRules kMysqlQuoting{'`', 64};
inline constexpr QuotingRules kPostgresQuoting{'"', 63};

// invalid_argument names the field.
Result<QuotedJobTable> quote(const JobTable& table, const QuotingRules& rules);
Result<void> check_count(std::uint32_t at_most);

}  // namespace holdfast::engines
