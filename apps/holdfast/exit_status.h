#pragma once

#include <holdfast/error.h>

// What the program tells its caller; the table is in docs/cli.md. The numbers
// above 63 are those of sysexits.h where it has a fitting one.
namespace holdfast::command {

inline constexpr int kSuccess = 0;
inline constexpr int kNo = 1;      // doctor found problems; nothing there to release or forget
inline constexpr int kUsage = 64;  // the caller's mistake
inline constexpr int kUnavailable = 69;      // the store cannot be used
inline constexpr int kInternal = 70;         // a fault in this program
inline constexpr int kOperatingSystem = 71;  // no process, no descriptor
inline constexpr int kOutput = 74;           // standard output cannot be written
inline constexpr int kBusy = 75;             // busy, or timed out
inline constexpr int kLost = 76;             // the lock was lost while the command ran
inline constexpr int kUnauthorized = 77;     // the store rejects our identity
inline constexpr int kNotExecutable = 126;
inline constexpr int kNotFound = 127;
inline constexpr int kSignalBase = 128;  // + the signal's number

int exit_status_of(ErrorCode code) noexcept;

}  // namespace holdfast::command
