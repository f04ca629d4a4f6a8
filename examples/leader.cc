// Three processes' worth of workers stand for election; one leads at a time.
// Each resigns after a few rounds, so that all of them have their turn.

#include <holdfast/holdfast.h>

#include <atomic>
#include <chrono>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

int main() {
  std::atomic<int> leading = 0;
  std::atomic<bool> two_at_once = false;
  std::vector<std::unique_ptr<holdfast::Client>> clients;
  std::vector<std::unique_ptr<holdfast::Worker>> workers;
  for (int i = 0; i < 3; ++i) {
    auto client = holdfast::Client::open("sqlite:locks.db", {.label = "node" + std::to_string(i)});
    if (!client) {
      std::cerr << client.error() << '\n';
      return 1;
    }
    clients.push_back(std::make_unique<holdfast::Client>(std::move(*client)));
    workers.push_back(std::make_unique<holdfast::Worker>(
        *clients.back(), "leader",
        [&](const std::stop_token& stop, std::optional<std::uint64_t>) {
          two_at_once = ++leading > 1 || two_at_once;
          for (int round = 0; round < 5 && !stop.stop_requested(); ++round) {
            std::this_thread::sleep_for(1ms);
          }
          --leading;
        },
        holdfast::WorkerOptions{.rest = 20ms}));
  }
  for (const auto& worker : workers) {
    while (worker->statistics().terms == 0) {
      std::this_thread::sleep_for(1ms);
    }
  }
  workers.clear();  // stops each and waits for it
  std::cout << "all have led, " << (two_at_once ? "two" : "never two") << " at once\n";
  return two_at_once ? 1 : 0;
}
