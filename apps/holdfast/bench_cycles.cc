// U1 to U128, C16: threads of one process.

#include <algorithm>
#include <atomic>
#include <barrier>
#include <functional>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>

#include "bench.h"

namespace holdfast::command::bench {
namespace {

constexpr std::size_t kNamesOfAThread = 100;
// Every so many cycles are timed: reading the clock is not what is measured.
constexpr std::uint64_t kTimed = 8;

struct Tally {
  double elapsed = 0;          // seconds
  std::vector<double> counts;  // one a thread

  double sum() const { return std::accumulate(counts.begin(), counts.end(), 0.0); }
};

// Repeats `once(thread, i)` in every thread until the time is over. What the first `warm_up`
// of each are about is not counted; nor do they take longer than what is.
Result<Tally> repeat(Duration duration, std::uint32_t threads,
                     const std::function<Result<void>(std::uint32_t, std::uint64_t)>& once,
                     std::size_t warm_up = 0) {
  std::atomic<bool> over = false;
  std::barrier start{static_cast<std::ptrdiff_t>(threads) + 1};
  std::mutex mutex;
  std::optional<Error> trouble;
  Tally tally;
  tally.counts.resize(threads);
  std::vector<std::jthread> team;
  for (std::uint32_t thread = 0; thread < threads; ++thread) {
    team.emplace_back([&, thread] {
      const auto good = [&](Result<void> done) {
        if (!done) {
          const std::lock_guard lock{mutex};
          trouble = std::move(done.error());
        }
        return done.has_value();
      };
      const Clock::time_point warm = Clock::now() + duration;
      for (std::size_t i = 0; i < warm_up && Clock::now() < warm && good(once(thread, i)); ++i) {
      }
      start.arrive_and_wait();
      std::uint64_t count = 0;
      while (good(once(thread, count))) {
        ++count;
        if (over.load(std::memory_order_relaxed)) {
          break;
        }
      }
      tally.counts[thread] = static_cast<double>(count);
    });
  }
  start.arrive_and_wait();
  const Clock::time_point began = Clock::now();
  std::this_thread::sleep_for(duration);
  over = true;
  tally.elapsed = seconds(Clock::now() - began);
  team.clear();
  if (trouble) {
    return tl::unexpected{std::move(*trouble)};
  }
  return tally;
}

// ~Lease unlocks.
Result<void> cycle(Client& client, const std::string& name) {
  return client.acquire(name).map([](const Lease&) {});
}

}  // namespace

std::vector<std::vector<std::string>> names_of(const Plan& plan, std::uint32_t threads) {
  const std::size_t each =
      plan.size.names ? std::max<std::size_t>(1, *plan.size.names / threads) : kNamesOfAThread;
  std::vector<std::vector<std::string>> names(threads);
  for (std::uint32_t thread = 0; thread < threads; ++thread) {
    for (std::size_t i = 0; i < each; ++i) {
      names[thread].push_back(plan.prefix + std::to_string(thread) + ":" + std::to_string(i));
    }
  }
  return names;
}

Result<Figures> measure_cycles(const Plan& plan, std::uint32_t usual_threads) {
  const std::uint32_t threads = plan.size.threads.value_or(usual_threads);
  auto client = Client::open(plan.url);
  if (!client) {
    return tl::unexpected{std::move(client.error())};
  }
  const auto names = names_of(plan, threads);
  std::vector<std::vector<double>> times(threads);
  const auto once = [&](std::uint32_t thread, std::uint64_t count) {
    const std::string& name = names[thread][count % names[thread].size()];
    if (count == 0) {
      times[thread].clear();  // those of the warm-up
    }
    if (count % kTimed != 0) {
      return cycle(*client, name);
    }
    const Clock::time_point began = Clock::now();
    auto done = cycle(*client, name);
    times[thread].push_back(std::chrono::duration<double, std::nano>{Clock::now() - began}.count());
    return done;
  };
  // Every name once before: what a store does for a new one is not what U scenarios are about.
  const auto tally = repeat(plan.duration, threads, once, names.front().size());
  if (!tally) {
    return tl::unexpected{tally.error()};
  }
  if (auto flushed = client->flush(); !flushed) {
    return tl::unexpected{std::move(flushed.error())};
  }
  Figures figures{{"cycles_per_s", "lock+unlock cycles/s", tally->sum() / tally->elapsed}};
  std::vector<double> all;
  for (const std::vector<double>& each : times) {
    all.insert(all.end(), each.begin(), each.end());
  }
  for (Figure& figure : latencies(std::move(all), "a cycle,")) {
    figures.push_back(std::move(figure));
  }
  return figures;
}

Result<Figures> measure_contention(const Plan& plan, std::uint32_t usual_threads) {
  const std::uint32_t threads = plan.size.threads.value_or(usual_threads);
  auto client = Client::open(plan.url);
  if (!client) {
    return tl::unexpected{std::move(client.error())};
  }
  const std::string name = plan.prefix + "contended";
  std::uint32_t holder = threads;  // guarded, like what follows, by the lock itself
  std::uint64_t hand_overs = 0;
  const auto tally = repeat(plan.duration, threads, [&](std::uint32_t thread, std::uint64_t) {
    return client->acquire(name).map([&](const Lease&) {
      hand_overs += holder == thread ? 0 : 1;
      holder = thread;
    });
  });
  if (!tally) {
    return tl::unexpected{tally.error()};
  }
  if (auto flushed = client->flush(); !flushed) {
    return tl::unexpected{std::move(flushed.error())};
  }
  const double mean = tally->sum() / threads;
  const double largest = *std::max_element(tally->counts.begin(), tally->counts.end());
  return Figures{
      {"hand_overs_per_s", "hand-overs/s", static_cast<double>(hand_overs) / tally->elapsed},
      {"largest_share", "largest share over mean", mean > 0 ? largest / mean : 0}};
}

}  // namespace holdfast::command::bench
