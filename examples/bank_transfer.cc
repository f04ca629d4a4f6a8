// Money moves between two accounts under the locks of both. Transfers in
// opposite directions name the locks in opposite orders; acquire_all() takes
// them in one order, so they never wait for each other in a circle.

#include <holdfast/holdfast.h>

#include <array>
#include <chrono>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

namespace {

constexpr int kTransfers = 50;
constexpr int kStart = 1000;

// Not protected by itself: every access happens under the account's lock.
std::array<int, 3> balances{kStart, kStart, kStart};

std::string lock_of(std::size_t account) {
  return "account:" + std::to_string(account);
}

bool transfer(holdfast::Client& client, std::size_t from, std::size_t to, int amount) {
  auto both = client.acquire_all({lock_of(from), lock_of(to)}, {.wait = 30s});
  if (!both) {
    std::cerr << both.error() << '\n';
    return false;
  }
  balances.at(from) -= amount;
  std::this_thread::yield();
  balances.at(to) += amount;
  return both->release().has_value();
}

}  // namespace

int main() {
  bool all_well = true;
  {
    std::vector<std::jthread> tellers;
    std::array<bool, 3> well{true, true, true};
    for (std::size_t i = 0; i < well.size(); ++i) {
      tellers.emplace_back([i, &well] {
        auto client = holdfast::Client::open("sqlite:locks.db", {.label = "teller"});
        for (int turn = 0; client && turn < kTransfers; ++turn) {
          well.at(i) = transfer(*client, i, (i + 1) % 3, 1) && well.at(i);
        }
        well.at(i) = well.at(i) && client.has_value();
      });
    }
    tellers.clear();  // waits for all
    for (const bool each : well) {
      all_well = all_well && each;
    }
  }
  const int total = balances[0] + balances[1] + balances[2];
  std::cout << "total " << total << " after " << 3 * kTransfers << " transfers in a circle\n";
  return all_well && total == 3 * kStart ? 0 : 1;
}
