#pragma once

#include <string>
#include <string_view>

namespace holdfast::engines::postgres {

inline constexpr int kSchemaVersion = 1;

// All statements of strategy=lease for one schema. Values are always bound.
// $1 of most is a test's time in place of the server's, else NULL.
//
// Those that return rows of `locks` do so in the columns named below: of what they changed the
// first four, or what they left alone as it was.
struct LeaseSql {
  explicit LeaseSql(std::string_view schema);

  std::string create;  // several statements, for init
  std::string take;    // grants free locks, new ones included
  // Releases, renewals, and grants of free locks that have a row; and one release with one such
  // grant. They say nothing of what they left alone.
  std::string exchange;
  std::string exchange_in_order;  // where the session does not plan by the index
  std::string swap;
  std::string release_one;  // also passes the lock on, if that is simple
  std::string release;
  std::string requeue_one;
  std::string renew_one;
  std::string renew;
  std::string read;          // rows by name, and at least one line: the time and the token floor
  std::string write;         // compare and set whole rows, and ring
  std::string write_fenced;  // the same, where a fence must rise as well
  std::string list;
  std::string tidy;
  std::string version;
  std::string privileges;
  std::string read_value;
  std::string list_values;
  std::string create_value;  // no row: there is one already
  std::string change_value;  // no row: it has another version
  std::string forget_values;
  std::string make_fence;  // no row: the lock has changed meanwhile

 private:
  void add_short_ways(std::string_view schema);
};

// Columns of such rows.
inline constexpr int kName = 0;
inline constexpr int kApplied = 1;  // true: changed by this statement
inline constexpr int kToken = 2;
inline constexpr int kTtl = 3;
inline constexpr int kNow = 4;
inline constexpr int kFloor = 5;  // the least token of a new row
inline constexpr int kVersion = 6;
inline constexpr int kLastToken = 7;
inline constexpr int kRequest = 8;
inline constexpr int kSession = 9;
inline constexpr int kHolder = 10;
inline constexpr int kHost = 11;
inline constexpr int kPid = 12;
inline constexpr int kSince = 13;
inline constexpr int kUntil = 14;
inline constexpr int kFenced = 15;
inline constexpr int kRecord = 16;
inline constexpr int kParties = 17;

}  // namespace holdfast::engines::postgres
