// A cache file with many readers and one writer at a time. The file is not
// replaced in one step, so a reader that came in the middle would see halves
// of two versions; SharedMutex keeps it out.

#include <holdfast/holdfast.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <iostream>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

namespace {

constexpr int kVersions = 10;
constexpr int kReaders = 4;

void write_prices(int version) {
  std::ofstream file{"prices.txt", std::ios::trunc};
  file << version << std::endl;
  std::this_thread::sleep_for(5ms);
  file << version << std::endl;
}

// The version in the file; -1 if its two lines do not belong together.
int read_prices() {
  std::ifstream file{"prices.txt"};
  int first = 0;
  int second = 0;
  return file >> first >> second && first == second ? first : -1;
}

}  // namespace

int main() {
  // Two clients, as if the writer was another process.
  auto here = holdfast::Client::open("sqlite:locks.db", {.label = "reader"});
  auto there = holdfast::Client::open("sqlite:locks.db", {.label = "writer"});
  if (!here || !there) {
    std::cerr << (here ? there : here).error() << '\n';
    return 1;
  }
  write_prices(0);
  holdfast::SharedMutex for_readers{*here, "prices", {.ttl = 10s}};
  holdfast::SharedMutex for_writers{*there, "prices", {.ttl = 10s}};

  std::atomic<int> torn = 0;
  std::atomic<int> reads = 0;
  std::vector<std::jthread> readers;
  readers.reserve(kReaders);
  for (int i = 0; i < kReaders; ++i) {
    readers.emplace_back([&] {
      for (int version = 0; version != kVersions;) {
        const std::shared_lock lock{for_readers};
        version = read_prices();
        torn += version < 0 ? 1 : 0;
        ++reads;
      }
    });
  }
  // Readers come and go without a pause, yet the writer gets its turn: the
  // queue is first in, first out.
  for (int version = 1; version <= kVersions; ++version) {
    const std::unique_lock lock{for_writers};
    write_prices(version);
  }
  readers.clear();  // joins

  std::cout << kVersions << " versions, " << reads << " reads, " << torn << " torn\n";
  return torn == 0 ? 0 : 1;
}
