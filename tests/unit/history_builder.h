#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "proof/checker.h"
#include "proof/history.h"

namespace holdfast::proof {

// Writes histories by hand. Every event comes a millisecond after the one
// before it, unless pass() says otherwise; leases are claimed for a second.
class HistoryBuilder {
 public:
  static constexpr Moment kTtl = std::chrono::seconds{1};

  HistoryBuilder& as(Mode mode, std::uint32_t permits = 1, std::uint32_t limit = 0) {
    shape_ = {mode, permits, limit};
    return *this;
  }
  HistoryBuilder& pass(Moment time) {
    now_ += time;
    return *this;
  }

  // Who: "A" to "Z" are processes with one call after the other.
  HistoryBuilder& call(char who, Moment wait = Moment{-1}) {
    Party& party = of(who);
    ++party.calls;
    party.shape = shape_;
    Event event = make(EventKind::called, who);
    event.value = wait.count();
    return add(event);
  }
  HistoryBuilder& grant(char who, std::uint64_t token, Moment left = kTtl) {
    of(who).token = token;
    Event event = make(EventKind::granted, who);
    event.value = (event.time + left).count();
    return add(event);
  }
  HistoryBuilder& enter(char who, std::uint64_t token) { return call(who).grant(who, token); }
  HistoryBuilder& refuse(char who, ErrorCode code) {
    Event event = make(EventKind::refused, who);
    event.code = code;
    return add(event);
  }
  HistoryBuilder& look(char who) {
    Event event = make(EventKind::alive, who);
    event.value = (event.time + kTtl).count();
    return add(event);
  }
  HistoryBuilder& write(char who, EventKind how = EventKind::wrote) {
    Event event = make(how, who);
    event.value = static_cast<std::int64_t>(history_.size() + 1);
    return add(event);
  }
  HistoryBuilder& note(char who, EventKind kind) { return add(make(kind, who)); }
  HistoryBuilder& leave(char who) {
    return note(who, EventKind::releasing).note(who, EventKind::released);
  }
  HistoryBuilder& fail_to_leave(char who, ErrorCode code) {
    note(who, EventKind::releasing);
    Event event = make(EventKind::unreleased, who);
    event.code = code;
    return add(event);
  }
  HistoryBuilder& nest(char who, std::uint64_t token) {
    Event event = make(EventKind::nested, who);
    event.token = token;
    return add(event);
  }
  HistoryBuilder& kill(char who) { return note(who, EventKind::killed); }
  HistoryBuilder& fault(EventKind kind, Fault fault, char who = 0) {
    Event event = make(kind, who == 0 ? 'A' : who);
    event.fault = fault;
    event.process = who == 0 ? kEverybody : event.process;
    return add(event);
  }

  const History& history() const { return history_; }

  // The properties that are violated, each once: "S1 S2".
  std::string verdict(Rules rules = {}) const {
    if (rules.ttl == Duration::zero()) rules.ttl = kTtl;
    std::string text;
    for (const Violation& violation : check(history_, rules)) {
      if (text.find(violation.property) == std::string::npos) {
        text += (text.empty() ? "" : " ") + violation.property;
      }
    }
    return text;
  }

 private:
  struct Party {
    std::uint32_t calls = 0;
    std::uint64_t token = 0;
    Shape shape;
  };
  Party& of(char who) { return parties_.at(static_cast<std::size_t>(who - 'A')); }

  Event make(EventKind kind, char who) {
    const Party& party = of(who);
    now_ += std::chrono::milliseconds{1};
    Event event;
    event.kind = kind;
    event.process = static_cast<std::uint32_t>(who - 'A');
    event.call = party.calls;
    event.mode = party.shape.mode;
    event.permits = party.shape.permits;
    event.limit = party.shape.limit;
    event.token = party.token;
    event.time = now_;
    event.sequence = history_.size();
    return event;
  }
  HistoryBuilder& add(const Event& event) {
    history_.push_back(event);
    return *this;
  }

  Moment now_ = std::chrono::seconds{100};
  Shape shape_;
  std::vector<Party> parties_ = std::vector<Party>(26);
  History history_;
};

}  // namespace holdfast::proof
