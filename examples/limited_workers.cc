// Twelve workers in two processes may send at most three requests at once to
// a partner's service. A semaphore counts across all of them.

#include <holdfast/holdfast.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

namespace {

constexpr std::uint32_t kAtOnce = 3;
constexpr int kWorkersEach = 6;

// The partner, who counts.
class Partner {
 public:
  void request() {
    const std::uint32_t now = ++running_;
    for (std::uint32_t seen = peak_; seen < now && !peak_.compare_exchange_weak(seen, now);) {
    }
    std::this_thread::sleep_for(20ms);
    --running_;
    ++served_;
  }
  std::uint32_t peak() const { return peak_; }
  int served() const { return served_; }

 private:
  std::atomic<std::uint32_t> running_ = 0;
  std::atomic<std::uint32_t> peak_ = 0;
  std::atomic<int> served_ = 0;
};

}  // namespace

int main() {
  // Two clients, as if they were two processes.
  auto one = holdfast::Client::open("sqlite:locks.db");
  auto two = holdfast::Client::open("sqlite:locks.db");
  if (!one || !two) {
    std::cerr << (one ? two : one).error() << '\n';
    return 1;
  }
  Partner partner;
  std::atomic<int> failures = 0;
  const auto work = [&](holdfast::Client& client) {
    holdfast::Semaphore slots{client, "partner-requests", kAtOnce, {.ttl = 10s, .wait = 30s}};
    auto permit = slots.acquire();
    if (!permit) {
      std::cerr << permit.error() << '\n';
      ++failures;
      return;
    }
    partner.request();
  };  // the permit goes back here

  std::vector<std::jthread> workers;
  for (int i = 0; i < kWorkersEach; ++i) {
    workers.emplace_back(work, std::ref(*one));
    workers.emplace_back(work, std::ref(*two));
  }
  workers.clear();  // joins

  std::cout << partner.served() << " requests, at most " << partner.peak() << " at once\n";
  return failures == 0 && partner.served() == 2 * kWorkersEach && partner.peak() <= kAtOnce ? 0 : 1;
}
