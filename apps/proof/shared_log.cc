#include "proof/shared_log.h"

#include <algorithm>
#include <utility>

#include "base/time.h"

namespace holdfast::proof {

void SharedLog::put(Sequence sequence, Event event) noexcept {
  if (sequence >= kCapacity) {
    return;
  }
  event.sequence = sequence;
  Event& place = events_.at(sequence);
  const EventKind kind = std::exchange(event.kind, EventKind::none);
  place = event;
  // Last, so that an event is there as a whole or not at all.
  std::atomic_ref{place.kind}.store(kind, std::memory_order_release);
}

History SharedLog::history(Moment start) const {
  History history;
  const std::size_t used = std::min<std::size_t>(next(), kCapacity);
  history.reserve(used);
  for (std::size_t place = 0; place < used; ++place) {
    Event event = events_.at(place);
    if (event.kind == EventKind::none) {
      continue;
    }
    event.time -= start;
    if (event.kind == EventKind::granted || event.kind == EventKind::alive) {
      event.value -= start.count();
    }
    history.push_back(event);
  }
  return history;
}

Moment boot_time() noexcept {
  return base::BootClock::now().time_since_epoch();
}

}  // namespace holdfast::proof
