#pragma once

#include <holdfast/error.h>
#include <holdfast/inspect.h>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "core/lock_record.h"

// A lock record as a row of the lock table. PostgreSQL has its own form of it
// (relational/lock_row.h), with columns that may be empty: here they have fixed
// lengths, which InnoDB changes in place.
namespace holdfast::engines {

// A lock with the people in it.
struct LockEntry {
  core::LockRecord record;
  std::map<core::SessionId, Party> parties;  // of its holders and waiters, at least
  // Its token stands in the fence table too, and must follow there. Then the
  // row always has a rest: no plain statement grants it.
  bool fenced = false;

  Party party_of(const core::SessionId& session) const;
};

// The row of a lock that nobody shares and nobody waits for says everything in
// plain columns, so that single conditional statements can grant, renew and
// release it. All else is in `rest`, and the plain columns are for people.
struct LockRow {
  std::uint64_t last_token = 0;
  core::RequestId request;  // of the holder; zero if there is none, or there is a rest
  core::SessionId session;  // likewise; with a rest perhaps who is next (mysql_next.h)
  Party holder;
  core::Time since{};
  core::Time until{};  // the past: free
  core::Duration ttl{};
  std::string rest;  // empty: see above

  // For people.
  std::uint32_t waiting = 0;
  std::string queue;
};

// Times are kept in microseconds.
core::Duration in_microseconds(core::Duration time);
// As it is stored: at most 64 bytes of clean UTF-8 a text.
Party clipped(const Party& party);
// As it stands in a rest.
std::string bytes_of(const Party& party);

LockRow row_of(const LockEntry& entry);
// `unavailable` if no row_of() could have made it: the table is damaged.
Result<LockEntry> entry_of(const LockRow& row);

}  // namespace holdfast::engines
