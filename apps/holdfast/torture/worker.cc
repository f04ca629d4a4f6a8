// A worker process: threads that take locks in every way there is, use the
// resource behind them, and write down what they did and were told.

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "torture/board.h"
#include "torture/dice.h"

namespace holdfast::command::torture {
namespace {

using namespace std::chrono_literals;
using proof::boot_time;
using proof::Event;
using proof::EventKind;
using proof::Sequence;

// What the threads of a process share.
struct Station {
  Board& board;
  Client& client;
  std::uint32_t process = 0;
  std::atomic<std::uint32_t> calls = 0;
};

// Asks an acquire to stop after a while, unless it has ended before.
class Canceller {
 public:
  explicit Canceller(Duration after)
      : thread_{[this, after](const std::stop_token& ended) {
          std::mutex mutex;
          std::unique_lock lock{mutex};
          std::condition_variable_any alarm;
          alarm.wait_for(lock, ended, after, [] { return false; });
          source_.request_stop();
        }} {}
  std::stop_token token() const { return source_.get_token(); }

 private:
  std::stop_source source_;
  std::jthread thread_;
};

bool is_weather(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
    case ErrorCode::unsupported:
    case ErrorCode::unauthorized:
      return false;
    default:
      return true;
  }
}

// One thread.
class Worker {
 public:
  Worker(Station& station, std::uint32_t thread)
      : station_{station},
        board_{station.board},
        thread_{thread},
        dice_{board_.seed ^ (std::uint64_t{station.process} << 32U) ^ thread},
        owner_{Owner::make()} {}

  void run() {
    while (!board_.draining && !board_.log.is_nearly_full()) {
      cycle();
    }
  }

 private:
  Duration ttl() const { return Duration{board_.ttl}; }

  Event event(EventKind kind) const {
    Event event;
    event.kind = kind;
    event.process = station_.process;
    event.thread = thread_;
    event.name = lock_;
    event.call = call_;
    event.mode = options_.mode;
    event.permits = options_.permits;
    event.limit = options_.of;
    event.token = token_;
    event.time = boot_time();
    return event;
  }
  void log(const Event& event) { board_.log.put(board_.log.take(), event); }
  void log(EventKind kind) { log(event(kind)); }
  void log(EventKind kind, ErrorCode code) {
    Event entry = event(kind);
    entry.code = code;
    log(entry);
  }

  void cycle() {
    choose();
    call_ = ++station_.calls;
    token_ = 0;
    std::optional<Canceller> canceller;
    if (dice_.percent(15)) {
      options_.wait = std::nullopt;
      canceller.emplace(dice_.between(0ms, dice_.percent(20) ? ttl() : ttl() / 20));
      options_.stop = canceller->token();
    }
    Event called = event(EventKind::called);
    called.value = options_.wait ? options_.wait->count() : -1;
    log(called);
    Result<Lease> result = acquire();
    if (result) {
      hold(*result);
    } else if (!is_weather(result.error().code)) {
      note_failure(board_, result.error());
      board_.draining = true;
    } else if (result.error().code == ErrorCode::unavailable) {
      std::this_thread::sleep_for(dice_.between(1ms, 20ms));
    }
    if (dice_.percent(20)) {
      std::this_thread::sleep_for(dice_.between(0ms, 2ms));
    }
  }

  void choose() {
    options_ = {};
    // A few are hot, so that there is contention; others are not, so that work
    // goes on while the hot ones wait for a dead holder's lease to end.
    const std::uint32_t most = dice_.percent(40) ? board_.hot_locks : board_.lock_count;
    lock_ = static_cast<std::uint32_t>(dice_.below(most));
    const Lock& lock = board_.locks.at(lock_);
    if (lock.mode == Mode::shared && dice_.percent(60)) {
      options_.mode = Mode::shared;
    }
    if (lock.mode == Mode::permits) {
      options_.mode = Mode::permits;
      options_.of = lock.limit;
      options_.permits = 1 + static_cast<std::uint32_t>(dice_.below(lock.limit));
    }
    options_.ttl = dice_.percent(15) ? Duration{board_.longest_ttl} : ttl();
    if (dice_.percent(25)) {
      options_.wait = 0ms;
    } else if (dice_.percent(65)) {
      options_.wait = dice_.between(1ms, dice_.percent(10) ? ttl() * 2 : ttl() / 10);
    }
    options_.renew = !dice_.percent(5);
    if (dice_.percent(20)) {
      options_.hand_over = 0;
    }
    if (dice_.percent(25)) {
      options_.owner = owner_;
    }
  }

  // The lease, or why not; each answer is written down where it arrives, so
  // that a second one would be seen.
  Result<Lease> acquire() {
    const std::string name = lock_name(board_, lock_);
    if (!dice_.percent(20)) {
      auto result = station_.client.acquire(name, options_);
      answered(result);
      return result;
    }
    std::promise<Result<Lease>> promise;
    auto future = promise.get_future();
    auto first = std::make_shared<std::atomic<bool>>(true);
    station_.client.acquire_then(name, options_, [this, first, &promise](Result<Lease> result) {
      const bool told = !first->exchange(false);
      answered(result);
      if (!told) {
        promise.set_value(std::move(result));
      }
    });
    return future.get();
  }

  void answered(const Result<Lease>& result) {
    if (!result) {
      if (result.error().code == ErrorCode::cancelled && options_.stop.stop_requested()) {
        log(EventKind::cancelling);
      }
      log(EventKind::refused, result.error().code);
      return;
    }
    token_ = result->token().value_or(0);
    ++board_.grants;
    Event granted = event(EventKind::granted);
    // The time was read before what remains is: the claim is never too long.
    granted.value = (granted.time + result->remaining()).count();
    log(granted);
  }

  void hold(Lease& lease) {
    const bool long_one = dice_.below(300) == 0;
    const std::uint64_t looks = 1 + dice_.below(4);
    bool alive = true;
    ++board_.held_by(station_.process);
    for (std::uint64_t i = 0; i < looks && alive; ++i) {
      // Not looking first is what only the fence protects from.
      alive = dice_.percent(20) || look(lease);
      use(lease, long_one);
    }
    if (alive) {
      look(lease);
    }
    --board_.held_by(station_.process);
    let_go(lease);
  }

  // Also by those who know that they lost: the resource must turn them away.
  void use(const Lease& lease, bool long_one) {
    if (options_.mode == Mode::exclusive && token_ != 0) {
      write();
    }
    if (long_one) {
      std::this_thread::sleep_for(dice_.between(0ms, ttl() / 3));
    } else if (dice_.percent(30)) {
      std::this_thread::sleep_for(dice_.between(0ms, 1ms));
    }
    if (options_.owner && dice_.percent(50)) {
      nest(lease);
    }
  }

  bool look(const Lease& lease) {
    const Sequence before = board_.log.take();
    Event entry = event(EventKind::alive);
    const bool alive = lease.is_alive();
    const Duration left = lease.remaining();
    if (!alive) {
      entry.kind = EventKind::lost;
    }
    entry.value = (entry.time + left).count();
    board_.log.put(before, entry);
    return alive;
  }

  void write() {
    const Sequence before = board_.log.take();
    Event entry = event(EventKind::wrote);
    std::atomic<std::uint64_t>& highest = board_.locks.at(lock_).highest;
    std::uint64_t seen = highest.load();
    while (seen <= token_ && !highest.compare_exchange_weak(seen, token_)) {
    }
    if (seen > token_) {
      entry.kind = EventKind::turned_away;
    }
    entry.value = static_cast<std::int64_t>(board_.log.next());
    board_.log.put(before, entry);
  }

  void nest(const Lease& lease) {
    AcquireOptions again = options_;
    again.wait = 0ms;
    again.stop = {};
    auto inner = station_.client.acquire(lock_name(board_, lock_), again);
    // After a loss, which is told before the lease has ended, it is a new grant.
    if (inner && lease.is_alive() && !lease.loss()) {
      Event entry = event(EventKind::nested);
      entry.token = inner->token().value_or(0);
      log(entry);
    }
  }

  void let_go(Lease& lease) {
    log(EventKind::releasing);
    if (dice_.percent(50)) {
      lease.release_in_background();
      log(EventKind::unreleased, ErrorCode::outcome_unknown);
      return;
    }
    const auto released = lease.release();
    if (released) {
      log(EventKind::released);
    } else {
      log(EventKind::unreleased, released.error().code);
    }
  }

  Station& station_;
  Board& board_;
  std::uint32_t thread_;
  Dice dice_;
  Owner owner_;
  std::uint32_t lock_ = 0;
  std::uint32_t call_ = 0;
  std::uint64_t token_ = 0;
  AcquireOptions options_;
};

// The store may be out of reach when a process starts.
Result<std::optional<Client>> open_in_any_weather(const Board& board) {
  const char* url = getenv("HOLDFAST_URL");
  while (!board.draining) {
    auto client = Client::open(url == nullptr ? "" : url, {.label = "holdfast torture"});
    if (client) {
      return std::optional<Client>{std::move(*client)};
    }
    if (!is_weather(client.error().code)) {
      return tl::unexpected{std::move(client.error())};
    }
    std::this_thread::sleep_for(20ms);
  }
  return std::optional<Client>{};
}

}  // namespace

Result<bool> work() {
  const pid_t parent = getppid();
  auto memory = BoardMemory::from_standard_input();
  if (!memory) {
    return tl::unexpected{std::move(memory.error())};
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) {
    return fail(ErrorCode::cancelled, "the torture ended");
  }
  Board& board = memory->board();
  auto client = open_in_any_weather(board);
  if (!client) {
    note_failure(board, client.error());
    return false;
  }
  if (!*client) {
    return true;
  }
  const char* number = getenv("HOLDFAST_TORTURE_PROCESS");
  Station station{board, **client,
                  static_cast<std::uint32_t>(number == nullptr ? 0 : std::atoi(number))};
  std::vector<std::jthread> threads;
  for (std::uint32_t thread = 0; thread < board.threads; ++thread) {
    threads.emplace_back([&station, thread] { Worker{station, thread}.run(); });
  }
  threads.clear();
  return !board.failed;
}

}  // namespace holdfast::command::torture
