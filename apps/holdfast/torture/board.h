#pragma once

#include <holdfast/client.h>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "descriptor.h"
#include "proof/shared_log.h"

namespace holdfast::command::torture {

inline constexpr std::uint32_t kMostLocks = 16;

// A lock under torture and the resource that it protects: one that takes no
// write with a lower token than the highest it has seen.
struct Lock {
  Mode mode = Mode::exclusive;  // shared: readers and writers
  std::uint32_t limit = 0;
  std::atomic<std::uint64_t> highest = 0;
};

// What the processes of one round share.
struct Board {
  static constexpr std::uint32_t kMagic = 0x74727475;
  std::uint32_t magic = kMagic;
  std::uint64_t seed = 0;
  std::array<char, 64> prefix{};
  std::int64_t ttl = 0;          // ns
  std::int64_t longest_ttl = 0;  // of some leases
  std::uint32_t threads = 1;
  std::uint32_t lock_count = 0;
  std::uint32_t hot_locks = 0;  // the first of them
  std::array<Lock, kMostLocks> locks;

  // How many leases a process has now: where a blow hurts most.
  static constexpr std::uint32_t kCounters = 4096;
  std::array<std::atomic<std::int32_t>, kCounters> held{};
  std::atomic<std::int32_t>& held_by(std::uint32_t process) { return held.at(process % kCounters); }

  std::atomic<std::uint64_t> grants = 0;
  std::atomic<bool> draining = false;  // no new calls; those under way end
  std::array<char, 256> error{};       // why a process could not do its work
  ErrorCode code{};
  std::atomic<bool> failed = false;

  proof::SharedLog log;
};

// The board's memory; the process that made it hands `fd` to its workers.
class BoardMemory {
 public:
  static Result<BoardMemory> make();
  static Result<BoardMemory> from_standard_input();
  ~BoardMemory();
  BoardMemory(BoardMemory&& other) noexcept;
  BoardMemory& operator=(BoardMemory&&) = delete;
  BoardMemory(const BoardMemory&) = delete;
  BoardMemory& operator=(const BoardMemory&) = delete;

  Board& board() noexcept { return *board_; }
  int fd() const noexcept { return fd_.get(); }

 private:
  BoardMemory(Board* board, Descriptor fd) : board_{board}, fd_{std::move(fd)} {}
  Board* board_;
  Descriptor fd_;
};

std::string lock_name(const Board& board, std::uint32_t lock);
void note_failure(Board& board, const Error& error);

// What a worker process does: `holdfast torture --worker`.
Result<bool> work();

}  // namespace holdfast::command::torture
