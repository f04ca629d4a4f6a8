// The threads around the coordinator: who waits for whom, and who never does.
#include "client/service.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>

#include "support/given_time.h"
#include "unit/service_desk.h"

namespace holdfast::test {
namespace {

using client::Service;

TEST_F(ServiceTest, OutcomesMayComeOnAnotherThread) {
  const auto service = open_async();
  auto lease = service->acquire("x", {});
  ASSERT_TRUE(lease) << lease.error();
  EXPECT_TRUE(lease->is_alive());
  EXPECT_EQ(service->acquire("x", {.wait = 0s}).error().code, ErrorCode::busy);
  EXPECT_TRUE(lease->release());
  EXPECT_TRUE(service->acquire("x", {.wait = 0s}));
  EXPECT_TRUE(service->flush(kPatience));
}

TEST_F(ServiceTest, AStoreThatDoesNotAnswerDelaysNobodyPastItsDeadline) {
  const auto service = open_async();
  auto held = service->acquire("x", {});
  ASSERT_TRUE(held) << held.error();
  control->hold();
  EXPECT_EQ(service->acquire("x", {.wait = 5ms}).error().code, ErrorCode::timed_out);
  EXPECT_EQ(service->acquire("y", {.wait = 5ms}).error().code, ErrorCode::timed_out);
  auto later = acquire_then(*service, "z", {.wait = 5ms});
  ASSERT_TRUE(ready(later));
  EXPECT_EQ(later.get().error().code, ErrorCode::timed_out);
  std::stop_source stop;
  auto stopped = acquire_then(*service, "z", {.stop = stop.get_token()});
  stop.request_stop();
  ASSERT_TRUE(ready(stopped));
  EXPECT_EQ(stopped.get().error().code, ErrorCode::cancelled);
  EXPECT_EQ(service->flush(1ms).error().code, ErrorCode::outcome_unknown);
  control->let_through();
  held->release_in_background();
  EXPECT_TRUE(service->flush(kPatience));
  EXPECT_TRUE(all_free(*service));
}

TEST_F(ServiceTest, AStoreThatDoesNotAnswerDoesNotDelayTheLoss) {
  const auto service = open_async();
  auto lease = service->acquire("x", {.ttl = 200ms});
  ASSERT_TRUE(lease) << lease.error();
  control->hold();
  EXPECT_TRUE(eventually([&] { return lease->lost().stop_requested(); }));
  EXPECT_EQ(lease->loss(), LossReason::not_renewed);
  EXPECT_TRUE(eventually([&] { return !lease->is_alive(); }));
  control->let_through();
}

TEST_F(ServiceTest, OneSilentRenewalIsNotALoss) {
  const auto service = open_async();
  auto lease = service->acquire("x", {.ttl = 6s});
  ASSERT_TRUE(lease) << lease.error();
  control->hold();
  const std::size_t before = control->submits();
  EXPECT_TRUE(eventually([&] { return control->submits() > before; }));  // it wants renewal
  control->let_through();
  const auto end = base::BootClock::now() + lease->remaining();
  EXPECT_TRUE(eventually([&] { return base::BootClock::now() > end; }));
  EXPECT_TRUE(lease->is_alive());
  EXPECT_FALSE(lease->loss());
}

// A store that keeps who asks it for news.
class Slow : public AsyncEngine {
 public:
  struct Gate {
    std::atomic<bool> reached = false;
    std::atomic<bool> open = false;
  };
  Slow(std::unique_ptr<engine::Engine> real, std::shared_ptr<Control> control, Gate& gate)
      : AsyncEngine{std::move(real), {}, std::move(control)}, gate_{gate} {}
  bool may_have_changed() override {
    gate_.reached = true;
    gate_.open.wait(false);
    return true;
  }

 private:
  Gate& gate_;
};

TEST_F(ServiceTest, WhoFindsALossWhileItGivesAwayTellsOfIt) {
  const auto other = open();
  auto held = other->acquire("y", {});
  ASSERT_TRUE(held) << held.error();
  Slow::Gate gate;
  const auto service =
      *client::Service::open(std::make_unique<Slow>(open_engine(url()), control, gate), id(1), {});
  auto waiting = acquire_then(*service, "y");
  ASSERT_TRUE(eventually([&] { return gate.reached.load(); }));  // the keeper is kept
  auto lease = service->acquire("x", {.ttl = 50ms, .renew = false});
  ASSERT_TRUE(lease) << lease.error();
  EXPECT_TRUE(eventually([&] { return !lease->is_alive(); }));
  EXPECT_EQ(lease->give_away().error().code, ErrorCode::lease_lost);
  EXPECT_TRUE(eventually([&] { return lease->lost().stop_requested(); }));
  gate.open = true;
  gate.open.notify_all();
  held->release_in_background();
  EXPECT_TRUE(ready(waiting));
}

TEST_F(ServiceTest, CancelledBeforeItBegan) {
  const auto service = open();
  std::stop_source stop;
  stop.request_stop();
  const AcquireOptions options{.stop = stop.get_token()};
  EXPECT_EQ(service->acquire("x", options).error().code, ErrorCode::cancelled);
  auto async = acquire_then(*service, "x", options);
  ASSERT_TRUE(ready(async));
  EXPECT_EQ(async.get().error().code, ErrorCode::cancelled);
  EXPECT_TRUE(all_free(*service));
}

TEST_F(ServiceTest, TimesWithoutEndAreFine) {
  const auto service = open({.label = "", .backstop_poll = Duration::max()});
  auto lease = service->acquire("x", {.wait = Duration::max(), .max_hold = Duration::max()});
  ASSERT_TRUE(lease) << lease.error();
  auto waiter = acquire_then(*service, "x", {.wait = Duration::max()});
  lease->release_in_background();
  ASSERT_TRUE(ready(waiter));
  EXPECT_TRUE(waiter.get());
  EXPECT_TRUE(service->flush(Duration::max()));
}

TEST_F(ServiceTest, ABackstopOfNothingIsRefused) {
  const auto opened = Service::open(url(), {.label = "", .backstop_poll = 0s});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::invalid_argument);
}

// --- callbacks that come back

// Begins an acquire, and when it is there, lets go and begins the next.
class Chain {
 public:
  Chain(Service& service, std::size_t links) : service_{service}, left_{links} { next(); }
  ~Chain() {
    enough_ = true;
    EXPECT_TRUE(ended());
  }
  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;
  bool ended() const {
    return eventually([&] { return ended_.load(); });
  }

 private:
  void next() {
    if (enough_ || left_ == 0) {
      ended_ = true;
      return;
    }
    --left_;
    service_.acquire_then("chain", {}, [this](Result<Lease> lease) {
      EXPECT_TRUE(lease) << lease.error();
      lease->release_in_background();
      next();
    });
  }

  Service& service_;
  std::atomic<std::size_t> left_;
  std::atomic<bool> enough_ = false;
  std::atomic<bool> ended_ = false;
};

TEST_F(ServiceTest, AChainOfCallbacksDoesNotGrowTheStack) {
  for (const auto& service : {open(), open_async({.inline_percent = 90})}) {
    const Chain chain{*service, 20'000};
    EXPECT_TRUE(chain.ended());
  }
}

TEST_F(ServiceTest, CallbacksWithoutEndDoNotStarveTheKeeper) {
  const auto service = open();
  auto lease = service->acquire("lease", {.ttl = 6s});
  ASSERT_TRUE(lease) << lease.error();
  const Chain endless{*service, SIZE_MAX};
  auto busy = acquire_then(*service, "lease", {.wait = 10ms});
  ASSERT_TRUE(ready(busy));
  EXPECT_EQ(busy.get().error().code, ErrorCode::timed_out);
  const auto end = base::BootClock::now() + lease->remaining();
  EXPECT_TRUE(eventually([&] { return base::BootClock::now() > end; }));
  EXPECT_TRUE(lease->is_alive());
  EXPECT_FALSE(lease->loss());
}

TEST_F(ServiceTest, CallersWithoutEndDoNotStarveTheKeeper) {
  const auto service = open_async({.inline_percent = 50});
  auto lease = service->acquire("lease", {.ttl = 6s});
  ASSERT_TRUE(lease) << lease.error();
  std::atomic<bool> enough = false;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      while (!enough) {
        static_cast<void>(service->acquire("name " + std::to_string(i), {}));
      }
    });
  }
  const auto end = base::BootClock::now() + lease->remaining();
  EXPECT_TRUE(eventually([&] { return base::BootClock::now() > end; }));
  EXPECT_TRUE(lease->is_alive());
  EXPECT_FALSE(lease->loss());
  enough = true;
}

TEST_F(ServiceTest, ACallbackMayLetGoOfTheLastHandle) {
  for (const unsigned inline_percent : {0U, 50U, 100U}) {
    std::promise<void> gone;
    {
      auto service = open_async({.inline_percent = inline_percent});
      Service& bare = *service;
      bare.acquire_then("x", {}, [&gone, last = std::move(service)](Result<Lease> lease) mutable {
        EXPECT_TRUE(lease) << lease.error();
        lease = fail(ErrorCode::cancelled, "");  // releases
        last = nullptr;
        gone.set_value();
      });
    }
    gone.get_future().wait();
  }
}

TEST_F(ServiceTest, AListenerToALossMayLetGoOfTheLastHandle) {
  std::promise<void> gone;
  std::optional<std::stop_callback<std::function<void()>>> listener;
  {
    auto service = open();
    auto lease = service->acquire("x", {.ttl = 100ms, .renew = false});
    ASSERT_TRUE(lease) << lease.error();
    const auto lost = lease->lost();
    auto last = std::make_shared<Lease>(std::move(*lease));
    listener.emplace(lost, [&gone, last = std::move(last)]() mutable {
      last = nullptr;
      gone.set_value();
    });
  }
  gone.get_future().wait();
}

TEST_F(ServiceTest, AHealthCheckMayUseTheClient) {
  given_time([&](int scale) {
    auto service = open();
    std::atomic<int> checks = 0;
    const auto lease = service->acquire("x", {.ttl = scale * 300ms, .health_check = [&] {
                                                ++checks;
                                                return service->acquire("y", {}).has_value();
                                              }});
    ASSERT_TRUE(lease) << lease.error();
    eventually([&] { return checks >= 3 || lease->lost().stop_requested(); });
    EXPECT_GE(checks, 3);
  });
}

// --- the end

TEST_F(ServiceTest, EndsWithBatchesOnTheirWay) {
  for (int i = 0; i < 20; ++i) {
    auto service = open_async();
    auto lease = service->acquire("x", {.ttl = 100ms});
    lease->release_in_background();
    service->cancel_async();
    lease = fail(ErrorCode::cancelled, "");
    service = nullptr;
  }
}

TEST_F(ServiceTest, ALeaseKeepsItsServiceAlive) {
  given_time([&](int scale) {
    auto service = open_async();
    auto lease = service->acquire("x", {.ttl = scale * 2s});
    ASSERT_TRUE(lease) << lease.error();
    const std::weak_ptr<Service> watch = service;
    service = nullptr;
    const auto end = base::BootClock::now() + lease->remaining();
    EXPECT_TRUE(eventually([&] { return base::BootClock::now() > end; }, 2 * kPatience));
    EXPECT_TRUE(lease->is_alive());
    EXPECT_TRUE(lease->release());
    *lease = Lease{};
    EXPECT_TRUE(eventually([&] { return watch.expired(); }));
  });
}

TEST_F(ServiceTest, PendingCallbacksAreAnsweredWhenTheClientGoes) {
  const auto other = open();
  const auto held = other->acquire("x", {});
  auto service = open_async();
  auto pending = acquire_then(*service, "x");
  service->cancel_async();
  ASSERT_TRUE(ready(pending));
  EXPECT_EQ(pending.get().error().code, ErrorCode::cancelled);
  const std::weak_ptr<Service> watch = service;
  service = nullptr;
  EXPECT_TRUE(eventually([&] { return watch.expired(); }));
}

TEST_F(ServiceTest, InAForkedChildEverythingIsInert) {
  auto service = open_async();
  auto lease = service->acquire("x", {});
  ASSERT_TRUE(lease) << lease.error();
  const pid_t child = fork();
  if (child == 0) {
    const auto is_inert = [](const auto& result) {
      return !result && result.error().code == ErrorCode::invalid_argument;
    };
    bool told = false;
    service->acquire_then("x", {}, [&](Result<Lease> result) { told = is_inert(result); });
    const bool inert = told && is_inert(service->acquire("x", {})) && is_inert(lease->release()) &&
                       is_inert(service->flush(1s)) && is_inert(service->engine()) &&
                       is_inert(service->ask("x", core::Revoke{})) && !lease->is_alive();
    lease->release_in_background();
    lease = Lease{};
    service = nullptr;
    _exit(inert ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_TRUE(lease->is_alive());
  EXPECT_TRUE(lease->release());
}

}  // namespace
}  // namespace holdfast::test
