#pragma once

#include <holdfast/error.h>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/engine.h"

struct pg_conn;

namespace holdfast::engines::postgres {

// The condition of Engine::fence_sql(). `key`: the name as the table has it.
std::string fence_condition(std::string_view schema, std::string_view key, std::uint64_t token);

// Checks the condition in the transaction of the caller's own connection.
Result<void> guard_transaction(pg_conn* connection, const std::string& condition,
                               engine::AfterGuard after);
void roll_back(pg_conn* connection);

}  // namespace holdfast::engines::postgres
