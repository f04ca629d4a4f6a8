// H4 and P2: how fast a lock passes between processes, and in which order.

#include <unistd.h>

#include <algorithm>
#include <thread>

#include "bench_workers.h"

namespace holdfast::command::bench {
namespace {

using namespace std::chrono_literals;

constexpr Duration kWork = 1ms;
constexpr Duration kPause = 700ms;
constexpr std::uint32_t kFewestRounds = 3;

std::string name_on(const Board& board) {
  return std::string{board.prefix.data()} + "passed";
}

void work_until(std::int64_t end) {
  while (now_ns() < end) {
  }
}

// Who was first in line while one held the lock must be the next to hold it.
std::uint32_t count_overtakes(const std::vector<Stay>& by_entry) {
  std::uint32_t overtakes = 0;
  for (std::size_t i = 1; i < by_entry.size(); ++i) {
    const pid_t first_in_line = by_entry[i - 1].next;
    overtakes += first_in_line != 0 && first_in_line != by_entry[i].process ? 1U : 0U;
  }
  return overtakes;
}

// 0 if nobody waits, or the engine does not tell.
pid_t first_in_line(Client& client, const std::string& name) {
  const auto lock = client.show(name);
  return lock && !lock->queue.empty() ? static_cast<pid_t>(lock->queue.front().party.pid) : 0;
}

}  // namespace

// --- H4

Result<void> rotate(Board& board, Client& client) {
  const std::string name = name_on(board);
  board.ready.fetch_add(1);
  sleep_until([&] { return board.step.load() >= 1; });
  do {
    auto lease = client.acquire(name);
    if (!lease) {
      return tl::unexpected{std::move(lease.error())};
    }
    Stay stay{.process = getpid(), .entered = now_ns()};
    stay.next = first_in_line(client, name);
    work_until(stay.entered + kWork.count());
    const std::uint32_t index = board.stays.fetch_add(1);
    if (index >= kMaxStays) {
      break;
    }
    stay.left = now_ns();
    board.log.at(index) = stay;
  } while (board.step.load() == 1);
  return client.flush();
}

Result<Figures> measure_rotation(const Plan& plan, std::uint32_t processes) {
  auto workers = Workers::start(plan, Job::rotate, processes, [](Board&) {});
  if (!workers) {
    return tl::unexpected{std::move(workers.error())};
  }
  if (auto ready = workers->await_ready(processes); !ready) {
    return tl::unexpected{std::move(ready.error())};
  }
  workers->next_step();
  std::this_thread::sleep_for(plan.duration);
  workers->next_step();
  if (auto finished = workers->finish(); !finished) {
    return tl::unexpected{std::move(finished.error())};
  }
  const std::uint32_t count = std::min(workers->board().stays.load(), kMaxStays);
  std::vector<Stay> stays(workers->board().log.begin(), workers->board().log.begin() + count);
  std::sort(stays.begin(), stays.end(),
            [](const Stay& a, const Stay& b) { return a.entered < b.entered; });
  std::vector<double> gaps;
  std::uint32_t overlaps = 0;
  for (std::size_t i = 1; i < stays.size(); ++i) {
    overlaps += stays[i].entered < stays[i - 1].left ? 1U : 0U;
    if (stays[i].process != stays[i - 1].process) {
      gaps.push_back(static_cast<double>(stays[i].entered - stays[i - 1].left));
    }
  }
  Figures figures = latencies(gaps, "release to next entry,");
  figures.push_back({"hand_overs", "hand-overs", static_cast<double>(gaps.size())});
  figures.push_back({"overtakes", "overtakes", static_cast<double>(count_overtakes(stays))});
  figures.push_back({"overlaps", "overlaps", static_cast<double>(overlaps)});
  return figures;
}

// --- P2

namespace {

// Holds the lock, sees the other one queue, waits, lets go. Rounds count up
// twice: when the lock is held, and when the other one has had it.
Result<void> let_go_often(Board& board, Client& client, const std::string& name) {
  for (std::uint32_t round = 0; round < board.rounds; ++round) {
    auto lease = client.acquire(name);
    if (!lease) {
      return tl::unexpected{std::move(lease.error())};
    }
    board.round = 2 * round + 1;
    std::this_thread::sleep_for(kPause);
    board.log.at(round).left = now_ns();
    if (auto released = lease->release(); !released) {
      return released;
    }
    sleep_until([&] { return board.round.load() == 2 * round + 2; });
  }
  return {};
}

Result<void> sleep_and_enter(Board& board, Client& client, const std::string& name) {
  for (std::uint32_t round = 0; round < board.rounds; ++round) {
    sleep_until([&] { return board.round.load() == 2 * round + 1; });
    auto lease = client.acquire(name);
    const std::int64_t entered = now_ns();
    if (!lease) {
      return tl::unexpected{std::move(lease.error())};
    }
    board.log.at(round).entered = entered;
    if (auto released = lease->release(); !released) {
      return released;
    }
    board.round = 2 * round + 2;
  }
  return {};
}

}  // namespace

Result<void> hand_over(Board& board, Client& client, std::uint32_t worker) {
  const std::string name = name_on(board);
  return worker == 0 ? let_go_often(board, client, name) : sleep_and_enter(board, client, name);
}

Result<Figures> measure_wake_up(const Plan& plan) {
  const auto rounds = std::max(kFewestRounds, static_cast<std::uint32_t>(plan.duration / kPause));
  auto workers =
      Workers::start(plan, Job::wake_up, 2, [&](Board& board) { board.rounds = rounds; });
  if (!workers) {
    return tl::unexpected{std::move(workers.error())};
  }
  if (auto finished = workers->finish(); !finished) {
    return tl::unexpected{std::move(finished.error())};
  }
  std::vector<double> gaps;
  for (std::uint32_t round = 0; round < rounds; ++round) {
    const Stay& stay = workers->board().log.at(round);
    gaps.push_back(static_cast<double>(stay.entered - stay.left));
  }
  return latencies(gaps, "release to entry,");
}

}  // namespace holdfast::command::bench
