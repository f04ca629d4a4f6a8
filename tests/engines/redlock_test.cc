// A majority of real servers that are stopped, killed and started again.
#include "support/redlock_test.h"

#include <gmock/gmock.h>

#include <csignal>

namespace holdfast {
namespace {

using namespace test;
using core::Status;

TEST_F(Redlock, AMajorityIsEnoughAndAMinorityIsNot) {
  const auto engine = open("first_start=true");
  const auto first = until_granted(*engine, acquire(1));
  EXPECT_EQ(submit(*engine, "x", release(1)).status, Status::released);
  for (std::size_t node = 0; node < 3; ++node) {
    EXPECT_TRUE(comes_free(node, "x")) << "released everywhere";
  }

  nodes_[0]->kill();
  const auto second = until_granted(*engine, acquire(2));
  EXPECT_GT(second.token, first.token + core::kTokenStride - 1);
  EXPECT_EQ(submit(*engine, "x", renew(2)).status, Status::renewed);

  // It comes back empty; a renewal by the others gives it its vote again.
  nodes_[0]->start();
  EXPECT_TRUE(eventually([&] {
    EXPECT_EQ(submit(*engine, "x", renew(2)).status, Status::renewed);
    return raw(0).ask({"EXISTS", "x"}).integer == 1;
  })) << "not repaired";
  nodes_[1]->kill();
  EXPECT_EQ(submit(*engine, "x", renew(2)).status, Status::renewed);

  nodes_[0]->kill();
  const auto refused = submit(*engine, "y", try_acquire(3));
  ASSERT_TRUE(refused.error);
  EXPECT_EQ(refused.error->code, ErrorCode::unavailable);
  EXPECT_TRUE(comes_free(2, "y")) << "the only vote was given back";

  // A majority has forgotten it: it is lost, and not put back.
  nodes_[0]->start();
  nodes_[1]->start();
  // Before a majority is heard again nothing is decided, and a node that is back may get its vote.
  EXPECT_TRUE(
      eventually([&] { return submit(*engine, "z", try_acquire(4)).status == Status::granted; }));
  EXPECT_TRUE(
      eventually([&] { return submit(*engine, "x", renew(2)).status == Status::not_held; }));
  EXPECT_TRUE(comes_free(0, "x"));
}

TEST_F(Redlock, TokensRiseWhicheverMajorityGrants) {
  const auto engine = open("first_start=true");
  std::uint64_t last = 0;
  for (std::uint32_t i = 0; i < 9; ++i) {
    nodes_[i % 3]->signal(SIGSTOP);
    const auto granted = until_granted(*engine, acquire(10 + i));
    EXPECT_GT(granted.token, last);
    last = granted.token + core::kTokenStride - 1;
    nodes_[i % 3]->signal(SIGCONT);
    EXPECT_EQ(submit(*engine, "x", release(10 + i)).status, Status::released);
  }
}

// A node that has handed out more than we know of does not take what we propose.
TEST_F(Redlock, ATokenIsAboveEveryCounterOfTheMajority) {
  const auto engine = open("first_start=true");
  const auto first = until_granted(*engine, acquire(1));
  ASSERT_EQ(submit(*engine, "x", release(1)).status, Status::released);
  const std::uint64_t handed_out = first.token + 3'600'000'000;  // an hour ahead
  for (std::size_t node = 0; node < 2; ++node) {
    raw(node).ask({"SET", "holdfast:token:x", std::to_string(handed_out)});
  }
  nodes_[2]->signal(SIGSTOP);  // who votes is known
  const auto second = until_granted(*engine, acquire(2));
  EXPECT_GT(second.token, handed_out);
  for (std::size_t node = 0; node < 2; ++node) {
    EXPECT_EQ(raw(node).ask({"GET", "holdfast:token:x"}).text, std::to_string(second.token));
  }
  nodes_[2]->signal(SIGCONT);
}

TEST_F(Redlock, WhereNobodyContendsAnAcquireIsOneRound) {
  constexpr std::uint32_t kCycles = 50;
  const auto engine = open("first_start=true");
  until_granted(*engine, acquire(1));
  submit(*engine, "x", release(1));
  RawRedis node = raw(0);
  const auto calls = [&] { return told(node, "commandstats", "cmdstat_evalsha:calls="); };
  const auto before = calls();
  for (std::uint32_t i = 0; i < kCycles; ++i) {
    const std::string name = "cycle" + std::to_string(i);
    ASSERT_EQ(submit(*engine, name, acquire(10 + i)).status, Status::granted);
    ASSERT_EQ(submit(*engine, name, release(10 + i)).status, Status::released);
  }
  // Three a cycle, if each took two. A machine that stalls may make some of them do.
  EXPECT_LT(calls() - before, 2 * kCycles + kCycles / 2);
}

// With a time-out that no test survives.
TEST_F(Redlock, ASlowNodeIsNotWaitedForAndIsLetGoAllTheSame) {
  const auto engine =
      open_engine(bare_url("first_start=true&max_ttl=1h&node_timeout=1h&timeout=1h"), 1);
  core::Acquire slow = acquire(1);
  slow.ttl = 1h;
  ASSERT_EQ(submit(*engine, "x", slow).status, Status::granted);
  ASSERT_EQ(submit(*engine, "x", release(1)).status, Status::released);
  nodes_[0]->signal(SIGSTOP);
  slow.id = id(2);
  EXPECT_EQ(submit(*engine, "x", slow).status, Status::granted);
  EXPECT_EQ(submit(*engine, "x", renew(2)).status, Status::renewed);
  EXPECT_EQ(submit(*engine, "x", release(2)).status, Status::released);
  slow.id = id(3);
  EXPECT_EQ(submit(*engine, "x", slow).status, Status::granted);
  EXPECT_EQ(submit(*engine, "x", release(3)).status, Status::released);
  slow.id = id(4);
  EXPECT_EQ(submit(*engine, "y", slow).status, Status::granted);
  nodes_[0]->signal(SIGCONT);
  // It hears of all that now, one after the other.
  EXPECT_TRUE(eventually([&] { return raw(0).ask({"EXISTS", "y"}).integer == 1; }));
  EXPECT_TRUE(comes_free(0, "x")) << "let go also where nobody waited for it";
}

TEST_F(Redlock, AReleaseIsToldToWhoWaitsLongest) {
  const auto holder = open("first_start=true");
  const auto first = open("first_start=true", 2);
  const auto second = open("first_start=true", 3);
  until_granted(*holder, acquire(1));
  ASSERT_EQ(submit(*first, "x", acquire(2)).status, Status::queued);
  ASSERT_EQ(submit(*second, "x", acquire(3)).status, Status::queued);
  ASSERT_TRUE(eventually([&] {
    EXPECT_TRUE(first->answer_doorbell().empty());
    EXPECT_TRUE(second->answer_doorbell().empty());
    std::size_t listening = 0;
    for (std::size_t node = 0; node < 3; ++node) {
      listening += raw(node).ask({"PUBSUB", "CHANNELS", "holdfast:bell:*"}).items.size();
    }
    return listening == 6;
  })) << "they do not listen";

  ASSERT_EQ(submit(*holder, "x", release(1)).status, Status::released);
  const auto rings = wait_for_ring(*first);
  ASSERT_EQ(rings.size(), 1U) << "once, for all nodes together";
  EXPECT_EQ(rings[0].id, id(2));
  EXPECT_EQ(submit(*first, "x", poll(2)).status, Status::granted) << "a majority has let go";
  EXPECT_TRUE(second->answer_doorbell().empty());

  // The next in line hears of the next release, though a node is gone.
  nodes_[2]->kill();
  ASSERT_EQ(submit(*second, "x", poll(3)).status, Status::queued);
  ASSERT_EQ(submit(*first, "x", release(2)).status, Status::released);
  const auto more = wait_for_ring(*second);
  ASSERT_EQ(more.size(), 1U);
  EXPECT_EQ(more[0].id, id(3));
}

TEST_F(Redlock, AllMustAgreeAboutMaxTtl) {
  const auto engine = open("first_start=true&max_ttl=40s");
  until_granted(*engine, acquire(1));
  core::Acquire too_long = acquire(2);
  too_long.ttl = 41s;
  EXPECT_EQ(submit(*engine, "y", too_long).error->code, ErrorCode::invalid_argument);
  const auto other = open("first_start=true&max_ttl=50s", 2);
  const auto refused = submit(*other, "y", try_acquire(3));
  ASSERT_TRUE(refused.error);
  EXPECT_EQ(refused.error->code, ErrorCode::invalid_argument) << *refused.error;
}

TEST_F(Redlock, SharedLocksAndPermitsAreRefused) {
  const auto engine = open("first_start=true");
  for (const auto& shape : {kShared, permits(1, 2)}) {
    EXPECT_EQ(submit(*engine, "x", acquire(1, shape)).error->code, ErrorCode::unsupported);
  }
  EXPECT_EQ(submit(*engine, "x", core::Resize{.limit = 3}).error->code, ErrorCode::unsupported);
}

TEST_F(Redlock, OtherRedlocksAndOursExcludeEachOther) {
  const auto engine = open("first_start=true");
  for (std::size_t node = 0; node < 2; ++node) {
    raw(node).ask({"SET", "x", "theirs", "NX", "PX", "30000"});
  }
  EXPECT_EQ(submit(*engine, "x", try_acquire(1)).status, Status::busy);
  EXPECT_TRUE(comes_free(2, "x"));
  for (std::size_t node = 0; node < 2; ++node) {
    raw(node).ask({"DEL", "x"});
  }
  until_granted(*engine, acquire(2));
  int theirs = 0;  // a node that we did not wait for may be one
  for (std::size_t node = 0; node < 3; ++node) {
    theirs += raw(node).ask({"SET", "x", "theirs", "NX", "PX", "30000"}).text == "OK" ? 1 : 0;
  }
  EXPECT_LE(theirs, 1);
}

// One node misses the grant, another forgets it: the two make a majority for
// somebody else, unless the one that forgot does not count.
TEST_F(Redlock, ANodeThatIsBackTooEarlyGrantsTwiceUnlessItDoesNotCountLongRun) {
  constexpr base::Duration kTtl = 8s;
  const auto holder = open("max_ttl=8s");
  const auto guarded = open("max_ttl=8s", 2);
  const auto careless = open("max_ttl=8s&first_start=true", 3);

  const auto young = submit(*guarded, "x", lasting(1, kTtl));
  ASSERT_TRUE(young.error) << "the nodes have only just been started";
  EXPECT_EQ(young.error->code, ErrorCode::unavailable);
  EXPECT_THAT(young.error->text, ::testing::HasSubstr("first_start"));

  for (std::uint32_t attempt = 1; attempt <= 5; ++attempt) {
    nodes_[2]->signal(SIGSTOP);
    const auto held = until_granted(*holder, lasting(100 + attempt, kTtl));
    const base::Time start = base::BootClock::now() + held.lease_for - kTtl;
    nodes_[2]->signal(SIGCONT);
    nodes_[1]->kill();
    nodes_[1]->start();
    core::Outcome careful;
    core::Outcome second;
    eventually(
        [&] {
          careful = submit(*guarded, "x", lasting(200 + attempt, kTtl));
          second = submit(*careless, "x", lasting(300 + attempt, kTtl));
          return second.status == Status::granted;
        },
        3s);
    const bool in_time = base::BootClock::now() - start < kTtl;
    submit(*careless, "x", release(300 + attempt));
    submit(*holder, "x", release(100 + attempt));
    if (in_time && second.status == Status::granted) {
      EXPECT_NE(careful.status, Status::granted) << "two holders at once";
      return;  // the double grant was reproduced, and the guard stood
    }
  }
  FAIL() << "the double grant was not reproduced in five attempts: a test that finds nothing "
            "proves nothing about the guard";
}

}  // namespace
}  // namespace holdfast
