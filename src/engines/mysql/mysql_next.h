#pragma once

#include <cstdint>
#include <string>

#include "engines/mysql/mysql_lock.h"

// Who is next, as one statement can read it. Where one exclusive holder has one exclusive waiter
// behind it, the row's session is the waiter's, though there is a rest: everything else that it
// takes to pass the lock on stands at known places of that rest. Whoever changes the record writes
// both, and who knows nothing of this writes no session.
//
// The waiter's token is used up by writing that. So who is next may enter before it is on disk:
// if a crash swallows what was passed on, the waiter is one again, and what it was told is neither
// given to anybody else before it stops waiting, which is later than it believes to hold the lock,
// nor given twice.
namespace holdfast::engines::mysql {

// The row of a lock. If it is that simple, the record in it no longer has the waiter's tokens:
// they are taken out of it now, or were when the row was written before.
enum class Tokens : std::uint8_t { taken, kept };
LockRow row_with_next(LockEntry entry, Tokens tokens);
// The row named who is next, and nothing has changed since that matters to its tokens.
bool is_same_next(const LockRow& row, const core::LockRecord& before,
                  const core::LockRecord& after);

// Expressions over a row that says who is next. Times are in microseconds.
struct NextSql {
  // Whose request holds the lock, and as whom.
  NextSql(const core::RequestId& holding, const Party& holder);

  std::string is_held;  // by that
  std::string request;
  std::string ttl;
  std::string ttl_at_first;
  std::string heard;  // when the waiter last said that it waits
  std::string waits_until;
  std::string label;
  std::string host;
  std::string pid;
};

}  // namespace holdfast::engines::mysql
