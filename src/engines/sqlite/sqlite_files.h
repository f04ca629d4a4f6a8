#pragma once

#include <holdfast/error.h>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engines/sqlite/sqlite_options.h"

// What the database asks of the file system around it. Nothing here opens the
// database itself: closing any descriptor of it would drop SQLite's locks.
namespace holdfast::engines {

// The name of the file system if locks and shared memory on it do not hold
// between all who can reach it, by statfs(2)'s f_type.
std::optional<std::string_view> unsafe_file_system(std::uint64_t f_type, bool allow_fuse) noexcept;

// For people: "ext4", "tmpfs", or the number.
std::string file_system_name(const std::string& path);

// Checks the place and makes path absolute and free of links.
// invalid_argument, unauthorized, unsupported.
Result<SqliteOptions> locate(SqliteOptions options);

// An empty file that only its owner can read, unless there is a file already.
Result<void> create_if_missing(const std::string& path);

Result<std::string> kernel_boot_id();

}  // namespace holdfast::engines
