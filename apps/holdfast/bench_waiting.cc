// W100, W1000, W1000n, W50p: what waiting costs.

#include <sys/resource.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <stop_token>
#include <thread>

#include "bench_workers.h"

namespace holdfast::command::bench {
namespace {

using namespace std::chrono_literals;

// For what is still in motion after the last wait began.
constexpr Duration kSettle = 1s;

struct Usage {
  std::int64_t cpu = 0;
  std::int64_t sleeps = 0;
};

Usage usage_now() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto ns = [](const timeval& time) {
    return std::int64_t{time.tv_sec} * 1'000'000'000 + std::int64_t{time.tv_usec} * 1'000;
  };
  return {ns(usage.ru_utime) + ns(usage.ru_stime), usage.ru_nvcsw};
}

std::int64_t open_descriptors() {
  std::int64_t count = -1;  // the one that looks
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator{"/proc/self/fd"}) {
    ++count;
  }
  return count;
}

std::string name_of(const Board& board, std::uint32_t index) {
  return std::string{board.prefix.data()} + "held:" + std::to_string(index);
}

std::uint32_t names_on(const Board& board) {
  return board.waiting.names == Waiting::Names::many ? board.waiting.each : 1;
}

// The first worker: holds what the others wait for.
Result<void> hold(Board& board, Client& client) {
  std::vector<Lease> held;
  for (std::uint32_t i = 0; i < names_on(board); ++i) {
    auto lease = client.acquire(name_of(board, i));
    if (!lease) {
      return tl::unexpected{std::move(lease.error())};
    }
    held.push_back(std::move(*lease));
  }
  board.ready.fetch_add(1);
  sleep_until([&] { return board.step.load() >= 3; });
  for (const Lease& lease : held) {
    if (!lease.is_alive()) {
      return fail(ErrorCode::lease_lost, "a lock was lost while others waited for it");
    }
  }
  held.clear();
  return client.flush();
}

// Many waits at once; all end when it does.
class Waits {
 public:
  Waits(const Board& board, Client& client) {
    const std::uint32_t names = names_on(board);
    for (std::uint32_t i = 0; i < board.waiting.each; ++i) {
      const std::string name = name_of(board, i % names);
      if (board.waiting.by == Waiting::By::threads) {
        threads_.emplace_back(
            [this, name, &client] { end(client.acquire(name, {.stop = stop_.get_token()})); });
      } else {
        pending_.fetch_add(1);
        client.acquire_then(name, {.stop = stop_.get_token()}, [this](Result<Lease> result) {
          end(result);
          pending_.fetch_sub(1);
        });
      }
    }
  }

  // False if a wait ended before it was told to.
  bool finish() {
    stop_.request_stop();
    threads_.clear();
    sleep_until([&] { return pending_.load() == 0; });
    return !ended_early_;
  }

 private:
  void end(const Result<Lease>& result) {
    if (result || result.error().code != ErrorCode::cancelled) {
      ended_early_ = true;
    }
  }

  std::stop_source stop_;
  std::vector<std::jthread> threads_;
  std::atomic<std::uint32_t> pending_ = 0;
  std::atomic<bool> ended_early_ = false;
};

Result<void> wait(Board& board, Client& client, Slot& slot) {
  sleep_until([&] { return board.step.load() >= 1; });
  Waits waits{board, client};
  std::this_thread::sleep_for(kSettle);
  const Usage before = usage_now();
  const std::int64_t began = now_ns();
  std::this_thread::sleep_for(std::chrono::nanoseconds{board.duration});
  const auto elapsed = static_cast<double>(now_ns() - began);
  const Usage after = usage_now();
  slot.cpu = static_cast<std::int64_t>(static_cast<double>(after.cpu - before.cpu) *
                                       static_cast<double>(board.duration) / elapsed);
  slot.sleeps = after.sleeps - before.sleeps - 1;  // our own
  slot.descriptors = open_descriptors();
  board.ready.fetch_add(1);
  sleep_until([&] { return board.step.load() >= 2; });
  const bool all_waited = waits.finish();
  board.ready.fetch_add(1);
  sleep_until([&] { return board.step.load() >= 3; });
  if (!all_waited) {
    return fail(ErrorCode::unavailable, "a wait ended although the lock was held");
  }
  return {};
}

}  // namespace

Result<void> wait_long(Board& board, Client& client, std::uint32_t worker) {
  return worker == 0 ? hold(board, client) : wait(board, client, board.slots.at(worker));
}

Result<Figures> measure_waiting(const Plan& plan, const Waiting& usual) {
  Waiting waiting = usual;
  waiting.each = plan.size.waiters.value_or(usual.each);
  auto workers = Workers::start(plan, Job::wait, waiting.processes + 1,
                                [&](Board& board) { board.waiting = waiting; });
  if (!workers) {
    return tl::unexpected{std::move(workers.error())};
  }
  // Held; watched while they waited; waits ended.
  for (const std::uint32_t ready : {1U, waiting.processes, waiting.processes}) {
    if (auto done = workers->await_ready(ready); !done) {
      return tl::unexpected{std::move(done.error())};
    }
    workers->next_step();
  }
  if (auto finished = workers->finish(); !finished) {
    return tl::unexpected{std::move(finished.error())};
  }
  double cpu = 0;
  double sleeps = 0;
  double descriptors = 0;
  for (std::uint32_t i = 1; i <= waiting.processes; ++i) {
    const Slot& slot = workers->board().slots.at(i);
    cpu += static_cast<double>(slot.cpu);
    sleeps += static_cast<double>(slot.sleeps);
    descriptors = std::max(descriptors, static_cast<double>(slot.descriptors));
  }
  const auto duration = static_cast<double>(plan.duration.count());
  return Figures{{"cpu_percent", "% of one core, all waiting processes", 100 * cpu / duration},
                 {"wake_ups_per_s", "wake-ups/s, all waiting processes", sleeps / duration * 1e9},
                 {"descriptors", "descriptors a process", descriptors}};
}

}  // namespace holdfast::command::bench
