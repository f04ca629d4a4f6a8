#include "proof/calls.h"

#include <map>
#include <utility>

namespace holdfast::proof {
namespace {

Call begin(const Event& event, std::size_t place) {
  return {.process = event.process,
          .thread = event.thread,
          .name = event.name,
          .number = event.call,
          .shape = {event.mode, event.permits, event.limit},
          .wait = Moment{event.value},
          .called = place,
          .events = {}};
}

void follow(Call& call, const Event& event, std::size_t place, Calls& calls) {
  switch (event.kind) {
    case EventKind::granted:
    case EventKind::refused:
      if (call.answered) {
        calls.second_answers.push_back(place);
        return;
      }
      call.answered = place;
      call.granted = event.kind == EventKind::granted;
      call.token = event.token;
      call.code = event.code;
      return;
    case EventKind::alive:
      if (call.granted && !call.releasing) {
        call.stood_until = place;
      }
      return;
    case EventKind::releasing:
      call.releasing = place;
      return;
    case EventKind::released:
    case EventKind::unreleased:
      call.released = place;
      call.release_succeeded = event.kind == EventKind::released;
      call.release_code = event.code;
      return;
    case EventKind::cancelling:
      call.cancelled = true;
      return;
    default:
      return;
  }
}

}  // namespace

bool conflict(const Shape& a, const Shape& b) noexcept {
  if (a.mode != b.mode || a.mode == Mode::exclusive) {
    return true;
  }
  return a.mode == Mode::permits && a.permits + b.permits > a.limit;
}

bool Crowd::fits() const noexcept {
  const int kinds = (exclusive_ > 0 ? 1 : 0) + (shared_ > 0 ? 1 : 0) + (permits_ > 0 ? 1 : 0);
  return exclusive_ <= 1 && kinds <= 1 && permits_ <= std::int64_t{limit_};
}

void Crowd::change(const Shape& shape, int sign) {
  exclusive_ += shape.mode == Mode::exclusive ? sign : 0;
  shared_ += shape.mode == Mode::shared ? sign : 0;
  if (shape.mode == Mode::permits) {
    permits_ += sign * std::int64_t{shape.permits};
    limit_ = shape.limit;
  }
}

Calls calls_of(const History& history) {
  Calls calls;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> known;
  for (std::size_t place = 0; place < history.size(); ++place) {
    const Event& event = history[place];
    if (event.kind == EventKind::called) {
      known[{event.process, event.call}] = calls.all.size();
      calls.all.push_back(begin(event, place));
    }
    if (event.kind == EventKind::killed) {
      // Few processes are killed, and each has few calls under way.
      for (auto it = known.lower_bound({event.process, 0});
           it != known.end() && it->first.first == event.process; ++it) {
        Call& call = calls.all[it->second];
        const bool over = call.answered && (!call.granted || call.released);
        if (!over) {
          call.killed = place;
        }
      }
      continue;
    }
    if (event.kind >= EventKind::fault) {
      continue;
    }
    const auto found = known.find({event.process, event.call});
    if (found != known.end()) {
      Call& call = calls.all[found->second];
      call.events.push_back(place);
      follow(call, event, place, calls);
    }
  }
  return calls;
}

}  // namespace holdfast::proof
