// S1-S6: what must never happen.

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>

#include "proof/checker.h"

namespace holdfast::proof {
namespace {

std::string say(const Call& call) {
  return "call " + std::to_string(call.number) + " of process " + std::to_string(call.process);
}

std::string lock(const Call& call) {
  return "lock " + std::to_string(call.name);
}

// Calls whose grant certainly stood for some time, by name, in order of entry.
using Standing = std::map<std::uint32_t, std::vector<const Call*>>;

Standing standing(const Calls& calls) {
  Standing found;
  for (const Call& call : calls.all) {
    if (call.granted && call.stood_until) {
      found[call.name].push_back(&call);
    }
  }
  for (auto& [name, list] : found) {
    std::ranges::sort(list, {}, [](const Call* call) { return *call->answered; });
  }
  return found;
}

struct Write {
  const Call* call;
  std::size_t place;
  std::uint64_t token;
  std::uint64_t before;
  std::uint64_t after;
};

// S1, the resource's part: after a token was accepted, no lower one is.
void check_write_order(const Case& run, std::vector<Write>& writes) {
  auto by_end = writes;
  std::ranges::sort(by_end, {}, &Write::after);
  std::ranges::sort(writes, {}, &Write::before);
  const Write* highest = nullptr;
  auto ended = by_end.begin();
  for (const Write& write : writes) {
    for (; ended != by_end.end() && ended->after <= write.before; ++ended) {
      if (highest == nullptr || ended->token > highest->token) {
        highest = &*ended;
      }
    }
    if (highest != nullptr && highest->token > write.token) {
      run.findings.add("S1",
                       say(*write.call) + " wrote with token " + std::to_string(write.token) +
                           " after a write with token " + std::to_string(highest->token),
                       {highest->call, write.call});
    }
  }
}

}  // namespace

void check_writes(const Case& run) {
  std::map<std::uint32_t, std::vector<Write>> accepted;
  std::map<std::pair<std::uint32_t, std::uint64_t>, const Call*> writers;
  for (const Call& call : run.calls.all) {
    for (const std::size_t place : call.events) {
      const Event& event = run.at(place);
      if (event.kind == EventKind::turned_away && call.stood_until && place < *call.stood_until) {
        run.findings.add("S1", say(call) + " held " + lock(call) + ", but its write was refused",
                         {&call});
      }
      if (event.kind != EventKind::wrote) {
        continue;
      }
      accepted[call.name].push_back(
          {&call, place, event.token, event.sequence, static_cast<std::uint64_t>(event.value)});
      const auto [writer, first] = writers.try_emplace({call.name, event.token}, &call);
      if (!first && writer->second != &call) {
        run.findings.add("S1",
                         say(call) + " and " + say(*writer->second) + " wrote with one token, " +
                             std::to_string(event.token),
                         {writer->second, &call});
      }
    }
  }
  for (auto& [name, writes] : accepted) {
    check_write_order(run, writes);
  }
}

void check_exclusion(const Case& run) {
  for (const auto& [name, calls] : standing(run.calls)) {
    std::vector<const Call*> by_end = calls;
    std::ranges::sort(by_end, {}, [](const Call* call) { return *call->stood_until; });
    Crowd crowd;
    std::vector<const Call*> inside;
    auto leaving = by_end.begin();
    for (const Call* call : calls) {
      for (; leaving != by_end.end() && *(*leaving)->stood_until < *call->answered; ++leaving) {
        crowd.remove((*leaving)->shape);
        std::erase(inside, *leaving);
      }
      crowd.add(call->shape);
      inside.push_back(call);
      if (!crowd.fits()) {
        run.findings.add("S2", "too many hold " + lock(*call) + " when " + say(*call) + " enters",
                         inside);
      }
    }
  }
}

void check_tokens(const Case& run) {
  std::map<std::pair<std::uint32_t, std::uint64_t>, const Call*> owners;
  for (const Call& call : run.calls.all) {
    if (!call.granted) {
      continue;
    }
    const auto [owner, first] = owners.try_emplace({call.name, call.token}, &call);
    if (!first) {
      run.findings.add("S3",
                       say(call) + " and " + say(*owner->second) + " were given the same token",
                       {owner->second, &call});
    }
    const auto floor = run.rules.token_floor.find(call.name);
    if (floor != run.rules.token_floor.end() && call.token <= floor->second) {
      run.findings.add("S3",
                       say(call) + " was given a token that is not above " +
                           std::to_string(floor->second) + ", which was given out long before",
                       {&call});
    }
    for (const std::size_t place : call.events) {
      if (run.at(place).kind == EventKind::nested && run.at(place).token != call.token) {
        run.findings.add("S3", say(call) + " entered again and its token changed", {&call});
      }
    }
  }
  for (const auto& [name, calls] : standing(run.calls)) {
    // The last of each kind is the highest so far, or was told of already.
    const Call* exclusive = nullptr;
    const Call* others = nullptr;
    for (const Call* call : calls) {
      const bool alone = call->shape.mode == Mode::exclusive;
      for (const Call* earlier : {exclusive, alone ? others : nullptr}) {
        if (earlier != nullptr && earlier->token > call->token) {
          run.findings.add(
              "S3", say(*call) + " entered after " + say(*earlier) + ", but its token is lower",
              {earlier, call});
        }
      }
      const Call*& highest = alone ? exclusive : others;
      if (highest == nullptr || highest->token < call->token) {
        highest = call;
      }
    }
  }
}

// Whoever lost a lock learns so by its release, and frees nothing.
void check_releases(const Case& run) {
  const Standing stood = standing(run.calls);
  for (const Call& call : run.calls.all) {
    const auto list = stood.find(call.name);
    if (!call.granted || !call.release_succeeded || list == stood.end()) {
      continue;
    }
    auto next = std::ranges::upper_bound(list->second, *call.answered, {},
                                         [](const Call* other) { return *other->answered; });
    for (; next != list->second.end() && *(*next)->answered < *call.releasing; ++next) {
      const bool alone = call.shape.mode == Mode::exclusive;
      if (alone || (*next)->shape.mode == Mode::exclusive) {
        run.findings.add("S4",
                         say(call) + " had lost " + lock(call) + " to " + say(**next) +
                             ", but its release says all is well",
                         {&call, *next});
        break;
      }
    }
  }
}

namespace {

void check_answer(const Case& run, const Call& call) {
  const Moment took = run.at(*call.answered).time - run.at(call.called).time;
  const std::string who = say(call);
  if (call.code == ErrorCode::timed_out && (call.wait < Moment::zero() || took < call.wait)) {
    run.findings.add("S5", who + " timed out before its time", {&call});
  }
  if (call.code == ErrorCode::busy && call.wait != Moment::zero()) {
    run.findings.add("S5", who + " was to wait, but was told that the lock is busy", {&call});
  }
  if (call.code == ErrorCode::cancelled && !call.cancelled) {
    run.findings.add("S5", who + " was cancelled by nobody", {&call});
  }
}

}  // namespace

void check_answers(const Case& run) {
  for (const std::size_t place : run.calls.second_answers) {
    const Event& second = run.at(place);
    for (const Call& call : run.calls.all) {
      if (call.process == second.process && call.number == second.call) {
        run.findings.add("S5", say(call) + " was answered twice", {&call});
      }
    }
  }
  for (const Call& call : run.calls.all) {
    if (call.answered && !call.granted) {
      check_answer(run, call);
    }
  }
}

namespace {

struct Belief {
  const Call* call;
  Moment until;
};

void let_in(const Case& run, const Call& call, const Event& event, std::vector<Belief>& beliefs) {
  Crowd crowd;
  crowd.add(call.shape);
  std::vector<const Call*> inside{&call};
  std::string others;
  std::erase_if(beliefs, [&](const Belief& belief) { return belief.until <= event.time; });
  for (const Belief& belief : beliefs) {
    crowd.add(belief.call->shape);
    inside.push_back(belief.call);
    others += (others.empty() ? "" : ", ") + say(*belief.call) + " until " + to_text(belief.until);
  }
  if (!crowd.fits()) {
    run.findings.add("S6",
                     say(call) + " was let into " + lock(call) + " at " + to_text(event.time) +
                         ", but others might still count on it: " + others,
                     inside);
  }
  beliefs.push_back({&call, Moment{event.value}});
}

}  // namespace

// A process that died or sleeps cannot look, but it said how long it may
// count on its lease: nobody may be let in before.
void check_beliefs(const Case& run) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, const Call*> known;
  for (const Call& call : run.calls.all) {
    known[{call.process, call.number}] = &call;
  }
  std::unordered_map<std::uint32_t, std::vector<Belief>> open;
  for (const Event& event : run.history) {
    // A session ends with its process, which is dead before we can write that down.
    const bool killing = event.kind == EventKind::killed ||
                         (event.kind == EventKind::fault && event.fault == Fault::kill);
    if (killing && !run.rules.lease) {
      for (auto& [name, beliefs] : open) {
        std::erase_if(beliefs,
                      [&](const Belief& belief) { return belief.call->process == event.process; });
      }
    }
    const auto found = known.find({event.process, event.call});
    if (event.kind >= EventKind::fault || found == known.end()) {
      continue;
    }
    const Call* call = found->second;
    std::vector<Belief>& beliefs = open[call->name];
    switch (event.kind) {
      case EventKind::granted:
        // Else it had run out when the caller was told, who slept meanwhile: nobody is let in.
        if (Moment{event.value} > event.time) {
          let_in(run, *call, event, beliefs);
        }
        break;
      case EventKind::alive:
        for (Belief& belief : beliefs) {
          if (belief.call == call) {
            belief.until = std::max(belief.until, Moment{event.value});
          }
        }
        break;
      case EventKind::lost:
      case EventKind::releasing:
        std::erase_if(beliefs, [&](const Belief& belief) { return belief.call == call; });
        break;
      default:
        break;
    }
  }
}

}  // namespace holdfast::proof
