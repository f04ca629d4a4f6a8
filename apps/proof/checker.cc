#include "proof/checker.h"

#include <algorithm>
#include <utility>

namespace holdfast::proof {
namespace {

bool is_repeated(EventKind kind) {
  return kind == EventKind::alive || kind == EventKind::wrote || kind == EventKind::turned_away ||
         kind == EventKind::nested;
}

bool concerns(const Event& fault, const std::vector<const Call*>& calls) {
  return fault.process == kEverybody || std::ranges::any_of(calls, [&](const Call* call) {
           return call->process == fault.process;
         });
}

}  // namespace

void Findings::add_events(const std::string& property, std::string text,
                          std::vector<std::size_t> window) {
  if (++told_[property] > kToldOfEach) {
    return;
  }
  std::ranges::sort(window);
  window.erase(std::unique(window.begin(), window.end()), window.end());
  violations_.push_back({property, std::move(text), std::move(window)});
}

void Findings::add(const std::string& property, std::string text,
                   const std::vector<const Call*>& calls) {
  if (told_[property] >= kToldOfEach) {
    return;  // the window is the costly part
  }
  std::vector<std::size_t> window;
  for (const Call* call : calls) {
    // Of looks and writes the first and the last tell enough.
    std::optional<std::size_t> last;
    bool first = true;
    for (const std::size_t place : call->events) {
      if (!is_repeated(history_[place].kind) || std::exchange(first, false)) {
        window.push_back(place);
      } else {
        last = place;
      }
    }
    if (last) {
      window.push_back(*last);
    }
    if (call->killed) {
      window.push_back(*call->killed);
    }
  }
  const auto [begin, end] = std::ranges::minmax(window);
  for (std::size_t place = begin; place < end; ++place) {
    const EventKind kind = history_[place].kind;
    if ((kind == EventKind::fault || kind == EventKind::mended) &&
        concerns(history_[place], calls)) {
      window.push_back(place);
    }
  }
  add_events(property, std::move(text), std::move(window));
}

std::vector<Violation> check(const History& history, const Rules& rules) {
  const Calls calls = calls_of(history);
  Findings findings{history};
  const Case run{history, rules, calls, findings};
  check_exclusion(run);
  check_beliefs(run);
  if (rules.token) {
    check_writes(run);
    check_tokens(run);
  }
  check_releases(run);
  check_answers(run);
  check_progress(run);
  if (rules.fifo) {
    check_order(run);
  }
  check_leftovers(run);
  return findings.take();
}

std::string to_text(const Violation& violation, const History& history) {
  std::string text = violation.property + ": " + violation.text + "\n";
  for (const std::size_t place : violation.window) {
    text += "  " + to_text(history[place]) + "\n";
  }
  return text;
}

}  // namespace holdfast::proof
