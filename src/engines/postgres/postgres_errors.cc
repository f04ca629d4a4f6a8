#include "engines/postgres/postgres_errors.h"

#include <algorithm>
#include <array>
#include <string>

namespace holdfast::engines::postgres {
namespace {

bool is_state(std::string_view text) {
  return text.size() == 5 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z');
         });
}

std::string_view first_line(std::string_view message) {
  return message.substr(0, message.find('\n'));
}

ErrorCode code_of(std::string_view state) {
  if (state.starts_with("28") || state == "42501") {
    return ErrorCode::unauthorized;
  }
  // It goes away in the middle of our statement: perhaps after the commit.
  if (state.starts_with("08") || state == "57P01" || state == "57P02") {
    return ErrorCode::outcome_unknown;
  }
  return ErrorCode::unavailable;
}

std::string advice_for(std::string_view state) {
  if (state == "42P01" || state == "3F000" || state == "42703") {
    return "; run `holdfast init` for this store";
  }
  if (state == "25006") {
    return "; this server only reads: connect to the primary";
  }
  return "";
}

Error make(ErrorCode code, std::string_view state, std::string_view message) {
  Error error{code, "PostgreSQL: " + std::string{message}, std::nullopt};
  if (is_state(state)) {
    error.text.append(" (SQLSTATE ").append(state).append(")").append(advice_for(state));
    error.native = sqlstate(state);
  }
  return error;
}

}  // namespace

Error server_error(std::string_view state, std::string_view message) {
  return make(code_of(state), state, first_line(message));
}

// "connection to server at ... failed: FATAL:  28P01: password ... failed"
Error connect_error(std::string_view message) {
  std::string_view line = first_line(message);
  const std::string_view mark = "FATAL:  ";
  std::string_view state;
  if (const auto at = message.find(mark); at != std::string_view::npos) {
    state = message.substr(at + mark.size(), 5);
    line = first_line(message.substr(at + mark.size()));
    if (is_state(state)) {
      line.remove_prefix(std::min<std::size_t>(line.size(), 7));
    }
  }
  const ErrorCode code =
      code_of(state) == ErrorCode::unauthorized ? ErrorCode::unauthorized : ErrorCode::unavailable;
  return make(code, state, line.empty() ? "no connection" : line);
}

Error lost_connection(ErrorCode code, std::string_view message) {
  return make(code, "", message.empty() ? "the connection was lost" : first_line(message));
}

bool is_contention(const Error& error) noexcept {
  constexpr std::array kStates{sqlstate("40001"), sqlstate("40P01"), sqlstate("55P03")};
  return error.native && std::find(kStates.begin(), kStates.end(), *error.native) != kStates.end();
}

bool is_uninitialized(const Error& error) noexcept {
  constexpr std::array kStates{sqlstate("42P01"), sqlstate("3F000"), sqlstate("42703")};
  return error.native && std::find(kStates.begin(), kStates.end(), *error.native) != kStates.end();
}

}  // namespace holdfast::engines::postgres
