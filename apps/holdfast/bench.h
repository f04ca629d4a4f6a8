#pragma once

#include <holdfast/client.h>
#include <holdfast/error.h>
#include <holdfast/options.h>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// `holdfast bench`: the scenarios of docs/benchmarks.md on the user's own
// store, through the public API only.
namespace holdfast::command::bench {

using Clock = std::chrono::steady_clock;  // one clock for all processes of a machine

// Other numbers than those that a scenario is named after, to see what grows
// with them.
struct Size {
  std::optional<std::uint32_t> threads;  // of U and C
  std::optional<std::uint32_t> names;    // of U, of all threads together
  std::optional<std::uint32_t> waiters;  // of W and Q
};

struct Plan {
  std::string url;
  std::string prefix;  // of every name used: random, so that nobody else's locks are touched
  Duration duration{};
  Size size;
};

struct Figure {
  std::string key;    // in --json
  std::string label;  // for people
  double value = 0;
};
using Figures = std::vector<Figure>;

// Lock and unlock, each thread on names of its own: U1, U8, U32, U128.
Result<Figures> measure_cycles(const Plan& plan, std::uint32_t usual_threads);
// All threads want one name: C16.
Result<Figures> measure_contention(const Plan& plan, std::uint32_t usual_threads);
// The names that each of so many callers goes through.
std::vector<std::vector<std::string>> names_of(const Plan& plan, std::uint32_t callers);
// Callbacks that go through names of their own: A32.
Result<Figures> measure_callbacks(const Plan& plan, std::uint32_t callers);
// Callbacks that want one name, let go at once and line up again: Q100.
Result<Figures> measure_queue(const Plan& plan, std::uint32_t usual_waiters);
// Processes that want one name, a millisecond of work, and again: H4.
Result<Figures> measure_rotation(const Plan& plan, std::uint32_t processes);
// A hand-over to a sleeping process every 700 ms: P2.
Result<Figures> measure_wake_up(const Plan& plan);

// What it costs to wait for held locks.
struct Waiting {
  enum class Names : std::uint8_t { one, many };
  enum class By : std::uint8_t { threads, callbacks };
  std::uint32_t processes = 1;
  std::uint32_t each = 1;  // waits of one process
  Names names = Names::one;
  By by = By::callbacks;
};
Result<Figures> measure_waiting(const Plan& plan, const Waiting& usual);

// Many locks held at once by one process: L100k.
Result<Figures> measure_leases(const Plan& plan, std::uint32_t leases);

// What the processes of a scenario do; see bench_workers.h. False: it failed,
// and the board says why.
Result<bool> work();

// Of sorted values: the nearest rank.
double percentile(const std::vector<double>& sorted, double share);
// The median and the 99th percentile of durations in ns, shown as µs.
Figures latencies(std::vector<double> ns, const std::string& what);
double seconds(Clock::duration duration);

}  // namespace holdfast::command::bench
