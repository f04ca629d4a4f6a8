#pragma once

#include <string>

#include "core/lock_record.h"
#include "engines/relational/lock_row.h"

// Who is next, as one statement can read it. Where one exclusive holder has one exclusive waiter
// behind it, `parties` begins with a line that says all that it takes to pass the lock on: whose
// release does so, and what the row then is. It is written with the record, never without it, and
// everybody who changes the record writes it anew. Its fields, between tabs:
//
//   1 the holder's request   2 "passes on to"   3 request   4 session   5 token   6 ttl
//   7 ttl at first   8 when it stops waiting   9 label   10 host   11 pid   12 when it was heard
//
// It counts its first ttl from when it was last heard. A release that is older than that, because
// it had to wait for the row, would count from an earlier time, and leaves the row alone.
//
// The token is used up by writing that line. So what is passed on need not be on disk: if a crash
// swallows it, the waiter is one again, and what it was told is neither given to anybody else
// before it stops waiting, which is later than it believes to hold the lock, nor given twice.
namespace holdfast::engines::postgres {

// That line, with tokens that the record then no longer has. Empty, and the record as it was,
// unless it is that simple.
std::string prepare_next(core::LockRecord& record, const relational::Parties& parties);

// {next request}, {next session}, ... in a statement on `locks l`: NULL where nobody is described.
std::string with_next(std::string sql);

}  // namespace holdfast::engines::postgres
