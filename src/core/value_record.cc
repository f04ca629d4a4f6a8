#include "core/value_record.h"

#include <algorithm>

namespace holdfast::core {
namespace {

using std::chrono::microseconds;

Micros after(Micros now, Duration time) {
  return now + static_cast<Micros>(std::chrono::ceil<microseconds>(time).count());
}

}  // namespace

Value ValueRecord::seen(Micros now) const {
  const Micros left = hold_off_until > now ? hold_off_until - now : 0;
  return {.bytes = bytes,
          .version = version,
          .written = written,
          .hold_off = microseconds{static_cast<microseconds::rep>(left)}};
}

bool ValueRecord::forgettable(Micros now) const noexcept {
  return !bytes && after(written, kEraseMemory) <= now;
}

ValueOutcome apply(std::optional<ValueRecord>& record, const ValueWrite& write, Micros now,
                   std::uint64_t floor) {
  if (record && record->writer == write.writer) {
    return {.applied = true, .version = record->version, .written = record->written};
  }
  const std::uint64_t current = record && record->bytes ? record->version : 0;
  if (current != write.expected.value_or(0)) {
    return {.version = current};
  }
  ValueRecord next;
  next.version = record ? record->version + 1 : std::max(now, floor);
  if (write.bytes) {
    next.bytes.emplace(*write.bytes);
  }
  next.writer = write.writer;
  next.written = now;
  next.hold_off_until = write.hold_off > Duration::zero() ? after(now, write.hold_off) : 0;
  record = std::move(next);
  return {.applied = true, .version = record->version, .written = now};
}

}  // namespace holdfast::core
