// L1-L4: what must happen, and how soon.

#include <algorithm>
#include <map>
#include <string>

#include "proof/checker.h"

namespace holdfast::proof {
namespace {

constexpr Moment kForever = Moment::max();

std::string say(const Call& call) {
  return "call " + std::to_string(call.number) + " of process " + std::to_string(call.process);
}

std::string seconds(Moment time) {
  const auto tenths = std::chrono::duration_cast<std::chrono::milliseconds>(time).count() / 100;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

// When something was wrong, and with whom.
class Troubles {
 public:
  explicit Troubles(const Case& run) : rules_{run.rules} {
    for (const Event& event : run.history) {
      if (event.kind == EventKind::fault) {
        all_.push_back({event.process, event.fault, event.time, kForever});
      } else if (event.kind == EventKind::mended) {
        for (Trouble& trouble : all_) {
          if (trouble.process == event.process && trouble.fault == event.fault &&
              trouble.end == kForever) {
            trouble.end = event.time;
          }
        }
      }
    }
  }

  // From when on the process was undisturbed until `end`; `from` if all along.
  Moment calm_since(std::uint32_t process, Moment from, Moment end) const {
    for (const Trouble& trouble : all_) {
      if (hits(trouble, process) && trouble.begin < end) {
        from = std::max(from, trouble.end == kForever ? kForever : trouble.end + rules_.recovery);
      }
    }
    return from;
  }

 private:
  struct Trouble {
    std::uint32_t process;
    Fault fault;
    Moment begin;
    Moment end;
  };
  bool hits(const Trouble& trouble, std::uint32_t process) const {
    return trouble.process == kEverybody || trouble.process == process ||
           (rules_.stop_hits_all && trouble.fault == Fault::stop);
  }

  const Rules& rules_;
  std::vector<Trouble> all_;
};

struct Stay {
  const Call* call;
  Moment begin;
  Moment end;  // the lock is certainly free of it from here on
};

Moment end_of_stay(const Case& run, const Call& call) {
  if (call.released && call.release_succeeded) {
    return run.at(*call.released).time;
  }
  if (call.released && call.release_code == ErrorCode::lease_lost) {
    return run.at(*call.released).time;
  }
  if (call.released) {
    return run.at(*call.released).time + run.rules.ttl;
  }
  return call.killed ? run.at(*call.killed).time + run.rules.ttl : kForever;
}

// A call that was not granted may leave a ghost behind if its process died or
// could not speak to the store.
std::optional<Stay> ghost(const Case& run, const Call& call, const Troubles& troubles) {
  const Moment begin = run.at(call.called).time;
  if (call.killed && !call.granted) {
    return Stay{&call, begin, run.at(*call.killed).time + run.rules.ttl};
  }
  if (!call.answered || call.granted) {
    return std::nullopt;
  }
  const Moment end = run.at(*call.answered).time;
  if (troubles.calm_since(call.process, begin, end) == begin) {
    return std::nullopt;
  }
  return Stay{&call, end, end + run.rules.ttl};
}

// Somebody waited though nobody had the lock.
void check_gap(const Case& run, const std::vector<const Call*>& calls, const Troubles& troubles,
               const Stay& before, Moment end) {
  const Moment bound = run.rules.ttl + run.rules.backstop + run.rules.slack;
  for (const Call* call : calls) {
    const Moment asked = run.at(call->called).time;
    Moment answer = end;
    if (call->answered) {
      answer = std::min(answer, run.at(*call->answered).time);
    }
    if (call->killed) {
      answer = std::min(answer, run.at(*call->killed).time);
    }
    const Moment since = troubles.calm_since(call->process, std::max(asked, before.end), answer);
    if (answer > since && answer - since > bound) {
      const bool after_death = before.call->killed.has_value();
      run.findings.add(after_death ? "L3" : "L1",
                       "lock " + std::to_string(call->name) + " was free for " +
                           seconds(answer - since) + " while " + say(*call) + " waited",
                       {before.call, call});
      return;
    }
  }
}

// Every call comes back, and not much later than it was to wait.
void check_punctuality(const Case& run, const Call& call, const Troubles& troubles) {
  if (!call.killed && !call.answered) {
    run.findings.add("L1", say(call) + " was never answered", {&call});
  }
  if (!call.killed && call.releasing && !call.released) {
    run.findings.add("L1", say(call) + " never came back from its release", {&call});
  }
  if (!call.answered || call.wait < Moment::zero()) {
    return;
  }
  const Moment asked = run.at(call.called).time;
  const Moment answer = run.at(*call.answered).time;
  if (answer > asked + call.wait + run.rules.slack &&
      troubles.calm_since(call.process, asked, answer) == asked) {
    run.findings.add("L1",
                     say(call) + " was answered " + seconds(answer - asked - call.wait) +
                         " after its wait had ended",
                     {&call});
  }
}

}  // namespace

void check_progress(const Case& run) {
  if (run.history.empty()) {
    return;
  }
  const Troubles troubles{run};
  std::map<std::uint32_t, std::vector<const Call*>> calls;
  std::map<std::uint32_t, std::vector<Stay>> stays;
  for (const Call& call : run.calls.all) {
    calls[call.name].push_back(&call);
    if (call.granted) {
      stays[call.name].push_back({&call, run.at(*call.answered).time, end_of_stay(run, call)});
    } else if (const auto left = ghost(run, call, troubles)) {
      stays[call.name].push_back(*left);
    }
    check_punctuality(run, call, troubles);
  }
  const Moment bound = run.rules.ttl + run.rules.backstop + run.rules.slack;
  for (auto& [name, list] : stays) {
    std::ranges::sort(list, {}, &Stay::begin);
    const Stay* last = &list.front();
    for (const Stay& stay : list) {
      if (last->end < stay.begin && stay.begin - last->end > bound) {
        check_gap(run, calls[name], troubles, *last, stay.begin);
      }
      if (stay.end > last->end) {
        last = &stay;
      }
    }
    if (last->end < run.history.back().time) {
      check_gap(run, calls[name], troubles, *last, run.history.back().time);
    }
  }
}

namespace {

// When a call had certainly nothing more to do with the store.
Moment over(const Case& run, const Call& call) {
  if (call.granted) {
    return end_of_stay(run, call);
  }
  return call.answered ? run.at(*call.answered).time : kForever;
}

// Did a process that had nothing to do with the lock when `first` had long
// been in line come later and get it sooner?
void check_overtaken(const Case& run, const std::vector<const Call*>& calls, const Call& first,
                     Moment settled) {
  for (const Call* other : calls) {
    if (other->process == first.process || !other->granted || !other->answered ||
        run.at(other->called).time <= settled || *other->answered >= *first.answered ||
        !conflict(other->shape, first.shape)) {
      continue;
    }
    // Its process may have stood in line before, for another of its threads.
    const bool stood = std::ranges::any_of(calls, [&](const Call* earlier) {
      return earlier->process == other->process && run.at(earlier->called).time <= settled &&
             over(run, *earlier) + run.rules.slack > settled;
    });
    if (!stood) {
      run.findings.add("L2", say(*other) + " came after " + say(first) + " and was let in before",
                       {&first, other});
      return;
    }
  }
}

// Tokens of one tenancy follow each other.
void check_hand_overs(const Case& run, std::vector<const Call*> granted) {
  std::ranges::sort(granted, {}, &Call::token);
  std::vector<const Call*> chain;
  for (const Call* call : granted) {
    const bool goes_on = !chain.empty() && chain.back()->process == call->process &&
                         chain.back()->token + 1 == call->token;
    if (!goes_on) {
      chain.clear();
    }
    chain.push_back(call);
    if (chain.size() > std::size_t{run.rules.hand_over} + 1) {
      run.findings.add("L2",
                       "process " + std::to_string(call->process) +
                           " kept the lock for more than " + std::to_string(run.rules.hand_over) +
                           " hand-overs",
                       chain);
      return;
    }
  }
}

}  // namespace

void check_order(const Case& run) {
  const Troubles troubles{run};
  std::map<std::uint32_t, std::vector<const Call*>> calls;
  for (const Call& call : run.calls.all) {
    calls[call.name].push_back(&call);
  }
  for (const auto& [name, list] : calls) {
    std::vector<const Call*> granted;
    for (const Call* call : list) {
      if (!call->granted) {
        continue;
      }
      granted.push_back(call);
      const Moment asked = run.at(call->called).time;
      const Moment let_in = run.at(*call->answered).time;
      const Moment settled = asked + run.rules.slack;
      if (let_in > settled && troubles.calm_since(call->process, asked, let_in) == asked) {
        check_overtaken(run, list, *call, settled);
      }
    }
    if (run.rules.token) {
      check_hand_overs(run, std::move(granted));
    }
  }
}

void check_leftovers(const Case& run) {
  for (std::size_t place = 0; place < run.history.size(); ++place) {
    if (run.at(place).kind == EventKind::left_over) {
      run.findings.add_events("L4",
                              "the store still knows lock " + std::to_string(run.at(place).name) +
                                  " after all was released and a ttl has passed",
                              std::vector<std::size_t>{place});
    }
  }
}

}  // namespace holdfast::proof
