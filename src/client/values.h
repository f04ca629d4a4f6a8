#pragma once

#include <holdfast/error.h>
#include <chrono>
#include <optional>
#include <string_view>

#include "client/service.h"
#include "core/value_record.h"

// Values with versions, as Versioned and tasks need them: names and sizes
// checked, lost answers found out.
namespace holdfast::client {

// What begins so is ours: the records of tasks.
inline constexpr std::string_view kReservedNames = "holdfast:";

// invalid_argument unless it is 1 to 255 bytes and not reserved.
Result<void> check_value_name(std::string_view name);

// Empty if there is none, or it was erased.
Result<std::optional<core::Value>> read_value(Service& service, std::string_view name);

// Gives the write its writer's id. A write whose answer got lost is sent again,
// for kPatience at most, until the store tells what became of it.
Result<core::ValueOutcome> write_value(Service& service, core::ValueWrite write);

// For the store's time as people see it.
inline std::chrono::system_clock::time_point calendar(core::Micros micros) {
  using std::chrono::microseconds;
  return std::chrono::system_clock::time_point{
      microseconds{static_cast<microseconds::rep>(micros)}};
}

}  // namespace holdfast::client
