// What happens on the way to ZooKeeper, and who may do what there.
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"  // GCC's own code for coroutines

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <holdfast/holdfast.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/ids.h"
#include "engine/task.h"
#include "engine/url.h"
#include "engines/zookeeper/zookeeper_doctor.h"
#include "engines/zookeeper/zookeeper_session.h"
#include "support/engine_driver.h"
#include "support/eventually.h"
#include "support/fault_proxy.h"
#include "support/needs.h"
#include "support/quorum_servers.h"
#include "support/server.h"
#include "support/zookeeper_test.h"

namespace holdfast {
namespace {

using namespace test;
using core::Outcome;
using core::Status;

TEST(ZookeeperDoctor, KnowsWhatIsWrongWithAVersion) {
  const auto level = [](const char* version, bool one_of_several) {
    return engines::zookeeper_version(version, one_of_several).level;
  };
  EXPECT_EQ(level("3.5.2", false), Finding::Level::problem);
  EXPECT_EQ(level("3.5.3", true), Finding::Level::ok);
  EXPECT_EQ(level("3.8.0", true), Finding::Level::warning);
  EXPECT_EQ(level("3.8.0", false), Finding::Level::ok) << "it has nobody to join";
  EXPECT_EQ(level("3.9.2", true), Finding::Level::warning);
  EXPECT_EQ(level("3.9.3", true), Finding::Level::warning);
  EXPECT_EQ(level("3.9.4", true), Finding::Level::ok);
}

class ZookeeperFaults : public ZookeeperTest {};

// The create's answer is lost, and the connection once more while we look for
// the node: there must be one in the end, and none after the release.
TEST_F(ZookeeperFaults, ALostReplyToAnAcquireNeverMakesTwoNodes) {
  const auto line = proxy();
  const auto engine = open_engine(url_at(port_of(*line)));
  const auto other = open_engine(url(), 2);
  ASSERT_EQ(submit(*engine, "x", acquire(1)).status, Status::granted);
  ASSERT_EQ(submit(*engine, "x", release(1)).status, Status::released);
  for (std::uint32_t number = 2; number < 5; ++number) {
    line->swallow_reply({.pattern = "-lock-", .then = Swallow::Then::cut});
    const Outcome lost = submit(*engine, "x", acquire(number));
    ASSERT_TRUE(lost.error);
    EXPECT_EQ(lost.error->code, ErrorCode::outcome_unknown) << *lost.error;
    if (number > 2) {
      // Whatever comes next about this lock: it is a question where our node is.
      line->swallow_reply({.pattern = root_ + "/x", .then = Swallow::Then::cut});
      const Outcome again = submit(*engine, "x", acquire(number));
      ASSERT_TRUE(again.error);
      EXPECT_EQ(again.error->code, ErrorCode::outcome_unknown) << *again.error;
    }
    EXPECT_EQ(insist(*engine, "x", acquire(number)).status, Status::granted);
    EXPECT_EQ(nodes_of(*other, "x"), 1U);
    EXPECT_EQ(insist(*engine, "x", release(number)).status, Status::released);
    EXPECT_EQ(nodes_of(*other, "x"), 0U);
  }
}

TEST_F(ZookeeperFaults, ALostReplyToAReleaseHurtsNobody) {
  const auto line = proxy();
  const auto engine = open_engine(url_at(port_of(*line)));
  const auto other = open_engine(url(), 2);
  const Outcome first = submit(*engine, "x", acquire(1));
  ASSERT_EQ(first.status, Status::granted);
  line->swallow_reply({.pattern = "-lock-", .then = Swallow::Then::cut});
  const Outcome lost = submit(*engine, "x", release(1));
  ASSERT_TRUE(lost.error);
  EXPECT_EQ(lost.error->code, ErrorCode::outcome_unknown);
  const Outcome next = insist(*other, "x", acquire(2));
  EXPECT_EQ(next.status, Status::granted);
  EXPECT_GT(next.token, first.token);
  EXPECT_EQ(insist(*engine, "x", release(1)).status, Status::not_held);
  EXPECT_EQ(submit(*other, "x", renew(2)).status, Status::renewed);
}

TEST_F(ZookeeperFaults, ALostReplyToARequeueGivesBackOnce) {
  const auto line = proxy();
  const auto engine = open_engine(url_at(port_of(*line)));
  const auto other = open_engine(url(), 2);
  ASSERT_EQ(submit(*engine, "x", acquire(1)).status, Status::granted);
  ASSERT_EQ(submit(*other, "x", acquire(3)).status, Status::queued);
  line->swallow_reply({.pattern = "-lock-", .then = Swallow::Then::cut});
  const core::Requeue requeue{.id = id(1), .next = acquire(2)};
  ASSERT_TRUE(submit(*engine, "x", requeue).error);
  const Outcome again = insist(*engine, "x", requeue);
  EXPECT_EQ(again.status, Status::queued);
  EXPECT_TRUE(again.gave_back);
  EXPECT_EQ(nodes_of(*engine, "x"), 2U);
  EXPECT_EQ(insist(*other, "x", heartbeat(3)).status, Status::granted);
}

// With nobody else in line the node stays, and costs the ensemble no write, for as long as
// tokens can rise within its block.
TEST_F(ZookeeperFaults, ARequeueWithNobodyInLineKeepsTheNode) {
  const auto engine = open_engine(url());
  const auto other = open_engine(url(), 2);
  std::uint64_t last = submit(*engine, "x", acquire(1)).token;
  const auto node = [&] { return other->show("x").value().holders.at(0).token; };
  const auto first = node();
  std::uint32_t number = 1;
  const auto requeue = [&] {
    const Outcome outcome =
        submit(*engine, "x", core::Requeue{.id = id(number), .next = acquire(number + 1)});
    EXPECT_EQ(outcome.status, Status::granted);
    EXPECT_TRUE(outcome.gave_back);
    EXPECT_GE(outcome.token, last + core::kTokenStride);
    last = outcome.token;
    ++number;
  };
  requeue();
  EXPECT_EQ(node(), first);
  while (node() == first && number < 1000) {
    requeue();
  }
  EXPECT_GT(node(), first) << "the block has an end";
  EXPECT_LT(number, 1000U);
  EXPECT_EQ(nodes_of(*other, "x"), 1U);
  requeue();
  // Whoever has it now is who can lose it.
  ASSERT_EQ(submit(*other, "x", core::Revoke{}).status, Status::done);
  EXPECT_EQ(submit(*engine, "x", renew(1)).status, Status::not_held);
  EXPECT_EQ(submit(*engine, "x", renew(number)).status, Status::revoked);
  EXPECT_EQ(submit(*engine, "x", heartbeat(number)).status, Status::revoked);
  EXPECT_EQ(submit(*engine, "x", release(number)).status, Status::released);
  EXPECT_EQ(nodes_of(*other, "x"), 0U);
}

// A session that was given up may live on at the servers, with its nodes: the
// same request must not take the old one for its own.
TEST_F(ZookeeperFaults, ANewSessionDoesNotTrustTheNodeOfAnOldOne) {
  for (const char* strategy : {"queue", "simple"}) {
    const std::string with = std::string{"&strategy="} + strategy;
    const std::string name = strategy;
    const auto old = open_engine(url(with), 1);
    const auto fresh = open_engine(url(with), 2);
    ASSERT_EQ(submit(*old, name, acquire(1)).status, Status::granted);
    EXPECT_EQ(submit(*fresh, name, acquire(1)).status, Status::queued) << strategy;
    EXPECT_EQ(submit(*old, name, release(1)).status, Status::released);
    EXPECT_TRUE(
        eventually([&] { return submit(*fresh, name, heartbeat(1)).status == Status::granted; }));
  }
  const auto old = open_engine(url(), 1);
  const auto fresh = open_engine(url(), 2);
  ASSERT_EQ(submit(*old, "permits", acquire(1, permits(1, 1))).status, Status::granted);
  EXPECT_EQ(submit(*fresh, "permits", acquire(1, permits(1, 1))).status, Status::queued);
}

// One node for all who take the lock in turn: a release that is sent again must
// not remove the next holder's.
TEST_F(ZookeeperFaults, ALostReplyToASimpleReleaseHurtsNobody) {
  const auto line = proxy();
  const auto engine = open_engine(url_at(port_of(*line), "&strategy=simple"));
  const auto other = open_engine(url("&strategy=simple"), 2);
  ASSERT_EQ(submit(*engine, "x", acquire(1)).status, Status::granted);
  line->swallow_reply({.pattern = root_ + "/x", .then = Swallow::Then::cut});
  const Outcome lost = submit(*engine, "x", release(1));
  ASSERT_TRUE(lost.error);
  EXPECT_EQ(lost.error->code, ErrorCode::outcome_unknown) << *lost.error;
  ASSERT_EQ(insist(*other, "x", acquire(2)).status, Status::granted);
  EXPECT_EQ(insist(*engine, "x", release(1)).status, Status::not_held);
  EXPECT_EQ(submit(*other, "x", renew(2)).status, Status::renewed);
  EXPECT_EQ(submit(*engine, "x", try_acquire(3)).status, Status::busy);
}

TEST_F(ZookeeperFaults, WhoWasForcedOutOfASimpleLockDoesNotTakeTheNextOnesForItsOwn) {
  const auto engine = open_engine(url("&strategy=simple"));
  const auto other = open_engine(url("&strategy=simple"), 2);
  ASSERT_EQ(submit(*engine, "x", acquire(1)).status, Status::granted);
  ASSERT_EQ(submit(*other, "x", core::Revoke{.now = true}).status, Status::done);
  ASSERT_EQ(submit(*other, "x", acquire(2)).status, Status::granted);
  EXPECT_EQ(submit(*engine, "x", renew(1)).status, Status::not_held);
  EXPECT_EQ(submit(*engine, "x", release(1)).status, Status::not_held);
  EXPECT_EQ(submit(*other, "x", renew(2)).status, Status::renewed);
  EXPECT_EQ(nodes_of(*other, "x"), 1U);
}

// Its time is up while the first steps of an acquire are on their way: the node
// that the next steps make has no owner, and would block the lock for as long
// as this process lives.
TEST_F(ZookeeperFaults, AnAcquireThatIsGivenUpMidwayLeavesNoNode) {
  const auto line = proxy();
  const auto other = open_engine(url(), 2);
  const auto engine = open_engine(url_at(port_of(*line)));
  std::uint32_t number = 0;
  for (const core::Shape& shape : {core::Shape{}, kShared, permits(1, 2)}) {
    std::string name;
    const auto given_up = [&] {
      core::Acquire brief = acquire(++number, shape);
      brief.window = 20ms;
      name = "x" + std::to_string(number);  // with a fresh name the first steps are several
      line->block(Way::to_store);
      auto answer = std::async(std::launch::async, [&] { return submit(*engine, name, brief); });
      answer.wait_for(500ms);
      line->unblock(Way::to_store);
      return answer.get().status == Status::not_held;
    };
    ASSERT_TRUE(eventually(given_up));
    EXPECT_TRUE(eventually([&] { return nodes_of(*other, name) == 0; })) << name;
    EXPECT_EQ(submit(*other, name, acquire(1000 + number)).status, Status::granted) << name;
  }
}

// kazoo's own do not see ours.
TEST_F(ZookeeperFaults, KazoosLayoutSaysThatItHasNoSemaphores) {
  Client client = Client::open(url("&layout=kazoo")).value();
  EXPECT_FALSE(client.capabilities().permits);
  const auto refused = client.acquire("x", {.wait = 0ms, .mode = Mode::permits, .of = 2});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported) << refused.error();
}

engine::Detached check_all(engines::ZookeeperSession& session, std::size_t count,
                           std::promise<engines::ZookeeperStatus>& answer) {
  std::vector<engines::ZookeeperOperation> checks;
  for (std::size_t i = 0; i < count; ++i) {
    checks.push_back({.what = i % 2 == 0 ? engines::ZookeeperOperation::What::create
                                         : engines::ZookeeperOperation::What::check,
                      .path = "/a-path-that-needs-memory-of-its-own-" + std::to_string(i)});
  }
  const engines::ZookeeperReply reply = co_await session.multi(std::move(checks));
  answer.set_value(reply.status);
}

engine::Detached look_at(engines::ZookeeperSession& session, std::string path,
                         std::promise<engines::ZookeeperStatus>& answer) {
  const engines::ZookeeperReply reply = co_await session.children(std::move(path));
  answer.set_value(reply.status);
}

// The server removes containers that have become empty: a semaphore's queue, say.
TEST_F(ZookeeperFaults, ARequeueIntoAVanishedQueueLeavesNothingBehind) {
  const auto where = engine::Url::parse(url());
  engines::ZookeeperSession session{
      engines::ZookeeperOptions::from(where.value()).value(),
      {.changed = [](const std::string&) {}, .connected = [] {}, .disconnected = [](bool) {}}};
  ASSERT_TRUE(session.await_connection(base::BootClock::now() + test::kPatience));
  const auto engine = open_engine(url());
  ASSERT_EQ(submit(*engine, "x", acquire(1, permits(2, 2))).status, Status::granted);
  ASSERT_TRUE(eventually([&] {
    // The server looks for empty containers when it has time.
    EXPECT_EQ(submit(*engine, "x", renew(1)).status, Status::renewed);
    std::promise<engines::ZookeeperStatus> answer;
    auto told = answer.get_future();
    look_at(session, root_ + "/x/locks", answer);
    return told.get() == engines::ZookeeperStatus::no_node;
  }));
  const core::Requeue requeue{.id = id(1), .next = acquire(2, permits(2, 2))};
  const Outcome again = submit(*engine, "x", requeue);
  EXPECT_EQ(again.status, Status::granted);
  EXPECT_TRUE(again.gave_back);
  EXPECT_EQ(submit(*engine, "x", release(2)).status, Status::released);
  EXPECT_EQ(nodes_of(*engine, "x"), 0U);
}

// A renewal of several locks may come just then.
TEST_F(ZookeeperFaults, AnExpiredSessionRefusesSeveralStepsAtOnce) {
  const auto line = proxy();
  const auto where = engine::Url::parse("zookeeper://127.0.0.1:" + port_of(*line) +
                                        "/x?session_timeout=1s&tick=200ms");
  std::atomic<bool> expired = false;
  engines::ZookeeperSession session{engines::ZookeeperOptions::from(where.value()).value(),
                                    {.changed = [](const std::string&) {},
                                     .connected = [] {},
                                     .disconnected = [&](bool over) { expired = over; }}};
  ASSERT_TRUE(session.await_connection(base::BootClock::now() + test::kPatience));
  ASSERT_TRUE(eventually([&] {
    line->block(Way::to_store);
    std::this_thread::sleep_for(2s);  // the server forgets us meanwhile, and tells afterwards
    line->unblock(Way::to_store);
    return eventually([&] { return expired.load(); }, 2s);
  }));
  for (std::size_t count = 1; count < 6; ++count) {
    std::promise<engines::ZookeeperStatus> answer;
    auto told = answer.get_future();
    check_all(session, count, answer);
    EXPECT_EQ(told.get(), engines::ZookeeperStatus::unavailable);
  }
}

engine::Detached ask_for_children(engines::ZookeeperSession& session, std::atomic<int>& answered) {
  co_await session.children("/");
  ++answered;
}

// At its end the library forgets what its thread for answers has not begun with, and it may
// end at once. (So about every time; the other way to be forgotten, below, is rare.)
TEST_F(ZookeeperFaults, WhatIsUnderWayWhenASessionIsReplacedIsAnswered) {
  const auto where = engine::Url::parse(url());
  engines::ZookeeperSession session{
      engines::ZookeeperOptions::from(where.value()).value(),
      {.changed = [](const std::string&) {}, .connected = [] {}, .disconnected = [](bool) {}}};
  std::atomic<int> answered = 0;
  int asked = 0;
  for (int round = 0; round < 5; ++round) {
    ASSERT_TRUE(session.await_connection(base::BootClock::now() + test::kPatience));
    for (int i = 0; i < 3000; ++i, ++asked) ask_for_children(session, answered);
    session.reopen();
    EXPECT_EQ(answered, asked);
  }
}

// The library takes what it is given just as it learns that the session is over, and has
// nobody left to answer it.
TEST_F(ZookeeperFaults, WhatWasAskedAsTheSessionEndedIsAnsweredOnceTheNextBegins) {
  const auto line = proxy();
  const auto where = engine::Url::parse("zookeeper://127.0.0.1:" + port_of(*line) +
                                        "/?session_timeout=1s&tick=200ms");
  std::atomic<bool> expired = false;
  std::atomic<int> answered = 0;
  std::atomic<int> asked = 0;
  engines::ZookeeperSession session{engines::ZookeeperOptions::from(where.value()).value(),
                                    {.changed = [](const std::string&) {},
                                     .connected = [] {},
                                     .disconnected = [&](bool over) { expired = over; }}};
  ASSERT_TRUE(session.await_connection(base::BootClock::now() + test::kPatience));
  ASSERT_TRUE(eventually([&] {
    line->block(Way::to_store);
    std::this_thread::sleep_for(2s);  // the server forgets us meanwhile, and tells afterwards
    std::atomic<bool> enough = false;
    const auto ask = [&] {
      while (!enough) {
        if (asked - answered > 100'000) {  // it knows no bound of its own
          std::this_thread::sleep_for(200us);
          continue;
        }
        ++asked;
        ask_for_children(session, answered);
      }
    };
    std::vector<std::thread> askers;
    for (int i = 0; i < 6; ++i) askers.emplace_back(ask);
    line->unblock(Way::to_store);
    const bool over = eventually([&] { return expired.load(); }, 2s);
    enough = true;
    for (std::thread& asker : askers) asker.join();
    return over;
  }));
  session.reopen();
  EXPECT_EQ(answered, asked);
}

// --- users

// What a user makes is that user's alone; with another password he is another.
TEST_F(ZookeeperFaults, NodesBelongToTheUserWhoMadeThem) {
  const auto app = open_engine(url("", "app:s3cret@"), 1);
  const auto colleague = open_engine(url("", "app:s3cret@"), 2);
  ASSERT_EQ(submit(*app, "x", acquire(1)).status, Status::granted);
  EXPECT_EQ(submit(*colleague, "x", acquire(2)).status, Status::queued);
  ASSERT_EQ(submit(*app, "s", acquire(3, permits(1, 2))).status, Status::granted);
  std::uint32_t session = 3;
  for (const char* who : {"app:wrong@", "guest:guest@", ""}) {
    const auto stranger = open_engine(url("", who), ++session);
    for (const char* name : {"x", "new"}) {
      const Outcome refused = submit(*stranger, name, try_acquire(10 + session));
      ASSERT_TRUE(refused.error) << who << " " << name;
      EXPECT_EQ(refused.error->code, ErrorCode::unauthorized) << *refused.error;
      EXPECT_THAT(refused.error->text, ::testing::Not(::testing::HasSubstr("wrong")));
    }
    const Outcome permit = submit(*stranger, "s", try_acquire(20 + session, permits(1, 2)));
    ASSERT_TRUE(permit.error);
    EXPECT_EQ(permit.error->code, ErrorCode::unauthorized) << *permit.error;
    const auto shown = stranger->show("x");
    ASSERT_FALSE(shown) << "who may not read sees nothing";
    EXPECT_EQ(shown.error().code, ErrorCode::unauthorized);
  }
  ASSERT_EQ(submit(*app, "x", release(1)).status, Status::released);
  EXPECT_FALSE(wait_for_ring(*colleague).empty());
}

// A root that somebody else owns.
TEST_F(ZookeeperFaults, ASimpleLockIsGuardedToo) {
  const std::string simple = "&strategy=simple";
  const auto app = open_engine(url(simple, "app:s3cret@"), 1);
  ASSERT_EQ(submit(*app, "x", acquire(1)).status, Status::granted);
  const auto stranger = open_engine(url(simple, "guest:guest@"), 2);
  const Outcome refused = submit(*stranger, "x", try_acquire(2));
  ASSERT_TRUE(refused.error);
  EXPECT_EQ(refused.error->code, ErrorCode::unauthorized) << *refused.error;
}

}  // namespace
}  // namespace holdfast
