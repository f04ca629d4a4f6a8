// The lock record against its contract: every short history, and long random
// ones.
#include <gtest/gtest.h>

#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "support/commands.h"
#include "support/lock_record_checker.h"

namespace holdfast::core {
namespace {

using namespace test;

struct Move {
  std::string name;
  Operation operation;
  Duration before{};  // time that passes first
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kDepth = 4;
#else
constexpr int kDepth = 5;
#endif

class Exhaustive {
 public:
  explicit Exhaustive(std::vector<Move> moves) : moves_{std::move(moves)} {}

  void explore(int depth) { explore(LockRecordChecker{}, at(0s), depth); }

 private:
  void explore(const LockRecordChecker& from, Time now, int depth) {
    for (const Move& move : moves_) {
      LockRecordChecker next = from;
      path_.push_back(move.name);
      const std::string broken = next.step(move.operation, now + move.before, 1000);
      if (!broken.empty()) {
        std::ostringstream history;
        for (const std::string& name : path_) history << name << ' ';
        FAIL() << broken << " after: " << history.str();
      }
      if (depth > 1) {
        explore(next, now + move.before, depth - 1);
        if (::testing::Test::HasFailure()) return;
      }
      path_.pop_back();
    }
  }

  std::vector<Move> moves_;
  std::vector<std::string> path_;
};

TEST(LockRecordExhaustive, MutexAndReaders) {
  Exhaustive{{
                 {"acquire1", acquire(1)},
                 {"share2", acquire(2, kShared)},
                 {"share3", acquire(3, kShared)},
                 {"try4", try_acquire(4)},
                 {"barge5", barge(5, kShared)},
                 {"release1", release(1)},
                 {"release2", release(2)},
                 {"release3", release(3)},
                 {"renew2", renew(2)},
                 {"late-poll3", poll(3), 20s},
                 {"late-heartbeat1", heartbeat(1), 10s},
                 {"requeue2to6", Requeue{.id = id(2), .next = acquire(6)}},
                 {"revoke", Revoke{}},
                 {"revoke-now", Revoke{.now = true}},
             }}
      .explore(kDepth);
}

TEST(LockRecordExhaustive, UpgradesAndTransfers) {
  Exhaustive{{
                 {"acquire1", acquire(1)},
                 {"share2", acquire(2, kShared)},
                 {"share3", acquire(3, kShared)},
                 {"upgrade2", upgrade(2)},
                 {"upgrade3", upgrade(3)},
                 {"try-upgrade2", Upgrade{.id = id(2), .queue = false}},
                 {"downgrade1", downgrade(1)},
                 {"downgrade2", downgrade(2)},
                 {"release2", release(2)},
                 {"release3", release(3)},
                 {"transfer2to4", transfer(2, 4)},
                 {"late-renew3", renew(3), 25s},
                 {"revoke", Revoke{}},
             }}
      .explore(kDepth);
}

TEST(LockRecordExhaustive, Semaphore) {
  Exhaustive{{
                 {"one1", acquire(1, permits(1, 3))},
                 {"two2", acquire(2, permits(2, 3))},
                 {"three3", acquire(3, permits(3, 3))},
                 {"one-of-two4", acquire(4, permits(1, 2))},
                 {"mutex5", acquire(5)},
                 {"release1", release(1)},
                 {"release2", release(2)},
                 {"late-release3", release(3), 20s},
                 {"requeue1to6", Requeue{.id = id(1), .next = acquire(6, permits(2, 3))}},
                 {"resize2", Resize{.limit = 2}},
                 {"resize5", Resize{.limit = 5}},
                 {"late-heartbeat2", heartbeat(2), 10s},
                 {"revoke", Revoke{}},
             }}
      .explore(kDepth);
}

class RandomHistory {
 public:
  explicit RandomHistory(std::uint64_t seed) : random_{seed} {}

  Operation next() {
    const std::uint32_t who = number();
    switch (random_() % 15) {
      case 12:
        return Upgrade{.id = id(who), .queue = random_() % 3 != 0};
      case 13:
        return random_() % 2 == 0 ? Operation{downgrade(who)} : Operation{upgrade(who)};
      case 14:
        return Transfer{.id = id(who), .next = request()};
      case 0:
      case 1:
      case 2:
        return request();
      case 3:
        return renew(who);
      case 4:
        return poll(who);
      case 5:
        return heartbeat(who);
      case 6:
      case 7:
      case 8:
        return release(who);
      case 9:
        return Requeue{.id = id(who), .next = request()};
      case 10:
        return random_() % 4 == 0 ? Operation{Revoke{.now = random_() % 2 == 0}}
                                  : Operation{heartbeat(who)};
      default:
        return random_() % 4 == 0
                   ? Operation{Resize{.limit = 1 + static_cast<std::uint32_t>(random_() % 6)}}
                   : Operation{renew(who)};
    }
  }

  Duration pause() {
    return random_() % 4 == 0 ? std::chrono::milliseconds{random_() % 8000} : 1ms;
  }

 private:
  std::uint32_t number() { return 1 + static_cast<std::uint32_t>(random_() % 8); }

  Acquire request() {
    const std::uint32_t who = number();
    Acquire made = acquire(who);
    // Each number always asks for the same, like a request that is repeated.
    made.shape = who <= 3 ? Shape{} : who <= 6 ? kShared : permits(1 + who % 3, 4);
    if (kind_ == 1) made.shape = permits(1 + who % 3, 4);
    made.ttl = std::chrono::seconds{2 + who};
    made.window = std::chrono::seconds{1 + who};
    made.queue = random_() % 5 != 0;
    made.barge = random_() % 9 == 0;
    return made;
  }

  std::mt19937_64 random_;
  const std::uint64_t kind_ = random_() % 2;
};

TEST(LockRecordProperties, HoldOnRandomHistories) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    RandomHistory history{seed};
    LockRecordChecker checker;
    Time now = at(0s);
    for (int step = 0; step < 400; ++step) {
      now += history.pause();
      const std::string broken = checker.step(history.next(), now, 1000);
      ASSERT_EQ(broken, "") << "seed " << seed << ", step " << step;
    }
  }
}

}  // namespace
}  // namespace holdfast::core
