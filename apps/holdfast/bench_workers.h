#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench.h"
#include "descriptor.h"

namespace holdfast::command::bench {

enum class Job : std::uint32_t { rotate, wake_up, wait };

inline constexpr std::uint32_t kMaxWorkers = 64;
inline constexpr std::uint32_t kMaxStays = 200'000;

// One stay inside the lock, in nanoseconds of Clock.
struct Stay {
  pid_t process = 0;
  pid_t next = 0;  // was first in line meanwhile
  std::int64_t entered = 0;
  std::int64_t left = 0;
};

// What one worker tells.
struct Slot {
  std::array<char, 256> error{};  // empty: all went well
  ErrorCode code{};
  std::int64_t cpu = 0;  // ns of processor time while it was watched
  std::int64_t sleeps = 0;
  std::int64_t descriptors = 0;
};

// The memory that a scenario shares with its workers.
struct Board {
  static constexpr std::uint32_t kMagic = 0x686f6c64;
  std::uint32_t magic = kMagic;
  Job job{};
  std::uint32_t workers = 0;
  std::array<char, 64> prefix{};
  std::int64_t duration = 0;  // ns
  std::uint32_t rounds = 0;
  Waiting waiting;

  std::atomic<std::uint32_t> arrived = 0;  // hands out the workers' numbers
  std::atomic<std::uint32_t> ready = 0;    // how many have done what the step asked
  std::atomic<std::uint32_t> step = 0;     // raised by the bench alone
  std::atomic<std::uint32_t> round = 0;
  std::array<Slot, kMaxWorkers> slots;

  std::atomic<std::uint32_t> stays = 0;
  std::array<Stay, kMaxStays> log;
};

// Processes of this very program that work on one board. They end with us.
class Workers {
 public:
  static Result<Workers> start(const Plan& plan, Job job, std::uint32_t count,
                               const std::function<void(Board&)>& prepare);
  ~Workers();
  Workers(Workers&&) noexcept;
  Workers& operator=(Workers&&) = delete;
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  Board& board() noexcept { return *board_; }

  // Waits until `count` workers are ready; fails if one of them ended before.
  Result<void> await_ready(std::uint32_t count);
  void next_step() noexcept;
  // Waits for their ends.
  Result<void> finish();

 private:
  Workers(Board* board, Descriptor memory) : board_{board}, memory_{std::move(memory)} {}
  Result<void> spawn(const std::string& url);
  std::optional<Error> reap(bool at_the_end);

  Board* board_;
  Descriptor memory_;
  std::vector<pid_t> running_;
};

// --- for the workers

// Short sleeps until `condition` holds. Not for what is measured.
void sleep_until(const std::function<bool()>& condition);
std::int64_t now_ns() noexcept;

Result<void> rotate(Board& board, Client& client);
Result<void> hand_over(Board& board, Client& client, std::uint32_t worker);
Result<void> wait_long(Board& board, Client& client, std::uint32_t worker);

}  // namespace holdfast::command::bench
