// The rules of local_queue.h, on every short sequence of events and on many
// long random ones. CheckedQueue knows the rules.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <random>

#include "support/commands.h"
#include "unit/local_queue_checker.h"

namespace holdfast::test {
namespace {

using core::Terms;

Terms terms(core::Shape shape, std::uint32_t hand_over) {
  return {.shape = shape, .ttl = 30s, .hand_over = hand_over};
}
Terms attempt(core::Shape shape, std::uint32_t hand_over) {
  Terms made = terms(shape, hand_over);
  made.queue = false;
  return made;
}

// What a sequence can go on with; each is applied to a copy.
using Event = std::function<void(CheckedQueue&)>;

std::vector<Event> possible(const CheckedQueue& queue) {
  std::vector<Event> events;
  for (const core::ClaimId claim : queue.waiting()) {
    events.emplace_back([claim](CheckedQueue& it) { it.leave(claim); });
  }
  for (const core::TenancyId tenancy : queue.asked()) {
    events.emplace_back([tenancy](CheckedQueue& it) { it.grant(tenancy); });
    events.emplace_back([tenancy](CheckedQueue& it) { it.deny(tenancy); });
  }
  for (const core::ClaimId claim : queue.admitted()) {
    events.emplace_back([claim](CheckedQueue& it) { it.let_go(claim); });
  }
  for (const core::TenancyId tenancy : queue.held()) {
    events.emplace_back([tenancy](CheckedQueue& it) { it.close(tenancy); });
    events.emplace_back([tenancy](CheckedQueue& it) { it.gone(tenancy); });
  }
  if (!queue.held().empty()) {
    events.emplace_back([](CheckedQueue& it) { it.pass(kHandOverTime); });
  }
  return events;
}

// Every sequence in which these claims join in this order.
class AllSequences {
 public:
  AllSequences(std::array<Terms, 3> claims, std::size_t longest)
      : claims_{claims}, longest_{longest} {}

  void explore(const CheckedQueue& queue, std::size_t joined, std::size_t length) {
    CheckedQueue end = queue;
    end.go_home();
    ++sequences;
    if (!end.complaints().empty()) {
      FAIL() << end.story();
    }
    if (length == longest_) {
      return;
    }
    if (joined < claims_.size()) {
      CheckedQueue next = queue;
      next.join(claims_.at(joined));
      explore(next, joined + 1, length + 1);
    }
    for (const Event& event : possible(queue)) {
      if (::testing::Test::HasFatalFailure()) {
        return;
      }
      CheckedQueue next = queue;
      event(next);
      explore(next, joined, length + 1);
    }
  }

  std::size_t sequences = 0;

 private:
  std::array<Terms, 3> claims_;
  std::size_t longest_;
};

TEST(LocalQueueProperties, HoldInEveryShortSequence) {
  const std::array kinds{terms({}, 1),           terms({}, 2),      terms({}, 0),
                         attempt({}, 2),         terms(kShared, 1), attempt(kShared, 2),
                         terms(permits(1, 2), 2)};
  const std::size_t longest = std::getenv("HOLDFAST_QUICK") != nullptr ? 6 : 7;
  std::size_t sequences = 0;
  for (const Terms& a : kinds) {
    for (const Terms& b : kinds) {
      for (const Terms& c : kinds) {
        AllSequences all{{a, b, c}, longest};
        ASSERT_NO_FATAL_FAILURE(all.explore({}, 0, 0));
        sequences += all.sequences;
      }
    }
  }
  RecordProperty("sequences", static_cast<int>(sequences));
  EXPECT_GT(sequences, 10'000U);
}

class RandomLife {
 public:
  explicit RandomLife(std::uint64_t seed) : random_{seed} {}

  void live(std::size_t events) {
    for (std::size_t i = 0; i < events && queue.complaints().empty(); ++i) {
      step();
    }
    queue.go_home();
  }

  CheckedQueue queue;

 private:
  std::uint64_t draw(std::uint64_t below) { return random_() % below; }
  template <typename T>
  T any(const std::vector<T>& from) {
    return from[draw(from.size())];
  }

  Terms some_terms() {
    Terms made;
    const std::array<core::Shape, 4> shapes{core::Shape{}, core::Shape{}, kShared, permits(1, 3)};
    made.shape = shapes.at(draw(shapes.size()));
    made.ttl = draw(6) == 0 ? 10s : 30s;
    made.renew = draw(8) != 0;
    made.queue = draw(5) != 0;
    made.barge = draw(8) == 0;
    const std::array<std::uint32_t, 5> bounds{0, 1, 3, kDefaultHandOver, kMaxHandOver};
    made.hand_over = bounds.at(draw(bounds.size()));
    made.grace = std::chrono::milliseconds{draw(3) * 10};
    return made;
  }

  void step() {
    const std::uint64_t what = draw(100);
    if (what < 25 && queue.waiting().size() < 30) {
      queue.join(some_terms());
    } else if (what < 50 && !queue.admitted().empty()) {
      queue.let_go(any(queue.admitted()));
    } else if (what < 75 && !queue.asked().empty()) {
      queue.grant(any(queue.asked()), std::chrono::milliseconds{draw(100)});
    } else if (what < 80 && !queue.asked().empty()) {
      queue.deny(any(queue.asked()));
    } else if (what < 85 && !queue.waiting().empty()) {
      queue.leave(any(queue.waiting()));
    } else if (what < 88 && !queue.held().empty()) {
      queue.close(any(queue.held()));
    } else if (what < 91 && !queue.held().empty()) {
      queue.gone(any(queue.held()));
    } else if (what < 95 && !queue.held().empty()) {
      queue.renew(any(queue.held()), std::chrono::milliseconds{draw(100)});
    } else {
      queue.pass(std::chrono::milliseconds{draw(30)});
    }
  }

  std::mt19937_64 random_;
};

TEST(LocalQueueProperties, HoldInLongRandomLives) {
  const std::uint64_t seeds = std::getenv("HOLDFAST_QUICK") != nullptr ? 200 : 2'000;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    RandomLife life{seed};
    life.live(300);
    ASSERT_TRUE(life.queue.complaints().empty()) << "seed " << seed << ": " << life.queue.story();
  }
}

}  // namespace
}  // namespace holdfast::test
