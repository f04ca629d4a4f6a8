#pragma once

#include <holdfast/error.h>
#include <holdfast/job_table.h>
#include <cstdint>
#include <string_view>

struct st_mysql;

// The user's connection, and the user's patience: these calls block.
namespace holdfast::engines {

enum class SkipLocked : std::uint8_t { no, yes };

// MySQL 8.0.1 and MariaDB 10.6 have it.
SkipLocked skips_locked(st_mysql* connection);

Result<ClaimedJobs> claim_jobs(st_mysql* connection, const JobTable& table, std::uint32_t at_most,
                               SkipLocked how);
Result<void> complete_job(st_mysql* connection, const JobTable& table, std::string_view claim,
                          std::string_view key, std::string_view status);

}  // namespace holdfast::engines
