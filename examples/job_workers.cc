// Workers take jobs from a common list, a few at a time, and never the same
// one. Each job is marked as done before its lock is let go.

#include <holdfast/holdfast.h>

#include <atomic>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kJobs = 60;
constexpr int kWorkers = 4;

// The table of jobs. A database would have a column for this.
std::vector<std::atomic<int>> done(kJobs);

std::vector<std::string> open_jobs() {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kJobs; ++i) {
    if (done[i] == 0) {
      names.push_back("job:" + std::to_string(i));
    }
  }
  return names;
}

void work(holdfast::Client& client) {
  for (auto names = open_jobs(); !names.empty(); names = open_jobs()) {
    auto claimed = client.claim_any(names, 5);
    if (!claimed) {
      std::cerr << claimed.error() << '\n';
      return;
    }
    for (const holdfast::Lease& lease : *claimed) {
      auto& mark = done[std::stoul(lease.name().substr(4))];
      if (mark == 0) {  // somebody may have done it after we made the list
        ++mark;
      }
    }
    if (claimed->empty()) {
      std::this_thread::yield();
    }
  }
}

}  // namespace

int main() {
  std::vector<std::jthread> workers;
  for (int i = 0; i < kWorkers; ++i) {
    workers.emplace_back([] {
      auto client = holdfast::Client::open("sqlite:locks.db", {.label = "worker"});
      if (client) {
        work(*client);
      }
    });
  }
  workers.clear();  // waits for all
  std::size_t once = 0;
  for (const auto& times : done) {
    once += times == 1 ? 1U : 0U;
  }
  std::cout << once << " of " << kJobs << " jobs done exactly once\n";
  return once == kJobs ? 0 : 1;
}
