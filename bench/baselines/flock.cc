#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <new>
#include <thread>

#include "baselines.h"

namespace baselines {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kNames = 100;
constexpr unsigned kThreads = 16;
constexpr std::size_t kMaxRounds = 10'000;

class LockFile {
 public:
  explicit LockFile(const std::string& path)
      : path_{path}, fd_{open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)} {
    if (fd_ < 0) {
      give_up(path);
    }
  }
  LockFile(LockFile&& other) noexcept : path_{std::move(other.path_)}, fd_{other.fd_} {
    other.fd_ = -1;
  }
  LockFile(const LockFile&) = delete;
  LockFile& operator=(const LockFile&) = delete;
  ~LockFile() {
    if (fd_ >= 0) {
      unlink(path_.c_str());
      close(fd_);
    }
  }
  void lock() { flock(fd_, LOCK_EX); }
  void unlock() { flock(fd_, LOCK_UN); }

 private:
  std::string path_;
  int fd_;
};

struct Board {
  std::atomic<std::uint32_t> round = 0;
  std::array<Clock::time_point, kMaxRounds> left{};
  std::array<Clock::time_point, kMaxRounds> entered{};
};

void await(const Board& board, std::uint32_t round) {
  while (board.round.load() != round) {
    std::this_thread::sleep_for(5ms);
  }
}

// The roles of P2, as `holdfast bench` plays them.
void let_go_often(Board& board, const std::string& path, std::uint32_t rounds) {
  LockFile file{path};
  for (std::uint32_t round = 0; round < rounds; ++round) {
    file.lock();
    board.round = 2 * round + 1;
    std::this_thread::sleep_for(kBetweenHandOvers);
    board.left[round] = Clock::now();
    file.unlock();
    await(board, 2 * round + 2);
  }
}

void sleep_and_enter(Board& board, const std::string& path, std::uint32_t rounds) {
  LockFile file{path};
  for (std::uint32_t round = 0; round < rounds; ++round) {
    await(board, 2 * round + 1);
    file.lock();
    board.entered[round] = Clock::now();
    file.unlock();
    board.round = 2 * round + 2;
  }
}

}  // namespace

double flock_cycles(const std::string& directory, double seconds) {
  std::vector<LockFile> files;
  for (std::size_t i = 0; i < kNames; ++i) {
    files.emplace_back(directory + "/flock-" + std::to_string(i));
  }
  return repeat(seconds, 1, [&](unsigned, std::size_t i) {
    files[i % kNames].lock();
    files[i % kNames].unlock();
  });
}

double flock_hand_overs(const std::string& directory, double seconds) {
  std::vector<LockFile> files;  // one open file a thread: the lock belongs to it
  for (unsigned i = 0; i < kThreads; ++i) {
    files.emplace_back(directory + "/flock");
  }
  unsigned holder = kThreads;
  std::size_t hand_overs = 0;
  std::size_t calls = 0;
  const double rate = repeat(seconds, kThreads, [&](unsigned thread, std::size_t) {
    files[thread].lock();
    ++calls;
    hand_overs += holder == thread ? 0U : 1U;
    holder = thread;
    files[thread].unlock();
  });
  return rate * static_cast<double>(hand_overs) / static_cast<double>(calls);
}

double flock_wake_up(const std::string& directory, double seconds) {
  const auto rounds = static_cast<std::uint32_t>(
      std::clamp(seconds / std::chrono::duration<double>{kBetweenHandOvers}.count(), 3.0,
                 static_cast<double>(kMaxRounds)));
  void* memory =
      mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    give_up("mmap");
  }
  auto* board = new (memory) Board{};
  const std::string path = directory + "/flock-P2";
  for (const auto role : {let_go_often, sleep_and_enter}) {
    const pid_t child = fork();
    if (child < 0) {
      give_up("fork");
    }
    if (child == 0) {
      role(*board, path, rounds);
      _exit(0);
    }
  }
  while (wait(nullptr) > 0) {
  }
  std::vector<double> gaps;
  for (std::uint32_t i = 0; i < rounds; ++i) {
    gaps.push_back(
        std::chrono::duration<double, std::micro>{board->entered[i] - board->left[i]}.count());
  }
  munmap(memory, sizeof(Board));
  std::sort(gaps.begin(), gaps.end());
  return gaps[(gaps.size() - 1) / 2];
}

}  // namespace baselines
