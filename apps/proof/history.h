#pragma once

#include <holdfast/error.h>
#include <holdfast/options.h>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

// What the processes of a run did and were told, in one order.
namespace holdfast::proof {

// An event's place in the history: taken from one counter that all processes
// share, so it does not depend on any clock. What is done *after* taking a
// number happened later than all that was numbered before.
using Sequence = std::uint64_t;
inline constexpr Sequence kNoSequence = std::numeric_limits<Sequence>::max();

// CLOCK_BOOTTIME, which the processes of a machine share. For durations, and
// for what a process believes of its deadline; never for order.
using Moment = std::chrono::nanoseconds;

enum class EventKind : std::uint8_t {
  none,         // its process died while it was written
  called,       // numbered before the acquire; value: the wait in ns, -1 for ever
  granted,      // numbered after it returned; token, value: the claimed deadline
  refused,      // the same, without a lease; code
  nested,       // a re-entrant acquire; token
  alive,        // numbered before is_alive() said yes; value: the claimed deadline
  wrote,        // numbered before the write; token, value: the counter after it
  turned_away,  // the same, but the resource has seen a higher token
  releasing,    // numbered before the release
  released,     // numbered after it returned
  unreleased,   // the same; code
  lost,         // the process was told
  cancelling,   // the caller asks its own acquire to stop
  fault,        // something is broken from here on; text is an index
  mended,
  killed,     // numbered after the process was gone
  left_over,  // the store still knows the name though nobody wants it
};

enum class Fault : std::uint8_t {
  kill,
  stop,
  partition_to_store,
  partition_from_store,
  partition,
  delay,
  reset,
  cut,
  refuse,
  swallow,
};
inline constexpr std::size_t kFaults = 10;

inline constexpr std::uint32_t kEverybody = std::numeric_limits<std::uint32_t>::max();

// Plain data: lives in memory that processes share.
struct Event {
  EventKind kind = EventKind::none;
  Mode mode = Mode::exclusive;
  ErrorCode code{};
  Fault fault{};
  std::uint32_t process = 0;  // never used twice; kEverybody: a fault that hits all
  std::uint32_t thread = 0;
  std::uint32_t name = 0;
  std::uint32_t call = 0;  // of the process
  std::uint32_t permits = 1;
  std::uint32_t limit = 0;
  std::uint64_t token = 0;  // 0: the engine has none
  std::int64_t value = 0;
  Moment time{};
  Sequence sequence = 0;
};

// Sorted by sequence, without the holes.
using History = std::vector<Event>;

std::string to_text(const Event& event);
std::string to_text(Moment time);  // "313.504 ms"
std::string_view to_string(EventKind kind) noexcept;
std::string_view to_string(Fault fault) noexcept;
std::optional<Fault> fault_named(std::string_view name) noexcept;

}  // namespace holdfast::proof
