#include "native_locks.h"

#include <algorithm>
#include <thread>

#include "baselines.h"

namespace baselines {
namespace {

constexpr unsigned kNames = 100;
constexpr unsigned kContenders = 16;

std::string name_of(unsigned thread, std::size_t i) {
  return "peer:" + std::to_string(thread) + ":" + std::to_string(i % kNames);
}

// One connection a thread.
class Team {
 public:
  Team(const NativeLock& lock, unsigned threads) : lock_{lock} {
    std::vector<std::string> names;
    for (unsigned thread = 0; thread < threads; ++thread) {
      connections_.push_back(lock.connect());
      for (unsigned i = 0; i < kNames; ++i) {
        names.push_back(name_of(thread, i));
      }
    }
    if (lock.prepare) {
      run(0, lock.prepare(names));
    }
  }
  void take(unsigned thread, const std::string& name) const { run(thread, lock_.take(name)); }
  void free(unsigned thread, const std::string& name) const { run(thread, lock_.free(name)); }

 private:
  void run(unsigned thread, const Statements& statements) const {
    for (const std::string& statement : statements) {
      connections_[thread](statement);
    }
  }

  const NativeLock& lock_;
  std::vector<std::function<void(const std::string&)>> connections_;
};

double cycles(const NativeLock& lock, unsigned threads, double seconds) {
  const Team team{lock, threads};
  return repeat(seconds, threads, [&](unsigned thread, std::size_t i) {
    const std::string name = name_of(thread, i);
    team.take(thread, name);
    team.free(thread, name);
  });
}

double hand_overs(const NativeLock& lock, double seconds) {
  const Team team{lock, kContenders};
  const std::string name = name_of(0, 0);
  unsigned holder = kContenders;  // guarded, like what follows, by the lock itself
  std::size_t changes = 0;
  std::size_t calls = 0;
  const double rate = repeat(seconds, kContenders, [&](unsigned thread, std::size_t) {
    team.take(thread, name);
    ++calls;
    changes += holder == thread ? 0U : 1U;
    holder = thread;
    team.free(thread, name);
  });
  return rate * static_cast<double>(changes) / static_cast<double>(calls);
}

double wake_up(const NativeLock& lock, double seconds) {
  const Team team{lock, 2};
  const std::string name = name_of(0, 0);
  std::vector<double> gaps;
  const auto end = Clock::now() + std::chrono::duration<double>{seconds};
  do {
    team.take(0, name);
    Clock::time_point entered;
    std::jthread next{[&] {
      team.take(1, name);
      entered = Clock::now();
    }};
    std::this_thread::sleep_for(kBetweenHandOvers);
    const Clock::time_point released = Clock::now();
    team.free(0, name);
    next.join();
    team.free(1, name);
    gaps.push_back(std::chrono::duration<double, std::micro>{entered - released}.count());
  } while (Clock::now() < end);
  std::sort(gaps.begin(), gaps.end());
  return gaps[gaps.size() / 2];
}

}  // namespace

double measure_native_lock(const NativeLock& lock, std::string_view scenario, double seconds) {
  if (scenario == "C16") {
    return hand_overs(lock, seconds);
  }
  if (scenario == "P2") {
    return wake_up(lock, seconds);
  }
  return cycles(lock, scenario == "U32" ? 32 : 1, seconds);
}

}  // namespace baselines
