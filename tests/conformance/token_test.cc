// Every grant's token is larger than that of any earlier conflicting grant.
#include <mutex>
#include <set>
#include <vector>

#include "conformance/conformance.h"

namespace holdfast::test {
namespace {

class Token : public Conformance {
 protected:
  std::uint64_t take_and_release(Client& client, AcquireOptions options = {}) {
    if (!options.wait) options.wait = kPatience;
    auto lease = client.acquire(name(), options);
    EXPECT_THAT(lease, IsOk());
    if (!lease) return 0;
    EXPECT_THAT(lease->release(), IsOk());
    return lease->token().value_or(0);
  }
};
class TokenShared : public Token {};
class TokenMissing : public Conformance {};
HOLDFAST_RUN_ON(Token, harnesses_with(&Claims::token));
HOLDFAST_RUN_ON(TokenShared, harnesses_with(&Claims::token, &Claims::shared));

TEST_P(Token, IsExactInADouble) {
  auto client = open();
  auto lease = client->acquire(name(), {.require_token = true});
  ASSERT_THAT(lease, IsOk());
  ASSERT_TRUE(lease->token());
  EXPECT_GT(*lease->token(), 0U);
  EXPECT_LT(*lease->token(), std::uint64_t{1} << 53U);
}

TEST_P(Token, RisesWithEveryGrantWhoeverAsks) {
  auto one = open();
  auto other = open();
  std::uint64_t last = 0;
  for (int turn = 0; turn < 20; ++turn) {
    const auto token = take_and_release(turn % 3 == 0 ? *other : *one);
    EXPECT_GT(token, last);
    last = token;
  }
}

TEST_P(Token, RisesInTheOrderOfEntryThroughHandOversAndStore) {
  auto one = open();
  auto other = open();
  std::vector<std::uint64_t> entered;  // protected by the lock under test
  std::vector<std::future<void>> work;
  for (int i = 0; i < 6; ++i) {
    work.push_back(in_background([&, i] {
      for (int turn = 0; turn < 20; ++turn) {
        auto lease = (i < 4 ? one : other)->acquire(name(), {.wait = kPatience, .hand_over = 5});
        ASSERT_THAT(lease, IsOk());
        entered.push_back(lease->token().value_or(0));
      }
    }));
  }
  for (auto& each : work) each.get();
  ASSERT_EQ(entered.size(), 120U);
  for (std::size_t i = 1; i < entered.size(); ++i) EXPECT_GT(entered[i], entered[i - 1]);
}

// Many grants in a short time: the tokens run ahead of any clock they started at.
TEST_P(Token, RisesAfterEverybodyLeftAndCameBack) {
  std::uint64_t last = 0;
  for (int turn = 0; turn < 4; ++turn) {
    auto client = open();
    for (int grant = 0; grant < 200; ++grant) {
      const auto token = take_and_release(*client);
      EXPECT_GT(token, last);
      last = token;
    }
  }
}

TEST_P(Token, RisesAfterExpiry) {
  auto client = open();
  auto lost = client->acquire(name(), {.ttl = harness().shortest_ttl(), .renew = false});
  ASSERT_THAT(lost, IsOk());
  harness().let_expire(*lost);
  EXPECT_GT(take_and_release(*client), lost->token());
}

TEST_P(Token, RisesAfterAForcedRelease) {
  auto one = open();
  auto other = open();
  auto forced = one->acquire(name());
  ASSERT_THAT(forced, IsOk());
  ASSERT_THAT(other->force_release(name(), Force::now), IsOk());
  EXPECT_GT(take_and_release(*other), forced->token());
}

TEST_P(Token, StaysOnReentryAndThroughRenewal) {
  auto client = open();
  const Owner me = Owner::make();
  auto outer = client->acquire(name(), {.owner = me});
  auto inner = client->acquire(name(), {.wait = 0s, .owner = me});
  ASSERT_THAT(outer, IsOk());
  ASSERT_THAT(inner, IsOk());
  EXPECT_EQ(inner->token(), outer->token());
}

TEST_P(TokenShared, IsUniqueAmongReadersAndAboveThemForTheWriter) {
  const AcquireOptions reader{.wait = kPatience, .mode = Mode::shared};
  auto one = open();
  auto other = open();
  const auto before = take_and_release(*one);
  std::vector<Lease> readers;
  std::set<std::uint64_t> tokens;
  for (int i = 0; i < 10; ++i) {
    auto lease = (i % 3 == 0 ? other : one)->acquire(name(), reader);
    ASSERT_THAT(lease, IsOk());
    ASSERT_TRUE(lease->token());
    EXPECT_GT(*lease->token(), before);
    EXPECT_TRUE(tokens.insert(*lease->token()).second) << "two readers share a token";
    readers.push_back(std::move(*lease));
  }
  for (Lease& lease : readers) EXPECT_THAT(lease.release(), IsOk());
  EXPECT_GT(take_and_release(*one), *tokens.rbegin());
}

TEST_P(TokenShared, RisesBetweenWritersAndCrowdsOfReaders) {
  auto one = open();
  auto other = open();
  std::mutex mutex;
  std::set<std::uint64_t> since_writer;  // readers' tokens
  std::uint64_t last_writer = 0;
  std::vector<std::future<void>> work;
  for (int i = 0; i < 6; ++i) {
    work.push_back(in_background([&, i] {
      for (int turn = 0; turn < 15; ++turn) {
        const bool writes = (i + turn) % 4 == 0;
        auto lease = (i % 2 == 0 ? one : other)
                         ->acquire(name(), {.wait = kPatience,
                                            .mode = writes ? Mode::exclusive : Mode::shared});
        ASSERT_THAT(lease, IsOk());
        const std::scoped_lock lock{mutex};
        const std::uint64_t token = lease->token().value_or(0);
        EXPECT_GT(token, last_writer);
        if (writes) {
          if (!since_writer.empty()) {
            EXPECT_GT(token, *since_writer.rbegin());
          }
          since_writer.clear();
          last_writer = token;
        } else {
          EXPECT_TRUE(since_writer.insert(token).second);
        }
      }
    }));
  }
  for (auto& each : work) each.get();
}

// No harness without tokens yet? Then nothing is instantiated here.
HOLDFAST_RUN_ON(TokenMissing, harnesses_without(&Claims::token));
TEST_P(TokenMissing, IsEmptyAndRequiringOneIsUnsupported) {
  auto client = open();
  EXPECT_THAT(client->acquire(name(), {.require_token = true}), FailsWith(ErrorCode::unsupported));
  auto lease = client->acquire(name());
  ASSERT_THAT(lease, IsOk());
  EXPECT_FALSE(lease->token());
}

}  // namespace
}  // namespace holdfast::test
