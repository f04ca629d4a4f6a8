#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "support/commands.h"

namespace holdfast::test {

// Batches as several clients might send them, but denser: few names, few
// requests, every kind of command. Each request always asks for the same, is
// of one session and of one name, as requests are.
class RandomCommands {
 public:
  // `upgrades`: also those commands that not every engine knows.
  RandomCommands(std::uint64_t seed, std::uint32_t sessions, bool upgrades = false)
      : random_{seed}, sessions_{sessions}, upgrades_{upgrades} {}

  std::vector<core::Command> batch(std::uint32_t session) {
    std::vector<core::Command> made;
    for (std::uint64_t size = 1 + below(5); size > 0; --size) {
      const std::uint32_t request = request_of(session);
      made.push_back({name_of(request), operation(request)});
    }
    return made;
  }

  std::uint32_t session() { return 1 + static_cast<std::uint32_t>(below(sessions_)); }
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  base::Duration pause() {
    return below(3) == 0 ? std::chrono::milliseconds{below(7000)} : base::Duration{1ms};
  }

 private:
  static constexpr std::uint32_t kNames = 3;
  static constexpr std::uint32_t kRequestsOfOne = 12;

  std::uint32_t request_of(std::uint32_t session) {
    return session * 100 + static_cast<std::uint32_t>(below(kRequestsOfOne));
  }
  static std::string name_of(std::uint32_t request) {
    return "lock " + std::to_string(request % kNames);
  }

  core::Acquire request(std::uint32_t number) {
    core::Acquire made = acquire(number);
    made.session = id(number / 100);
    const std::uint32_t kind = number % kNames;
    const std::uint32_t variant = (number % 100) / kNames;
    if (kind == 1) {
      made.shape = variant % 2 == 0 ? kShared : core::Shape{};
    } else if (kind == 2) {
      made.shape = permits(1 + variant % 3, 4);
    }
    made.ttl = std::chrono::seconds{3 + number % 5};
    made.window = std::chrono::seconds{2 + number % 3};
    made.queue = below(5) != 0;
    made.barge = below(9) == 0;
    return made;
  }

  // The other request of the same name: see name_of().
  core::Acquire other_request(std::uint32_t number) {
    return request(number % 100 < kNames ? number + kNames : number - kNames);
  }

  core::Operation operation(std::uint32_t number) {
    if (upgrades_ && below(4) == 0) {
      switch (below(4)) {
        case 0:
          return core::Downgrade{.id = id(number)};
        case 1:
          return core::Transfer{.id = id(number), .next = other_request(number)};
        default:
          return core::Upgrade{.id = id(number), .queue = below(4) != 0};
      }
    }
    switch (below(14)) {
      case 0:
        return renew(number);
      case 1:
        return poll(number);
      case 2:
        return heartbeat(number);
      case 3:
      case 4:
      case 5:
        return release(number);
      case 6:
        return core::Requeue{.id = id(number), .next = other_request(number)};
      case 7:
        return below(6) == 0 ? core::Operation{core::Revoke{.now = below(2) == 0}}
                             : core::Operation{poll(number)};
      case 8:
        return below(6) == 0 ? core::Operation{core::Resize{
                                   .limit = 1 + static_cast<std::uint32_t>(below(6))}}
                             : core::Operation{poll(number)};
      default:
        return request(number);
    }
  }

  std::mt19937_64 random_;
  const std::uint32_t sessions_;
  const bool upgrades_;
};

}  // namespace holdfast::test
