#include "torture/round.h"

#include <algorithm>
#include <cstring>
#include <thread>

namespace holdfast::command::torture {
namespace {

using namespace std::chrono_literals;
using proof::EventKind;

constexpr std::uint32_t kPermits = 3;

// Of different ttls the lock cannot be passed on inside a process.
Duration longest_ttl(const Plan& plan) {
  return std::min(plan.ttl * 2, plan.store.max_ttl);
}

void prepare(Board& board, const Plan& plan, std::uint64_t seed) {
  board.seed = seed;
  board.ttl = plan.ttl.count();
  board.longest_ttl = longest_ttl(plan).count();
  board.threads = plan.threads;
  std::memcpy(board.prefix.data(), plan.prefix.data(),
              std::min(plan.prefix.size(), board.prefix.size() - 1));
  const auto add = [&](Mode mode, std::uint32_t limit) {
    if (board.lock_count == kMostLocks) {
      return;
    }
    Lock& lock = board.locks.at(board.lock_count++);
    lock.mode = mode;
    lock.limit = limit;
  };
  while (board.lock_count < kMostLocks) {
    add(Mode::exclusive, 0);
    if (plan.store.shared) {
      add(Mode::shared, 0);
    }
    if (plan.store.permits) {
      add(Mode::permits, kPermits);
    }
    add(Mode::exclusive, 0);
    board.hot_locks = board.hot_locks == 0 ? board.lock_count : board.hot_locks;
  }
}

proof::Rules rules_for(const Plan& plan) {
  proof::Rules rules;
  rules.token = plan.store.token == TokenKind::rising;
  rules.lease = plan.store.lease || plan.store.exclusion == ExclusionBy::quorum;
  rules.fifo = plan.store.fifo;
  rules.ttl = longest_ttl(plan);
  rules.stop_hits_all = plan.store.engine == "sqlite";
  return rules;
}

// L4: what the store still knows when nobody wants anything.
Result<void> look_for_leftovers(Board& board, const Plan& plan) {
  auto client = Client::open(plan.url, {.label = "holdfast torture"});
  if (!client) {
    return tl::unexpected{std::move(client.error())};
  }
  const proof::Rules rules = rules_for(plan);
  const auto deadline = std::chrono::steady_clock::now() + rules.ttl + rules.slack;
  while (true) {
    const auto locks = client->list(plan.prefix);
    if (!locks) {
      if (std::chrono::steady_clock::now() > deadline) {
        return tl::unexpected{locks.error()};
      }
      std::this_thread::sleep_for(20ms);  // a busy store, too, gets a second chance
      continue;
    }
    const auto in_use = [](const LockInfo& lock) {
      return !lock.holders.empty() || !lock.queue.empty();
    };
    if (std::ranges::none_of(*locks, in_use)) {
      return {};
    }
    if (std::chrono::steady_clock::now() > deadline) {
      for (std::uint32_t lock = 0; lock < board.lock_count; ++lock) {
        const auto left = std::ranges::find(*locks, lock_name(board, lock), &LockInfo::name);
        if (left != locks->end() && in_use(*left)) {
          proof::Event event;
          event.kind = EventKind::left_over;
          event.name = lock;
          event.time = proof::boot_time();
          board.log.put(board.log.take(), event);
        }
      }
      return {};
    }
    std::this_thread::sleep_for(20ms);
  }
}

void remember_tokens(const proof::History& history,
                     std::unordered_map<std::uint32_t, std::uint64_t>& tokens) {
  for (const proof::Event& event : history) {
    if (event.kind == EventKind::granted && event.mode == Mode::exclusive) {
      std::uint64_t& highest = tokens[event.name];
      highest = std::max(highest, event.token);
    }
  }
}

Result<void> torment(const Plan& plan, const Line& line, Duration length, std::uint64_t seed,
                     BoardMemory& memory) {
  Board& board = memory.board();
  Crew crew{memory, line.url()};
  for (std::uint32_t i = 0; i < plan.processes; ++i) {
    if (auto started = crew.start(); !started) {
      return tl::unexpected{std::move(started.error())};
    }
  }
  Nemesis nemesis{board, crew, line, plan.faults, plan.grants_a_fault, seed};
  const auto end = std::chrono::steady_clock::now() + length;
  while (std::chrono::steady_clock::now() < end && !board.log.is_nearly_full()) {
    auto fine = crew.look_after();
    if (fine) {
      fine = nemesis.tick();
    }
    if (!fine) {
      return fine;
    }
    std::this_thread::sleep_for(2ms);
  }
  nemesis.rest();
  board.draining = true;
  // Whoever waits for ever must be let in now that all is well again. Those
  // who are not are in the history, as calls without an answer.
  const proof::Rules rules = rules_for(plan);
  const auto ended =
      crew.await_end(rules.recovery + rules.ttl * 3 + rules.backstop + rules.slack * 4);
  return ended ? Result<void>{} : tl::unexpected{ended.error()};
}

}  // namespace

Result<RoundResult> run_round(const Plan& plan, const Line& line, Duration length,
                              std::uint64_t seed,
                              std::unordered_map<std::uint32_t, std::uint64_t>& tokens) {
  auto memory = BoardMemory::make();
  if (!memory) {
    return tl::unexpected{std::move(memory.error())};
  }
  Board& board = memory->board();
  prepare(board, plan, seed);
  const proof::Moment start = proof::boot_time();
  auto done = torment(plan, line, length, seed, *memory);
  if (done) {
    done = look_for_leftovers(board, plan);
  }
  if (!done) {
    return tl::unexpected{std::move(done.error())};
  }
  RoundResult result{.history = board.log.history(start), .violations = {}};
  proof::Rules rules = rules_for(plan);
  rules.token_floor = tokens;
  result.violations = proof::check(result.history, rules);
  remember_tokens(result.history, tokens);
  return result;
}

}  // namespace holdfast::command::torture
