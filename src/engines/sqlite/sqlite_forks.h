#pragma once

namespace holdfast::engines {

class SqliteEngine;

// All open SQLite engines of this process: told before and after each fork.
class SqliteForks {
 public:
  static void add(SqliteEngine& engine);
  static void remove(SqliteEngine& engine);
};

}  // namespace holdfast::engines
