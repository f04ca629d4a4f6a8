// Optimistic locking: stock that is never sold twice, a balance that never
// loses a booking, settings that two people change at once, numbers that are
// given out in segments. No lock is held anywhere: whoever read an old version
// is told, and reads again.

#include <holdfast/holdfast.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <iostream>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using Text = std::optional<std::string>;

void at_once(int count, const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back(work, i);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

template <typename T>
T value_or_throw(holdfast::Result<T> result) {
  if (!result) {
    throw std::runtime_error{result.error().text};
  }
  return *std::move(result);
}

// 32 buyers, 10 pieces.
int sell(holdfast::Client& client) {
  const auto stock = client.versioned("stock:42");
  value_or_throw(stock.create("10"));
  std::atomic<int> sold = 0;
  at_once(32, [&](int) {
    const auto outcome = value_or_throw(stock.update(
        [](const Text& left) -> Text {
          const int pieces = std::stoi(left.value_or("0"));
          return pieces > 0 ? Text{std::to_string(pieces - 1)} : std::nullopt;
        },
        {.retries = 1000}));
    sold += outcome.end == holdfast::UpdateEnd::stored ? 1 : 0;
  });
  return sold;
}

// Bookings of 5 and -3, 40 of each, from all sides.
std::string book(holdfast::Client& client) {
  const auto balance = client.versioned("account:7");
  at_once(8, [&](int teller) {
    for (int i = 0; i < 10; ++i) {
      const int amount = teller % 2 == 0 ? 5 : -3;
      const auto booked = value_or_throw(balance.update(
          [&](const Text& now) { return std::to_string(std::stoi(now.value_or("100")) + amount); },
          {.retries = 10'000}));
      if (booked.end != holdfast::UpdateEnd::stored) {
        throw std::runtime_error{"a booking was given up"};
      }
    }
  });
  return value_or_throw(balance.read())->value;
}

// A tiny JSON object of numbers: {"a":1,"b":2}
using Settings = std::map<std::string, int>;

Settings parse(const std::string& json) {
  Settings settings;
  std::string name;
  int value = 0;
  char c = 0;
  std::istringstream in{json};
  while (in >> c) {
    if (c == '"') {
      std::getline(in, name, '"');
      in >> c >> value;
      settings[name] = value;
    }
  }
  return settings;
}

std::string print(const Settings& settings) {
  std::string json;
  for (const auto& [name, value] : settings) {
    json += (json.empty() ? "{\"" : ",\"") + name + "\":" + std::to_string(value);
  }
  return json.empty() ? "{}" : json + "}";
}

// Everybody changes a field of their own; nobody's is lost.
std::string merge(holdfast::Client& client) {
  const auto settings = client.versioned("settings");
  at_once(6, [&](int user) {
    value_or_throw(settings.update(
        [&](const Text& json) {
          Settings merged = parse(json.value_or("{}"));
          merged["user" + std::to_string(user)] = user;
          return print(merged);
        },
        {.retries = 1000}));
  });
  return value_or_throw(settings.read())->value;
}

// Ids by the hundred: one trip to the store for a hundred of them.
class Ids {
 public:
  explicit Ids(holdfast::Client& client) : next_segment_{client.versioned("ids")} {}

  std::uint64_t next() {
    const std::lock_guard lock{mutex_};
    if (next_ == end_) {
      value_or_throw(next_segment_.update(
          [&](const Text& first) {
            next_ = std::stoull(first.value_or("1"));
            end_ = next_ + 100;
            return std::to_string(end_);
          },
          {.retries = 1000}));
    }
    return next_++;
  }

 private:
  std::mutex mutex_;
  holdfast::Versioned next_segment_;
  std::uint64_t next_ = 0;
  std::uint64_t end_ = 0;
};

std::size_t give_out_ids(holdfast::Client& client) {
  std::mutex mutex;
  std::set<std::uint64_t> seen;
  at_once(4, [&](int) {  // as four processes would
    Ids ids{client};
    for (int i = 0; i < 250; ++i) {
      const std::uint64_t id = ids.next();
      const std::lock_guard lock{mutex};
      seen.insert(id);
    }
  });
  return seen.size();
}

}  // namespace

int main() {
  auto client = holdfast::Client::open("sqlite:example.db");
  if (!client) {
    std::cerr << client.error() << '\n';
    return 1;
  }
  for (const char* name : {"stock:42", "account:7", "settings", "ids"}) {  // of an earlier run
    const auto value = client->versioned(name);
    if (const auto old = value_or_throw(value.read())) {
      value_or_throw(value.erase(old->version));
    }
  }
  const int sold = sell(*client);
  const std::string balance = book(*client);
  const std::string settings = merge(*client);
  const std::size_t ids = give_out_ids(*client);
  std::cout << "sold " << sold << " of 10\n"
            << "balance " << balance << '\n'
            << "settings " << settings << '\n'
            << ids << " different ids\n";
  const bool good = sold == 10 && balance == "180" && ids == 1000 &&
                    settings == R"({"user0":0,"user1":1,"user2":2,"user3":3,"user4":4,"user5":5})";
  return good ? 0 : 1;
}
