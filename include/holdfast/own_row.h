#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace holdfast {

// What a statement is given for a placeholder: never part of its text.
using SqlValue = std::variant<std::nullptr_t, std::int64_t, double, std::string>;

struct SqlColumn {
  std::string name;
  SqlValue value;
};

// A change of one row of your own table, if it still has the version that you
// read:  UPDATE table SET set..., version = version + 1 WHERE key... AND version = expected
// Names are quoted as they are, so their case counts; "shop.stock" is the table
// `stock` of the schema or database `shop`.
struct RowUpdate {
  std::string table;
  std::vector<SqlColumn> set;  // at least one
  std::vector<SqlColumn> key;  // at least one; all must be equal, none NULL
  std::int64_t expected = 0;
  std::string version_column = "version";  // an integer, not NULL
};

}  // namespace holdfast
