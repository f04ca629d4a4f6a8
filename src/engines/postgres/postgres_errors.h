#pragma once

#include <holdfast/error.h>
#include <string_view>

// What the server's and libpq's complaints mean for a caller.
namespace holdfast::engines::postgres {

// A SQLSTATE as Error::native keeps it: its five characters in base 36.
constexpr int sqlstate(std::string_view state) {
  int value = 0;
  for (const char c : state) {
    value = value * 36 + (c >= '0' && c <= '9' ? c - '0' : c - 'A' + 10);
  }
  return value;
}

// The statement failed and was rolled back; unless the server was leaving, which
// makes it outcome_unknown.
Error server_error(std::string_view state, std::string_view message);
// libpq's message in its verbose form, which contains the SQLSTATE.
Error connect_error(std::string_view message);
Error lost_connection(ErrorCode code, std::string_view message);

// Passing trouble with other transactions: nothing was applied, try again.
bool is_contention(const Error& error) noexcept;
// The schema is not there, or not as we know it.
bool is_uninitialized(const Error& error) noexcept;

}  // namespace holdfast::engines::postgres
