#pragma once

#include <string>
#include <string_view>

namespace holdfast::engines::postgres {

inline constexpr int kSchemaVersion = 1;

// All statements of strategy=lease for one schema. Values are always bound.
// $1 of most is a test's time in place of the server's, else NULL.
//
// Those that return rows of `locks` do so as RowColumn says: what they changed
// as it is now, or what they left alone as it was.
struct LeaseSql {
  explicit LeaseSql(std::string_view schema);

  std::string create;  // several statements, for init
  std::string take;    // grants free locks, new ones included
  std::string release_one;
  std::string release;
  std::string renew_one;
  std::string renew;
  std::string read;          // rows by name, and at least one line: the time and the token floor
  std::string write;         // compare and set whole rows, and ring
  std::string write_fenced;  // the same, where a fence must rise as well
  std::string list;
  std::string tidy;
  std::string version;
  std::string privileges;
  std::string make_fence;  // no row: the lock has changed meanwhile
};

enum RowColumn : int {
  kName,
  kApplied,  // true: changed by this statement
  kNow,
  kFloor,  // the least token of a new row
  kVersion,
  kLastToken,
  kRequest,
  kSession,
  kToken,
  kTtl,
  kHolder,
  kHost,
  kPid,
  kSince,
  kUntil,
  kFenced,
  kRecord,
  kParties,
};

}  // namespace holdfast::engines::postgres
