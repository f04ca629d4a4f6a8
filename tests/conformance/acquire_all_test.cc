// Several locks at once: all or nothing, and never in a circle.
#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "conformance/conformance.h"

namespace holdfast::test {
namespace {

using ::testing::HasSubstr;

class AcquireAll : public Conformance {
 protected:
  void SetUp() override {
    Conformance::SetUp();
    if (IsSkipped()) return;
    for (const char* end : {"-a", "-b", "-c"}) names_.push_back(name() + end);
  }
  const std::string& a() const { return names_[0]; }
  const std::string& b() const { return names_[1]; }
  const std::string& c() const { return names_[2]; }
  std::vector<Want> all() const { return {names_.begin(), names_.end()}; }
  bool is_free(const std::string& lock) {
    return eventually([&] { return bystander().try_acquire(lock).has_value(); });
  }

 private:
  std::vector<std::string> names_;
};
class AcquireAllModes : public AcquireAll {};
class AcquireAllPermits : public AcquireAll {};
HOLDFAST_RUN_ON(AcquireAll, harnesses());
HOLDFAST_RUN_ON(AcquireAllModes, harnesses_with(&Claims::shared));
HOLDFAST_RUN_ON(AcquireAllPermits, harnesses_with(&Claims::permits));

TEST_P(AcquireAll, TakesAllAndGivesAllBack) {
  auto client = open();
  auto set = client->acquire_all({c(), a(), b()});
  ASSERT_THAT(set, IsOk());
  ASSERT_EQ(set->size(), 3U);
  EXPECT_EQ((*set)[0].name(), c());
  EXPECT_EQ(set->find(b()), &(*set)[2]);
  EXPECT_EQ(set->find("another"), nullptr);
  EXPECT_TRUE(set->is_alive());
  EXPECT_GT(set->remaining(), 0s);
  auto other = open();
  for (const auto* lock : {&a(), &b(), &c()}) {
    EXPECT_THAT(other->try_acquire(*lock), FailsWith(ErrorCode::busy));
  }
  EXPECT_THAT(set->release(), IsOk());
  EXPECT_THAT(set->release(), IsOk());
  EXPECT_FALSE(set->is_alive());
  EXPECT_THAT(other->acquire_all(all(), {.wait = 0s}), IsOk());
}

TEST_P(AcquireAll, OneThatIsTakenMeansBusyAndNothingHeld) {
  auto holder = open();
  auto taken = holder->acquire(b());
  ASSERT_THAT(taken, IsOk());
  auto client = open();
  EXPECT_THAT(client->acquire_all(all(), {.wait = 0s}), FailsWith(ErrorCode::busy));
  ASSERT_THAT(client->flush(), IsOk());
  EXPECT_TRUE(is_free(a()));
  EXPECT_TRUE(is_free(c()));
}

TEST_P(AcquireAll, WaitsForTheOneThatIsTaken) {
  auto holder = open();
  auto taken = holder->acquire(b());
  ASSERT_THAT(taken, IsOk());
  auto client = open();
  auto waiter = in_background([&] { return client->acquire_all(all(), {.wait = kPatience}); });
  // It holds what comes before, and only that.
  EXPECT_TRUE(eventually([&] {
    auto info = bystander().show(a());
    return info && !info->holders.empty();
  }));
  EXPECT_TRUE(is_free(c()));
  ASSERT_THAT(taken->release(), IsOk());
  auto set = waiter.get();
  ASSERT_THAT(set, IsOk());
  EXPECT_TRUE(set->is_alive());
}

TEST_P(AcquireAll, AWaitThatEndsLeavesNothing) {
  auto holder = open();
  auto taken = holder->acquire(c());
  ASSERT_THAT(taken, IsOk());
  auto client = open();
  EXPECT_THAT(client->acquire_all(all(), {.wait = 50ms}), FailsWith(ErrorCode::timed_out));
  EXPECT_TRUE(is_free(a()));
  EXPECT_TRUE(is_free(b()));
  ASSERT_THAT(taken->release(), IsOk());
  EXPECT_TRUE(await_nothing_left());
}

TEST_P(AcquireAll, AStopTokenEndsTheWait) {
  auto holder = open();
  auto taken = holder->acquire(b());
  ASSERT_THAT(taken, IsOk());
  auto client = open();
  std::stop_source stop;
  auto waiter =
      in_background([&] { return client->acquire_all(all(), {.stop = stop.get_token()}); });
  ASSERT_TRUE(eventually([&] {
    auto info = bystander().show(a());
    return info && !info->holders.empty();
  }));
  stop.request_stop();
  EXPECT_THAT(waiter.get(), FailsWith(ErrorCode::cancelled));
  EXPECT_TRUE(is_free(a()));
  EXPECT_THAT(client->acquire_all(all(), {.stop = stop.get_token()}),
              FailsWith(ErrorCode::cancelled));
}

// Each names them in another order, in two processes' worth of clients.
TEST_P(AcquireAll, NobodyWaitsInACircle) {
  constexpr int kTurns = 6;
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 2; ++i) clients.push_back(open());
  std::atomic<int> inside = 0;
  std::atomic<bool> overlap = false;
  std::vector<std::future<void>> work;
  for (std::size_t i = 0; i < 4; ++i) {
    work.push_back(in_background([&, i] {
      std::vector<Want> wants = all();
      std::ranges::rotate(wants, wants.begin() + static_cast<std::ptrdiff_t>(i % 3));
      if (i == 3) std::ranges::reverse(wants);
      for (int turn = 0; turn < kTurns; ++turn) {
        auto set = clients[i % 2]->acquire_all(wants, {.wait = kPatience});
        ASSERT_THAT(set, IsOk());
        if (++inside > 1) overlap = true;
        --inside;
        ASSERT_THAT(set->release(), IsOk());
      }
    }));
  }
  for (auto& each : work) each.get();
  EXPECT_FALSE(overlap);
}

TEST_P(AcquireAll, TheLossOfOneIsTheLossOfAll) {
  auto client = open();
  auto set = client->acquire_all(all(), {.ttl = ttl(harness().renewable_ttl())});
  ASSERT_THAT(set, IsOk());
  ASSERT_FALSE(set->lost().stop_requested());
  EXPECT_EQ(set->loss(), std::nullopt);
  ASSERT_THAT(bystander().force_release(b(), Force::now), IsOk());
  EXPECT_TRUE(eventually([&] { return set->lost().stop_requested(); }));
  EXPECT_NE(set->loss(), std::nullopt);
  EXPECT_EQ((*set)[0].loss(), std::nullopt);
  EXPECT_THAT(set->release(), FailsWith(ErrorCode::lease_lost));
  EXPECT_TRUE(is_free(a()));
}

TEST_P(AcquireAll, BadNamesAreRefusedAndNothingIsTaken) {
  auto client = open();
  const auto expect_refused = [&](const std::vector<Want>& wants, const std::string& field) {
    auto refused = client->acquire_all(wants);
    ASSERT_THAT(refused, FailsWith(ErrorCode::invalid_argument));
    EXPECT_THAT(refused.error().text, HasSubstr(field));
  };
  expect_refused({}, "names");
  expect_refused({a(), b(), a()}, "names");
  expect_refused({a(), ""}, "name");
  expect_refused({a(), std::string(256, 'x')}, "name");
  auto late = client->acquire_all(all(), {.wait = -1s});
  ASSERT_THAT(late, FailsWith(ErrorCode::invalid_argument));
  EXPECT_THAT(late.error().text, HasSubstr("wait"));
  EXPECT_TRUE(await_nothing_left());
}

TEST_P(AcquireAllModes, EachHasAModeOfItsOwn) {
  auto one = open();
  auto other = open();
  auto first = one->acquire_all({{a(), Mode::shared}, {b(), Mode::exclusive}});
  ASSERT_THAT(first, IsOk());
  EXPECT_THAT(other->acquire_all({{a(), Mode::shared}, c()}, {.wait = 0s}), IsOk());
  EXPECT_THAT(other->try_acquire(a()), FailsWith(ErrorCode::busy));
  EXPECT_THAT(other->try_acquire(b(), {.mode = Mode::shared}), FailsWith(ErrorCode::busy));
}

TEST_P(AcquireAllPermits, PermitsAndAMutexTogether) {
  auto one = open();
  auto other = open();
  auto first = one->acquire_all({{a(), Mode::permits, 2, 3}, b()});
  ASSERT_THAT(first, IsOk());
  EXPECT_THAT(other->acquire_all({{a(), Mode::permits, 2, 3}, c()}, {.wait = 0s}),
              FailsWith(ErrorCode::busy));
  EXPECT_THAT(other->acquire_all({{a(), Mode::permits, 1, 3}, c()}, {.wait = kPatience}), IsOk());
  EXPECT_THAT(other->acquire_all({c(), {a(), Mode::permits, 4, 3}}),
              FailsWith(ErrorCode::invalid_argument));
}

class AcquireAllStores : public AcquireAll {};
class AcquireAllStoresUnsupported : public AcquireAll {};
HOLDFAST_RUN_ON(AcquireAllStores, harnesses_with(&Claims::values));
HOLDFAST_RUN_ON(AcquireAllStoresUnsupported, harnesses_without(&Claims::values));

TEST_P(AcquireAllStores, NobodyWaitsInACircle) {
  const auto elsewhere = Client::open("memory:" + name());
  ASSERT_THAT(elsewhere, IsOk());
  std::vector<std::unique_ptr<Client>> here;
  std::vector<Client> there;
  for (int i = 0; i < 2; ++i) {
    here.push_back(open());
    there.push_back(*Client::open("memory:" + name()));
  }
  std::vector<std::future<void>> work;
  for (std::size_t i = 0; i < 4; ++i) {
    work.push_back(in_background([&, i] {
      Client* const one = here[i % 2].get();
      Client* const other = &there[i % 2];
      std::vector<WantAt> wants{{one, b()}, {other, a()}, {one, a()}};
      std::ranges::rotate(wants, wants.begin() + static_cast<std::ptrdiff_t>(i % 3));
      for (int turn = 0; turn < 5; ++turn) {
        auto set = acquire_all(wants, {.wait = kPatience});
        ASSERT_THAT(set, IsOk());
        EXPECT_EQ(set->size(), 3U);
        ASSERT_THAT(set->release(), IsOk());
      }
    }));
  }
  for (auto& each : work) each.get();
}

// Two clients of one store are one store: the same lock twice is a mistake.
TEST_P(AcquireAllStores, KnowAStoreWhateverTheWayThere) {
  auto one = open();
  auto other = open();
  EXPECT_THAT(acquire_all({{one.get(), a()}, {other.get(), a()}}),
              FailsWith(ErrorCode::invalid_argument));
  EXPECT_THAT(acquire_all({{one.get(), a()}, {other.get(), b()}}), IsOk());
  EXPECT_THAT(acquire_all({{one.get(), a()}, {nullptr, b()}}),
              FailsWith(ErrorCode::invalid_argument));
}

TEST_P(AcquireAllStoresUnsupported, SayWhoCan) {
  auto one = open();
  auto other = open();
  auto refused = acquire_all({{one.get(), a()}, {other.get(), b()}});
  ASSERT_THAT(refused, FailsWith(ErrorCode::unsupported));
  EXPECT_THAT(refused.error().text, HasSubstr("sqlite"));
  EXPECT_THAT(acquire_all({{one.get(), a()}, {one.get(), b()}}), IsOk());
}

}  // namespace
}  // namespace holdfast::test
