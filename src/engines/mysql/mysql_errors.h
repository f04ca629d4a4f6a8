#pragma once

#include <holdfast/error.h>
#include <cstdint>

#include "engines/mysql/mysql_session.h"

namespace holdfast::engines {

enum class MysqlTrouble : std::uint8_t {
  disconnected,  // reconnect; what was sent may have been done
  collision,     // deadlock or lock wait: nothing was done, try again
  no_table,      // our tables are not there
  not_ready,     // cannot serve now, may soon: joins a cluster, is being promoted, is full
  final,         // nothing was done, and trying again would not help
};

MysqlTrouble trouble_of(const MysqlError& error);
// Somebody else has a row locked.
bool is_lock_wait(const MysqlError& error);

// What the caller is told.
Error as_error(const MysqlError& error, const MysqlOptions& options);

}  // namespace holdfast::engines
