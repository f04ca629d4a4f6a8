// Readers become writers and back, and leases pass to other processes.
#include <atomic>
#include <set>
#include <vector>

#include "conformance/conformance.h"

namespace holdfast::test {
namespace {

using ::testing::HasSubstr;

class Upgrading : public Conformance {
 protected:
  static AcquireOptions reader() { return {.mode = Mode::shared}; }
  // As a reader does that waits to become the writer.
  bool keeps_readers_out(Client& client) {
    return eventually([&] { return !client.try_acquire(name(), reader()); });
  }
  bool is_exclusive() {
    const auto info = seen();
    return info.holders.size() == 1 && info.holders.front().mode == Mode::exclusive;
  }
};
class NoUpgrade : public Conformance {};
HOLDFAST_RUN_ON(Upgrading, harnesses_with(&Claims::upgrade));
HOLDFAST_RUN_ON(NoUpgrade, harnesses_without(&Claims::upgrade));

TEST_P(Upgrading, TheOnlyReaderBecomesTheWriterAndAReaderAgain) {
  auto client = open();
  auto lease = client->acquire(name(), reader());
  ASSERT_THAT(lease, IsOk());
  const auto token = lease->token();
  ASSERT_THAT(lease->upgrade(0s), IsOk());
  EXPECT_GT(lease->token(), token);
  EXPECT_TRUE(lease->is_alive());
  EXPECT_TRUE(is_exclusive());
  EXPECT_THAT(lease->upgrade(0s), IsOk());  // it is already
  auto other = open();
  EXPECT_THAT(other->try_acquire(name(), reader()), FailsWith(ErrorCode::busy));
  EXPECT_THAT(client->try_acquire(name(), reader()), FailsWith(ErrorCode::busy));

  const auto as_writer = lease->token();
  ASSERT_THAT(lease->downgrade(), IsOk());
  EXPECT_EQ(lease->token(), as_writer);
  EXPECT_THAT(other->try_acquire(name(), reader()), IsOk());
  EXPECT_THAT(lease->downgrade(), IsOk());
  EXPECT_THAT(lease->release(), IsOk());
  EXPECT_TRUE(await_nothing_left());
}

TEST_P(Upgrading, WaitsForTheOtherReadersAndGoesBeforeThoseWhoWait) {
  auto one = open();
  auto other = open();
  auto third = open();
  auto lease = one->acquire(name(), reader());
  auto beside = other->acquire(name(), reader());
  ASSERT_THAT(lease, IsOk());
  ASSERT_THAT(beside, IsOk());
  EXPECT_THAT(lease->upgrade(0s), FailsWith(ErrorCode::busy));
  EXPECT_TRUE(lease->is_alive());

  auto upgrade = in_background([&] { return lease->upgrade(kPatience); });
  ASSERT_TRUE(keeps_readers_out(*third));
  // Another upgrader fails at once, as soon as the first one waits.
  EXPECT_THAT(beside->upgrade(kPatience), FailsWith(ErrorCode::busy));
  auto waiting = acquire_later(*third, name());
  ASSERT_TRUE(await_waiters(1));
  EXPECT_FALSE(is_ready(upgrade));
  ASSERT_THAT(beside->release(), IsOk());
  ASSERT_THAT(upgrade.get(), IsOk());
  EXPECT_TRUE(is_exclusive());
  EXPECT_FALSE(is_ready(waiting));
  EXPECT_GT(lease->token(), beside->token());
  ASSERT_THAT(lease->release(), IsOk());
  auto next = waiting.get();
  ASSERT_THAT(next, IsOk());
  EXPECT_GT(next->token(), lease->token());
}

TEST_P(Upgrading, AWaitThatEndsLeavesAReader) {
  auto one = open();
  auto other = open();
  auto lease = one->acquire(name(), reader());
  auto beside = other->acquire(name(), reader());
  ASSERT_THAT(beside, IsOk());
  EXPECT_THAT(lease->upgrade(30ms), FailsWith(ErrorCode::timed_out));
  std::stop_source stop;
  auto upgrade = in_background([&] { return lease->upgrade(std::nullopt, stop.get_token()); });
  stop.request_stop();
  EXPECT_THAT(upgrade.get(), FailsWith(ErrorCode::cancelled));
  EXPECT_TRUE(lease->is_alive());
  // New readers are let in again, and the other one may upgrade now.
  EXPECT_TRUE(eventually([&] { return open()->try_acquire(name(), reader()).has_value(); }));
  ASSERT_THAT(lease->release(), IsOk());
  EXPECT_THAT(beside->upgrade(kPatience), IsOk());
}

TEST_P(Upgrading, ReadersOfTheSameProcessMustLeaveToo) {
  auto client = open();
  auto lease = client->acquire(name(), reader());
  auto beside = client->acquire(name(), reader());
  ASSERT_THAT(beside, IsOk());
  EXPECT_THAT(lease->upgrade(0s), FailsWith(ErrorCode::busy));
  auto upgrade = in_background([&] { return lease->upgrade(kPatience); });
  ASSERT_TRUE(keeps_readers_out(*client));
  EXPECT_THAT(beside->upgrade(kPatience), FailsWith(ErrorCode::busy));
  ASSERT_THAT(beside->release(), IsOk());
  ASSERT_THAT(upgrade.get(), IsOk());
  EXPECT_TRUE(is_exclusive());
}

TEST_P(Upgrading, ADowngradeLetsWaitingReadersIn) {
  auto one = open();
  auto other = open();
  auto writer = one->acquire(name());
  ASSERT_THAT(writer, IsOk());
  auto elsewhere = acquire_later(*other, name(), reader());
  auto here = acquire_later(*one, name(), reader());
  ASSERT_TRUE(eventually([&] { return !seen().queue.empty(); }));
  ASSERT_THAT(writer->downgrade(), IsOk());
  EXPECT_THAT(elsewhere.get(), IsOk());
  EXPECT_THAT(here.get(), IsOk());
  EXPECT_TRUE(writer->is_alive());
}

TEST_P(Upgrading, AReaderThatDiedDoesNotHoldItUp) {
  auto one = open();
  auto lease = one->acquire(name(), reader());
  ASSERT_THAT(lease, IsOk());
  auto other = open();
  auto dying = other->acquire(
      name(), {.ttl = harness().shortest_ttl(), .mode = Mode::shared, .renew = false});
  ASSERT_THAT(dying, IsOk());
  EXPECT_THAT(lease->upgrade(kPatience), IsOk());
  EXPECT_TRUE(is_exclusive());
}

TEST_P(Upgrading, AnUpgradedLeaseLivesOnRenewals) {
  given_time([&](int scale) {
    const Duration ttl = scale * harness().renewable_ttl();
    auto client = open();
    auto lease = client->acquire(name(), {.ttl = ttl, .mode = Mode::shared});
    ASSERT_THAT(lease, IsOk());
    ASSERT_THAT(lease->upgrade(), IsOk());
    EXPECT_TRUE(throughout(2 * ttl, [&] { return lease->is_alive() && !lease->loss(); }));
    EXPECT_THAT(lease->release(), IsOk());
  });
}

// Read, then write what follows from it: no update is lost, though all begin
// as readers. Who meets another upgrader lets go and starts over.
TEST_P(Upgrading, ReadModifyWriteLosesNothing) {
  constexpr int kTurns = 8;
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 2; ++i) clients.push_back(open());
  int counter = 0;
  std::vector<std::future<void>> work;
  for (std::size_t i = 0; i < 4; ++i) {
    work.push_back(in_background([&, i] {
      for (int done = 0; done < kTurns;) {
        auto lease = clients[i % 2]->acquire(name(), {.wait = kPatience, .mode = Mode::shared});
        ASSERT_THAT(lease, IsOk());
        const auto upgraded = lease->upgrade(kPatience);
        if (upgraded) {
          ++counter;  // a data race, if two were writers
          ++done;
        } else {
          ASSERT_THAT(upgraded, FailsWith(ErrorCode::busy));
        }
      }
    }));
  }
  for (auto& each : work) each.get();
  EXPECT_EQ(counter, 4 * kTurns);
}

TEST_P(Upgrading, LostAndForeignLeasesAreRefused) {
  auto client = open();
  auto lease = client->acquire(
      name(), {.ttl = harness().shortest_ttl(), .mode = Mode::shared, .renew = false});
  ASSERT_THAT(lease, IsOk());
  harness().let_expire(*lease);
  EXPECT_THAT(lease->upgrade(0s), FailsWith(ErrorCode::lease_lost));
  EXPECT_THAT(lease->downgrade(), FailsWith(ErrorCode::lease_lost));
  Lease empty;
  EXPECT_THAT(empty.upgrade(), FailsWith(ErrorCode::invalid_argument));
  EXPECT_THAT(empty.downgrade(), FailsWith(ErrorCode::invalid_argument));
  auto permit = client->acquire(name() + "s", {.mode = Mode::permits, .permits = 1, .of = 2});
  ASSERT_THAT(permit, IsOk());
  EXPECT_THAT(permit->upgrade(), FailsWith(ErrorCode::invalid_argument));
  EXPECT_THAT(permit->downgrade(), FailsWith(ErrorCode::invalid_argument));
  const auto negative = permit->upgrade(-1s);
  ASSERT_THAT(negative, FailsWith(ErrorCode::invalid_argument));
  EXPECT_THAT(negative.error().text, HasSubstr("wait"));
}

TEST_P(NoUpgrade, SaysWhoCan) {
  auto client = open();
  auto lease = client->acquire(name());
  ASSERT_THAT(lease, IsOk());
  const auto refused = lease->downgrade();
  ASSERT_THAT(refused, FailsWith(ErrorCode::unsupported));
  EXPECT_THAT(refused.error().text, HasSubstr("sqlite"));
  EXPECT_THAT(lease->upgrade(), FailsWith(ErrorCode::unsupported));
  EXPECT_TRUE(lease->is_alive());
}

class HandingOver : public Conformance {};
class HandingOverShapes : public Conformance {};
class NoHandingOver : public Conformance {};
HOLDFAST_RUN_ON(HandingOver, harnesses_with(&Claims::transfer));
HOLDFAST_RUN_ON(HandingOverShapes, harnesses_with(&Claims::transfer, &Claims::permits));
HOLDFAST_RUN_ON(NoHandingOver, harnesses_without(&Claims::transfer));

TEST_P(HandingOver, TheLockPassesWithAHigherTokenBeforeThoseWhoWait) {
  auto giver = open();
  auto taker = open();
  auto third = open();
  auto lease = giver->acquire(name());
  ASSERT_THAT(lease, IsOk());
  const auto token = lease->token();
  auto waiting = acquire_later(*third, name());
  ASSERT_TRUE(await_waiters(1));
  auto code = lease->give_away();
  ASSERT_THAT(code, IsOk());
  EXPECT_FALSE(*lease);
  EXPECT_FALSE(lease->is_alive());

  auto adopted = taker->adopt(*code);
  ASSERT_THAT(adopted, IsOk());
  EXPECT_GT(adopted->token(), token);
  EXPECT_EQ(adopted->name(), name());
  EXPECT_TRUE(adopted->is_alive());
  EXPECT_TRUE(is_seen_held(*adopted));
  EXPECT_FALSE(is_ready(waiting));
  EXPECT_THAT(open()->adopt(*code), FailsWith(ErrorCode::lease_lost));
  *lease = Lease{};  // releases nothing
  ASSERT_THAT(giver->flush(), IsOk());
  EXPECT_TRUE(is_seen_held(*adopted));
  ASSERT_THAT(adopted->release(), IsOk());
  EXPECT_THAT(waiting.get(), IsOk());
}

TEST_P(HandingOver, AnAdoptedLeaseLivesOnRenewals) {
  given_time([&](int scale) {
    const Duration ttl = scale * harness().renewable_ttl();
    auto giver = open();
    auto taker = open();
    auto lease = giver->acquire(name(), {.ttl = ttl});
    ASSERT_THAT(lease, IsOk());
    auto code = lease->give_away();
    ASSERT_THAT(code, IsOk());
    auto adopted = taker->adopt(*code, {.ttl = ttl});
    ASSERT_THAT(adopted, IsOk());
    EXPECT_TRUE(throughout(2 * ttl, [&] { return adopted->is_alive(); }));
    EXPECT_THAT(adopted->release(), IsOk());
  });
}

TEST_P(HandingOver, ACodeThatNobodyUsesRunsOut) {
  given_time([&](int scale) {
    auto client = open();
    auto lease = client->acquire(name(), {.ttl = scale * harness().shortest_ttl() * 5});
    ASSERT_THAT(lease, IsOk());
    auto code = lease->give_away();
    ASSERT_THAT(code, IsOk());
    auto next = client->acquire(name(), {.wait = kPatience});
    ASSERT_THAT(next, IsOk());
    EXPECT_THAT(client->adopt(*code), FailsWith(ErrorCode::lease_lost));
    EXPECT_TRUE(is_seen_held(*next));
  });
}

TEST_P(HandingOver, BadInputIsRefused) {
  auto client = open();
  for (const char* bad : {"", "x", "holdfast1-", "holdfast1-00-0-1-0-78"}) {
    const auto refused = client->adopt(bad);
    ASSERT_THAT(refused, FailsWith(ErrorCode::invalid_argument)) << bad;
    EXPECT_THAT(refused.error().text, HasSubstr("code"));
  }
  Lease empty;
  EXPECT_THAT(empty.give_away(), FailsWith(ErrorCode::invalid_argument));
  auto lease = client->acquire(name());
  auto code = lease->give_away();
  ASSERT_THAT(code, IsOk());
  EXPECT_THAT(client->adopt(*code, {.ttl = -1s}), FailsWith(ErrorCode::invalid_argument));
  EXPECT_THAT(lease->give_away(), FailsWith(ErrorCode::invalid_argument));
  EXPECT_THAT(client->adopt(*code), IsOk());
  EXPECT_TRUE(await_nothing_left());
}

TEST_P(HandingOverShapes, ModeAndPermitsGoAlong) {
  auto giver = open();
  auto taker = open();
  auto reader = giver->acquire(name(), {.mode = Mode::shared});
  auto permits = giver->acquire(name() + "s", {.mode = Mode::permits, .permits = 2, .of = 3});
  ASSERT_THAT(reader, IsOk());
  ASSERT_THAT(permits, IsOk());
  auto adopted = taker->adopt(*reader->give_away());
  auto adopted_permits = taker->adopt(*permits->give_away());
  ASSERT_THAT(adopted, IsOk());
  ASSERT_THAT(adopted_permits, IsOk());
  EXPECT_THAT(giver->try_acquire(name(), {.mode = Mode::shared}), IsOk());
  EXPECT_THAT(giver->try_acquire(name() + "s", {.mode = Mode::permits, .permits = 2, .of = 3}),
              FailsWith(ErrorCode::busy));
  EXPECT_THAT(giver->try_acquire(name() + "s", {.mode = Mode::permits, .permits = 1, .of = 3}),
              IsOk());
}

TEST_P(HandingOverShapes, OtherThreadsOnTheSameGrantAreInTheWay) {
  auto client = open();
  auto one = client->acquire(name(), {.mode = Mode::shared});
  auto other = client->acquire(name(), {.mode = Mode::shared});
  ASSERT_THAT(other, IsOk());
  EXPECT_THAT(one->give_away(), FailsWith(ErrorCode::busy));
  EXPECT_TRUE(one->is_alive());
  ASSERT_THAT(other->release(), IsOk());
  EXPECT_THAT(one->give_away(), IsOk());
}

TEST_P(NoHandingOver, SaysWhoCan) {
  auto client = open();
  auto lease = client->acquire(name());
  ASSERT_THAT(lease, IsOk());
  EXPECT_THAT(lease->give_away(), FailsWith(ErrorCode::unsupported));
  EXPECT_THAT(client->adopt("x"), FailsWith(ErrorCode::unsupported));
  EXPECT_TRUE(lease->is_alive());
}

}  // namespace
}  // namespace holdfast::test
