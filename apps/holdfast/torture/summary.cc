#include "torture/summary.h"

#include <algorithm>
#include <boost/json.hpp>
#include <iostream>
#include <map>
#include <numeric>
#include <sstream>

#include "bench.h"
#include "duration.h"
#include "table.h"

namespace holdfast::command::torture {
namespace {

using proof::Call;
using proof::Event;
using proof::EventKind;
using proof::History;

double milliseconds(proof::Moment time) {
  return std::chrono::duration<double, std::milli>{time}.count();
}

// Exclusive stays of each lock, one after the other.
void add_hand_overs(Summary& summary, const History& history, const std::vector<Call>& calls) {
  std::map<std::uint32_t, std::vector<const Call*>> stays;
  for (const Call& call : calls) {
    if (call.granted && call.shape.mode == Mode::exclusive) {
      stays[call.name].push_back(&call);
    }
  }
  for (auto& [name, list] : stays) {
    std::ranges::sort(list, {}, [](const Call* call) { return *call->answered; });
    for (std::size_t i = 1; i < list.size(); ++i) {
      const Call& before = *list[i - 1];
      const Call& after = *list[i];
      ++(before.process == after.process ? summary.local_hand_overs : summary.hand_overs);
      if (before.releasing &&
          after.called<*before.releasing&& * after.answered> * before.releasing) {
        summary.gap_ms.push_back(
            milliseconds(history[*after.answered].time - history[*before.releasing].time));
      }
    }
  }
}

struct Percentile {
  const char* key;
  double share;
};
constexpr std::array<Percentile, 4> kPercentiles{
    {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"max", 1.0}}};

}  // namespace

std::uint64_t Summary::all_faults() const {
  return std::accumulate(faults.begin(), faults.end(), std::uint64_t{0});
}

void Summary::add(const History& history) {
  ++rounds;
  events += history.size();
  for (const Event& event : history) {
    switch (event.kind) {
      case EventKind::called:
        ++operations;
        break;
      case EventKind::granted:
        ++granted;
        break;
      case EventKind::refused:
        ++refused[std::string{to_string(event.code)}];
        break;
      case EventKind::nested:
        ++nested;
        break;
      case EventKind::wrote:
        ++writes;
        break;
      case EventKind::turned_away:
        ++stale_writes;
        break;
      case EventKind::lost:
        ++lost;
        break;
      case EventKind::fault:
        ++faults.at(static_cast<std::size_t>(event.fault));
        break;
      default:
        break;
    }
  }
  const proof::Calls calls = proof::calls_of(history);
  for (const Call& call : calls.all) {
    if (call.granted) {
      wait_ms.push_back(milliseconds(history[*call.answered].time - history[call.called].time));
    }
  }
  add_hand_overs(*this, history, calls.all);
}

void print_json(Outcome& outcome) {
  namespace bj = boost::json;
  Summary& summary = outcome.summary;
  bj::object refused;
  for (const auto& [code, count] : summary.refused) {
    refused[code] = count;
  }
  bj::object faults;
  for (std::size_t i = 0; i < proof::kFaults; ++i) {
    if (summary.faults.at(i) > 0) {
      faults[proof::to_string(static_cast<proof::Fault>(i))] = summary.faults.at(i);
    }
  }
  const auto latencies = [](std::vector<double>& values) {
    std::ranges::sort(values);
    bj::object object;
    for (const auto& [key, share] : kPercentiles) {
      object[key] = bench::percentile(values, share);
    }
    return object;
  };
  bj::array violations;
  for (const Finding& finding : outcome.findings) {
    violations.push_back(bj::object{
        {"property", finding.property}, {"text", finding.text}, {"events", finding.events}});
  }
  bj::object object{{"store", outcome.store},
                    {"engine", outcome.engine},
                    {"strategy", outcome.strategy},
                    {"seed", outcome.seed},
                    {"seconds", outcome.seconds},
                    {"processes", outcome.processes},
                    {"threads", outcome.threads},
                    {"ttl_ms", milliseconds(outcome.ttl)},
                    {"verdict", outcome.findings.empty() ? "passed" : "violated"},
                    {"rounds", summary.rounds},
                    {"events", summary.events},
                    {"operations", summary.operations},
                    {"granted", summary.granted},
                    {"refused", std::move(refused)},
                    {"nested", summary.nested},
                    {"writes", summary.writes},
                    {"stale_writes_refused", summary.stale_writes},
                    {"leases_lost", summary.lost},
                    {"hand_overs", summary.hand_overs},
                    {"local_hand_overs", summary.local_hand_overs},
                    {"faults", std::move(faults)},
                    {"faults_total", summary.all_faults()},
                    {"wait_ms", latencies(summary.wait_ms)},
                    {"hand_over_ms", latencies(summary.gap_ms)},
                    {"violations", std::move(violations)}};
  if (!outcome.timeline.empty()) {
    object["timeline"] = outcome.timeline;
  }
  std::cout << bj::serialize(object) << '\n';
}

void print_text(Outcome& outcome) {
  Summary& summary = outcome.summary;
  Table table{{"WHAT", "HOW OFTEN"}};
  const auto row = [&](const std::string& what, std::uint64_t count) {
    table.add({{what}, {std::to_string(count)}});
  };
  row("acquires", summary.operations);
  row("  granted", summary.granted);
  for (const auto& [code, count] : summary.refused) {
    row("  " + code, count);
  }
  row("re-entries", summary.nested);
  row("hand-overs between processes", summary.hand_overs);
  row("hand-overs inside a process", summary.local_hand_overs);
  row("writes", summary.writes);
  row("stale writes turned away", summary.stale_writes);
  row("leases lost", summary.lost);
  row("faults", summary.all_faults());
  for (std::size_t i = 0; i < proof::kFaults; ++i) {
    if (summary.faults.at(i) > 0) {
      row("  " + std::string{proof::to_string(static_cast<proof::Fault>(i))}, summary.faults.at(i));
    }
  }
  table.print(std::cout, Paint{});
  const auto say = [](const char* what, std::vector<double>& values) {
    std::ranges::sort(values);
    std::ostringstream line;
    line.precision(2);
    line << std::fixed << what;
    for (const auto& [key, share] : kPercentiles) {
      line << "  " << key << ' ' << bench::percentile(values, share) << " ms";
    }
    std::cout << line.str() << '\n';
  };
  std::cout << '\n';
  say("wait until granted   ", summary.wait_ms);
  say("from release to entry", summary.gap_ms);
  std::cout << '\n';
  for (const Finding& finding : outcome.findings) {
    std::cout << finding.events << '\n';
  }
  if (outcome.findings.empty()) {
    std::cout << "passed: " << summary.events << " events in " << summary.rounds
              << " rounds show no violation (seed " << outcome.seed << ")\n";
  } else {
    std::cout << "VIOLATED (seed " << outcome.seed << "): of each property at most "
              << proof::kToldOfEach << " are shown; the timeline is in " << outcome.timeline
              << '\n';
  }
}

}  // namespace holdfast::command::torture
