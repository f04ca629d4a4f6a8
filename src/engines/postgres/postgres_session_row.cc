// A row of the user's, on the user's connection: these calls block.
#include <libpq-fe.h>

#include <array>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engines/postgres/postgres_errors.h"
#include "engines/postgres/postgres_row_update.h"
#include "engines/relational/row_statement.h"

namespace holdfast::engines::postgres {
namespace {

constexpr relational::Dialect kDialect{.quote = '"', .numbered = true, .longest_name = 63};

struct Clear {
  void operator()(PGresult* result) const noexcept { PQclear(result); }
};
using Answer = std::unique_ptr<PGresult, Clear>;

// As text, of the type that the column has; nullopt: NULL.
std::optional<std::string> as_text(const SqlValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) {
    return std::to_string(*number);
  }
  if (const auto* real = std::get_if<double>(&value)) {
    std::array<char, 32> text{};
    const int length = std::snprintf(text.data(), text.size(), "%.17g", *real);
    return std::string{text.data(), static_cast<std::size_t>(length)};
  }
  const auto* text = std::get_if<std::string>(&value);
  return text != nullptr ? std::optional{*text} : std::nullopt;
}

Error error_of(pg_conn* connection, const Answer& answer) {
  const char* state = PQresultErrorField(answer.get(), PG_DIAG_SQLSTATE);
  const char* text = PQresultErrorField(answer.get(), PG_DIAG_MESSAGE_PRIMARY);
  if (state == nullptr || text == nullptr) {
    return lost_connection(ErrorCode::outcome_unknown, PQerrorMessage(connection));
  }
  return server_error(state, text);
}

}  // namespace

Result<bool> update_row(void* connection, const RowUpdate& update) {
  const auto made = relational::row_statement(update, kDialect);
  if (!made) {
    return tl::unexpected{made.error()};
  }
  std::vector<std::optional<std::string>> texts;
  std::vector<const char*> values;
  texts.reserve(made->values.size());
  for (const SqlValue& value : made->values) {
    texts.push_back(as_text(value));
    if (texts.back() && texts.back()->find('\0') != std::string::npos) {
      return fail(ErrorCode::invalid_argument,
                  "set or key has a text with a zero byte, which PostgreSQL cannot keep");
    }
    values.push_back(texts.back() ? texts.back()->c_str() : nullptr);
  }
  auto* const raw = static_cast<pg_conn*>(connection);
  const Answer answer{PQexecParams(raw, made->text.c_str(), static_cast<int>(values.size()),
                                   nullptr, values.data(), nullptr, nullptr, 0)};
  if (PQresultStatus(answer.get()) != PGRES_COMMAND_OK) {
    return tl::unexpected{error_of(raw, answer)};
  }
  return std::string_view{PQcmdTuples(answer.get())} != "0";
}

}  // namespace holdfast::engines::postgres
