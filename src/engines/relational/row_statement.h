#pragma once

#include <holdfast/error.h>
#include <holdfast/own_row.h>
#include <string>
#include <vector>

namespace holdfast::engines::relational {

// How a database writes names and places for values.
struct Dialect {
  char quote = '"';
  bool numbered = true;  // $1, $2, ...; else ?
  std::size_t longest_name = 63;
};

struct RowStatement {
  std::string text;
  std::vector<SqlValue> values;  // for its placeholders, in order
};

// invalid_argument names the field.
Result<RowStatement> row_statement(const RowUpdate& update, const Dialect& dialect);

}  // namespace holdfast::engines::relational
