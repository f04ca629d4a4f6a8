#pragma once

#include <string_view>

namespace holdfast::engines {

// What a server can do, by the version that it greets with.
struct MysqlFeatures {
  bool mariadb = false;
  bool returning = false;    // INSERT ... RETURNING
  bool nowait = false;       // SELECT ... FOR UPDATE NOWAIT
  bool skip_locked = false;  // ... SKIP LOCKED

  static MysqlFeatures of(std::string_view version);
};

}  // namespace holdfast::engines
