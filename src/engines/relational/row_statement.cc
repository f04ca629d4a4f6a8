#include "engines/relational/row_statement.h"

#include <algorithm>
#include <set>
#include <string_view>

namespace holdfast::engines::relational {
namespace {

tl::unexpected<Error> invalid(std::string text) {
  return fail(ErrorCode::invalid_argument, std::move(text));
}

class Writer {
 public:
  explicit Writer(const Dialect& dialect) : dialect_{dialect} {}

  Result<std::string> quoted(std::string_view name, const char* field) const {
    if (name.empty() || name.size() > dialect_.longest_name ||
        name.find('\0') != std::string_view::npos) {
      return invalid(std::string{field} + " has a name of " + std::to_string(name.size()) +
                     " bytes, or with a zero byte in it; give it 1 to " +
                     std::to_string(dialect_.longest_name));
    }
    std::string text(1, dialect_.quote);
    for (const char c : name) {
      text.append(c == dialect_.quote ? 2 : 1, c);
    }
    return text + dialect_.quote;
  }

  // "a" or "a.b"
  Result<std::string> quoted_table(std::string_view name) const {
    const auto dot = name.find('.');
    if (dot == std::string_view::npos) {
      return quoted(name, "table");
    }
    return quoted(name.substr(0, dot), "table").and_then([&](const std::string& first) {
      return quoted(name.substr(dot + 1), "table").map([&](const std::string& second) {
        return first + "." + second;
      });
    });
  }

  std::string place(SqlValue value) {
    values_.push_back(std::move(value));
    return dialect_.numbered ? "$" + std::to_string(values_.size()) : "?";
  }

  std::vector<SqlValue> take_values() { return std::move(values_); }

 private:
  const Dialect& dialect_;
  std::vector<SqlValue> values_;
};

Result<void> check(const RowUpdate& update) {
  if (update.set.empty()) {
    return invalid("set is empty: there is nothing to change");
  }
  if (update.key.empty()) {
    return invalid("key is empty: it must say which row is meant");
  }
  std::set<std::string_view> names{update.version_column};
  for (const SqlColumn& column : update.set) {
    if (!names.insert(column.name).second) {
      return invalid(
          "set names the column " + column.name +
          (column.name == update.version_column ? ", which counts by itself" : " twice"));
    }
  }
  const auto is_null = [](const SqlColumn& column) {
    return std::holds_alternative<std::nullptr_t>(column.value);
  };
  if (std::any_of(update.key.begin(), update.key.end(), is_null)) {
    return invalid("key has a NULL, which equals nothing");
  }
  return {};
}

}  // namespace

Result<RowStatement> row_statement(const RowUpdate& update, const Dialect& dialect) {
  if (auto good = check(update); !good) {
    return tl::unexpected{std::move(good.error())};
  }
  Writer writer{dialect};
  const auto table = writer.quoted_table(update.table);
  const auto version = writer.quoted(update.version_column, "version_column");
  if (!table || !version) {
    return tl::unexpected{!table ? table.error() : version.error()};
  }
  std::string text = "UPDATE " + *table + " SET ";
  for (const SqlColumn& column : update.set) {
    const auto name = writer.quoted(column.name, "set");
    if (!name) {
      return tl::unexpected{name.error()};
    }
    text += *name + " = " + writer.place(column.value) + ", ";
  }
  text += *version + " = " + *version + " + 1 WHERE ";
  for (const SqlColumn& column : update.key) {
    const auto name = writer.quoted(column.name, "key");
    if (!name) {
      return tl::unexpected{name.error()};
    }
    text += *name + " = " + writer.place(column.value) + " AND ";
  }
  text += *version + " = " + writer.place(update.expected);
  return RowStatement{.text = std::move(text), .values = writer.take_values()};
}

}  // namespace holdfast::engines::relational
