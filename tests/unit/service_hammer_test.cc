// Many threads, one service, an engine that answers when and where it likes.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <random>
#include <thread>

#include "unit/service_desk.h"

namespace holdfast::test {
namespace {

using client::Service;

// What the locks protect: complains if it is not protected.
class Resource {
 public:
  void use(std::uint64_t token, Mode mode) {
    if (mode == Mode::shared) {
      readers_.fetch_add(1);
      EXPECT_EQ(writers_.load(), 0);
      std::this_thread::yield();
      readers_.fetch_sub(1);
      return;
    }
    EXPECT_EQ(writers_.fetch_add(1), 0);
    EXPECT_EQ(readers_.load(), 0);
    EXPECT_GT(token, last_token_);  // plain: the lock alone orders these accesses
    last_token_ = token;
    std::this_thread::yield();
    EXPECT_EQ(writers_.fetch_sub(1), 1);
  }

 private:
  std::atomic<int> readers_ = 0;
  std::atomic<int> writers_ = 0;
  std::uint64_t last_token_ = 0;
};

class ServiceHammer : public ServiceTest {
 protected:
  static constexpr std::size_t kThreads = 6;
  static constexpr std::array kNames{"a", "b", "c"};

  void hammer(Service& service) {
    const int rounds = std::getenv("HOLDFAST_QUICK") != nullptr ? 100 : 300;
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        std::mt19937_64 random{i + 1};
        for (int round = 0; round < rounds; ++round) {
          one(service, random);
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    EXPECT_TRUE(service.flush(kPatience));
    EXPECT_GT(used.load(), 0U);
  }
  void hammer_alone(Service& service) {
    hammer(service);
    EXPECT_TRUE(all_free(service));
  }

  std::atomic<std::size_t> used = 0;

 private:
  void one(Service& service, std::mt19937_64& random) {
    const std::size_t which = random() % kNames.size();
    AcquireOptions options;
    options.mode = random() % 4 == 0 ? Mode::shared : Mode::exclusive;
    options.hand_over = std::array{0U, 2U, kDefaultHandOver}.at(random() % 3);
    options.ttl = random() % 8 == 0 ? 20s : 30s;
    switch (random() % 4) {
      case 0:
        options.wait = Duration::zero();
        break;
      case 1:
        options.wait = std::chrono::microseconds{random() % 2000 + 1};
        break;
      default:
        break;
    }
    std::stop_source stop;
    std::jthread stopper;
    if (random() % 4 == 0) {
      options.stop = stop.get_token();
      stopper = std::jthread{[&stop, pause = std::chrono::microseconds{random() % 500}] {
        std::this_thread::sleep_for(pause);
        stop.request_stop();
      }};
    }
    auto lease = random() % 3 == 0 ? acquire_then(service, kNames.at(which), options).get()
                                   : service.acquire(kNames.at(which), options);
    if (lease) {
      ++used;
      resources_.at(which).use(*lease->token(), options.mode);
      let_go(*lease, random() % 3);
    } else {
      check_error(lease.error(), options);
    }
  }

  static void let_go(Lease& lease, std::uint64_t how) {
    if (how == 0) {
      const auto released = lease.release();
      EXPECT_TRUE(released) << released.error();
    } else if (how == 1) {
      lease.release_in_background();
    }  // else the destructor does
  }

  static void check_error(const Error& error, const AcquireOptions& options) {
    switch (error.code) {
      case ErrorCode::busy:
        EXPECT_EQ(options.wait, Duration::zero()) << error;
        break;
      case ErrorCode::timed_out:
        EXPECT_GT(options.wait, Duration::zero()) << error;
        break;
      case ErrorCode::cancelled:
        EXPECT_TRUE(options.stop.stop_requested()) << error;
        break;
      default:
        ADD_FAILURE() << error;
    }
  }

  std::array<Resource, kNames.size()> resources_;
};

TEST_F(ServiceHammer, OutcomesInline) {
  hammer_alone(*open());
}

TEST_F(ServiceHammer, OutcomesOnOtherThreads) {
  hammer_alone(*open_async());
}

TEST_F(ServiceHammer, OutcomesNowHereNowThere) {
  hammer_alone(*open_async({.lanes = 3, .inline_percent = 50}));
}

TEST_F(ServiceHammer, OutcomesThatGetLost) {
  hammer_alone(*open_async({.lanes = 2, .inline_percent = 30, .lost_percent = 5}));
}

TEST_F(ServiceHammer, TwoServicesOfOneStore) {
  const auto first = open_async({.lanes = 2, .inline_percent = 50});
  const auto second = open_async({.seed = 2, .longest_delay = 1ms});
  std::thread other{[&] { hammer(*second); }};
  hammer(*first);
  other.join();
  EXPECT_TRUE(all_free(*first));
}

}  // namespace
}  // namespace holdfast::test
