#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "core/commands.h"
#include "simulation/mutants.h"
#include "simulation/random.h"
#include "simulation/scenario.h"

namespace holdfast::sim {

using base::Duration;
using base::Time;

// When a run starts, by the store's clock, which is the true time here.
inline constexpr Time kStart{std::chrono::hours{1}};

// What happens when, in true time.
class Timeline {
 public:
  Time now() const noexcept { return now_; }
  void at(Time when, std::function<void()> what);
  void after(Duration delay, std::function<void()> what) { at(now_ + delay, std::move(what)); }
  // Carries out the next event. False if there is none.
  bool step();
  // Lets time pass with nothing happening.
  void skip(Duration time) { now_ += time; }
  Time next() const noexcept { return events_.empty() ? base::kNever : events_.front().when; }
  std::uint64_t steps() const noexcept { return steps_; }

 private:
  struct Event {
    Time when;
    std::uint64_t order;
    std::function<void()> what;
  };
  static bool later(const Event& a, const Event& b) {
    return a.when != b.when ? a.when > b.when : a.order > b.order;
  }
  Time now_ = kStart;
  std::uint64_t steps_ = 0;
  std::uint64_t order_ = 0;
  std::vector<Event> events_;  // a heap
};

// A process's own clock: some other epoch, and not quite the same speed.
class LocalClock {
 public:
  LocalClock(Duration offset, int drift_ppm) : offset_{offset}, drift_ppm_{drift_ppm} {}
  Time at(Time truth) const noexcept;
  // The first true moment at which this clock shows `local` or more.
  Time truth_of(Time local) const noexcept;

 private:
  Duration offset_;
  int drift_ppm_;
};

// The broken promises of one run.
class Verdict {
 public:
  struct Violation {
    std::string property;  // "S2", ...: as the checks are named in README.md
    std::string text;
  };
  void add(std::string_view property, std::string text, Time at);
  bool clean() const noexcept { return count_ == 0; }
  const std::set<std::string>& properties() const noexcept { return properties_; }
  const std::vector<Violation>& violations() const noexcept { return violations_; }

 private:
  std::size_t count_ = 0;
  std::set<std::string> properties_;
  std::vector<Violation> violations_;  // the first ones
};

// A lease on its way from one user to another: what a hand-over code says.
struct Parcel {
  std::string name;
  core::RequestId request;
  core::Shape shape;
  Time good_until{};
  bool used = false;
};

// What all parts of one run share.
struct Stage {
  explicit Stage(const Scenario& what, Mutant which = Mutant::none)
      : scenario{what},
        mutant{which},
        dice{what.seed ^ 0x5157ULL},
        network_dice{dice.fork()},
        user_dice{dice.fork()},
        fault_dice{dice.fork()} {}

  const Scenario& scenario;
  const Mutant mutant;
  Timeline timeline;
  Verdict verdict;
  Random dice;
  Random network_dice;
  Random user_dice;
  Random fault_dice;
  std::ostream* trace = nullptr;
  std::map<std::string, std::uint32_t> limits;  // of semaphores, as everybody knows them
  std::vector<Parcel> parcels;

  Time now() const noexcept { return timeline.now(); }
  bool over() const noexcept { return now() >= kStart + scenario.length; }
  void violate(std::string_view property, std::string text) {
    tell("VIOLATION", [&](auto& out) { out << property << ": " << text; });
    verdict.add(property, std::move(text), now());
  }

  // One line of the event trace, if anybody reads it.
  template <typename Say>
  void tell(std::string_view who, Say say) {
    if (trace != nullptr) {
      begin_line(who);
      say(*trace);
      end_line();
    }
  }

 private:
  void begin_line(std::string_view who);
  void end_line();
};

}  // namespace holdfast::sim
