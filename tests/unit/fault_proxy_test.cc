#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <string>

#include "support/eventually.h"
#include "support/fault_proxy.h"
#include "support/free_port.h"
#include "support/loopback.h"

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

class AFaultProxy : public testing::Test {
 protected:
  EchoServer server;
  std::unique_ptr<FaultProxy> proxy = proxy_to(server.port());
};

TEST_F(AFaultProxy, ForwardsBothWaysAndCounts) {
  Dialer one{proxy->port()};
  Dialer two{proxy->port()};
  ASSERT_TRUE(one.send("hello"));
  ASSERT_TRUE(two.send("you"));
  EXPECT_EQ(one.receive(5), "HELLO");
  EXPECT_EQ(two.receive(3), "YOU");
  EXPECT_EQ(proxy->bytes(Way::to_store), 8U);
  EXPECT_EQ(proxy->bytes(Way::from_store), 8U);
  EXPECT_EQ(proxy->accepted(), 2U);
  EXPECT_EQ(proxy->connections(), 2U);
}

TEST_F(AFaultProxy, SendsNewConnectionsWhereItIsTold) {
  EchoServer other;
  Dialer before{proxy->port()};
  ASSERT_TRUE(before.send("one"));
  EXPECT_EQ(before.receive(3), "ONE");

  ASSERT_TRUE(proxy->retarget({{"127.0.0.1", other.port()}}));
  Dialer after{proxy->port()};
  ASSERT_TRUE(after.send("two"));
  EXPECT_EQ(after.receive(3), "TWO");
  ASSERT_TRUE(before.send("old"));
  EXPECT_EQ(before.receive(3), "OLD");
  EXPECT_EQ(server.heard(), "oneold");
  EXPECT_EQ(other.heard(), "two");

  ASSERT_TRUE(proxy->retarget({{"127.0.0.1", server.port()}, {"127.0.0.1", other.port()}}));
  for (int i = 0; i < 2; ++i) {
    Dialer dialer{proxy->port()};
    ASSERT_TRUE(dialer.send("x"));
    EXPECT_EQ(dialer.receive(1), "X");
  }
  EXPECT_EQ(server.heard().size() + other.heard().size(), 11U);
  EXPECT_GT(server.heard().size(), 6U);
  EXPECT_GT(other.heard().size(), 3U);
  EXPECT_FALSE(proxy->retarget({}));
}

TEST_F(AFaultProxy, ForwardsMoreThanItKeeps) {
  Dialer dialer{proxy->port()};
  const std::string much(3'000'000, 'x');
  std::thread sender{[&] { EXPECT_TRUE(dialer.send(much)); }};
  EXPECT_EQ(dialer.receive(much.size()), std::string(much.size(), 'X'));
  sender.join();
}

TEST_F(AFaultProxy, PassesAnOrderlyEnd) {
  Dialer dialer{proxy->port()};
  ASSERT_TRUE(dialer.send("bye"));
  dialer.finish();
  EXPECT_EQ(dialer.receive(4), "BYE");
  EXPECT_EQ(dialer.ending(), "end");
  EXPECT_TRUE(eventually([&] { return proxy->connections() == 0; }));
}

TEST_F(AFaultProxy, CutsOffThoseWhoSaidSomething) {
  Dialer one{proxy->port()};
  Dialer two{proxy->port()};
  ASSERT_TRUE(one.send("i am one."));
  ASSERT_TRUE(two.send("i am two."));
  EXPECT_EQ(one.receive(9), "I AM ONE.");
  EXPECT_EQ(two.receive(9), "I AM TWO.");
  proxy->block_those_who_say("am one");
  Dialer again{proxy->port()};
  ASSERT_TRUE(one.send("hello"));
  ASSERT_TRUE(again.send("i am one, too."));
  ASSERT_TRUE(two.send("hello"));
  EXPECT_EQ(two.receive(5), "HELLO");
  EXPECT_EQ(server.heard().find("too"), std::string::npos);
  proxy->block_those_who_say("");
  EXPECT_EQ(one.receive(5), "HELLO");
  EXPECT_EQ(again.receive(14), "I AM ONE, TOO.");
}

TEST_F(AFaultProxy, DelaysEachWay) {
  for (const Way way : {Way::to_store, Way::from_store}) {
    proxy->delay(way, 60ms);
    Dialer dialer{proxy->port()};
    const auto sent = std::chrono::steady_clock::now();
    ASSERT_TRUE(dialer.send("slow"));
    EXPECT_EQ(dialer.receive(4), "SLOW");
    EXPECT_GE(std::chrono::steady_clock::now() - sent, 60ms);
    proxy->delay(way, 0ms);
  }
}

TEST_F(AFaultProxy, BlockedRequestsArriveWhenTheBlockEnds) {
  Dialer dialer{proxy->port()};
  proxy->block(Way::to_store);
  ASSERT_TRUE(dialer.send("late"));
  EXPECT_TRUE(throughout(50ms, [&] { return server.heard().empty(); }));
  proxy->unblock(Way::to_store);
  EXPECT_EQ(dialer.receive(4), "LATE");
}

TEST_F(AFaultProxy, BlockedRepliesWereAppliedAllTheSame) {
  Dialer dialer{proxy->port()};
  proxy->block(Way::from_store);
  ASSERT_TRUE(dialer.send("done"));
  ASSERT_TRUE(eventually([&] { return server.heard() == "done"; }));
  EXPECT_TRUE(throughout(50ms, [&] { return dialer.peek().empty(); }));
  proxy->unblock(Way::from_store);
  EXPECT_EQ(dialer.receive(4), "DONE");
}

TEST_F(AFaultProxy, ARequestWhoseSenderGaveUpStillArrives) {
  proxy->block(Way::to_store);
  {
    Dialer dialer{proxy->port()};  // made while blocked: reaches the target later
    ASSERT_TRUE(dialer.send("ghost"));
  }
  EXPECT_TRUE(throughout(50ms, [&] { return server.heard().empty(); }));
  proxy->unblock(Way::to_store);
  EXPECT_TRUE(eventually([&] { return server.heard() == "ghost"; }));
}

TEST_F(AFaultProxy, ResetsAll) {
  Dialer one{proxy->port()};
  Dialer two{proxy->port()};
  ASSERT_TRUE(one.send("a"));
  ASSERT_EQ(one.receive(1), "A");
  proxy->reset_all();
  EXPECT_EQ(proxy->connections(), 0U);
  EXPECT_EQ(one.ending(), "reset");
  Dialer next{proxy->port()};
  ASSERT_TRUE(next.send("b"));
  EXPECT_EQ(next.receive(1), "B");
}

TEST_F(AFaultProxy, CutsAfterSoManyBytesOnce) {
  for (const Way way : {Way::to_store, Way::from_store}) {
    Dialer dialer{proxy->port()};
    ASSERT_TRUE(dialer.send("1"));
    ASSERT_EQ(dialer.receive(1), "1");
    proxy->cut_after(way, 3);
    ASSERT_TRUE(dialer.send("abcdef"));
    EXPECT_EQ(dialer.ending(), "reset");
    Dialer next{proxy->port()};
    ASSERT_TRUE(next.send("2"));
    EXPECT_EQ(next.receive(1), "2");
  }
  EXPECT_EQ(proxy->cuts(), 2U);
}

TEST_F(AFaultProxy, RefusesNewConnectionsAndKeepsTheOld) {
  Dialer old{proxy->port()};
  ASSERT_TRUE(old.send("a"));
  ASSERT_EQ(old.receive(1), "A");
  proxy->refuse_connections();
  const Dialer refused{proxy->port()};
  EXPECT_EQ(refused.error(), ECONNREFUSED);
  ASSERT_TRUE(old.send("b"));
  EXPECT_EQ(old.receive(1), "B");
  proxy->accept_connections();
  Dialer next{proxy->port()};
  ASSERT_TRUE(next.send("c"));
  EXPECT_EQ(next.receive(1), "C");
}

TEST_F(AFaultProxy, SwallowsTheReplyToAMatchingRequest) {
  Dialer dialer{proxy->port()};
  Dialer other{proxy->port()};
  proxy->swallow_reply({.pattern = "commit"});
  ASSERT_TRUE(dialer.send("begin"));
  EXPECT_EQ(dialer.receive(5), "BEGIN");
  ASSERT_TRUE(dialer.send("com"));
  EXPECT_EQ(dialer.receive(3), "COM");
  ASSERT_TRUE(dialer.send("mit"));
  ASSERT_TRUE(eventually([&] { return server.heard() == "begincommit"; }));
  EXPECT_EQ(proxy->swallowed(), 1U);
  ASSERT_TRUE(other.send("commit"));  // once only
  EXPECT_EQ(other.receive(6), "COMMIT");
  EXPECT_TRUE(throughout(50ms, [&] { return dialer.peek().empty(); }));
  proxy->heal();
  EXPECT_EQ(dialer.ending(), "reset");
}

TEST_F(AFaultProxy, SwallowsTheReplyToWhateverIsNext) {
  Dialer dialer{proxy->port()};
  proxy->swallow_reply({.then = Swallow::Then::cut});
  ASSERT_TRUE(dialer.send("x"));
  EXPECT_EQ(dialer.ending(), "reset");
  EXPECT_EQ(server.heard(), "x");
}

TEST_F(AFaultProxy, CutsInsteadOfTheReply) {
  Dialer dialer{proxy->port()};
  proxy->swallow_reply({.pattern = "commit", .then = Swallow::Then::cut, .times = 0});
  ASSERT_TRUE(dialer.send("commit"));
  EXPECT_EQ(dialer.receive(6), "");
  EXPECT_EQ(dialer.error(), ECONNRESET);
  EXPECT_EQ(server.heard(), "commit");
  EXPECT_EQ(proxy->cuts(), 1U);
  Dialer next{proxy->port()};
  ASSERT_TRUE(next.send("commit"));
  EXPECT_EQ(next.ending(), "reset");
  proxy->stop_swallowing();
  Dialer last{proxy->port()};
  ASSERT_TRUE(last.send("commit"));
  EXPECT_EQ(last.receive(6), "COMMIT");
}

TEST_F(AFaultProxy, ATargetThatIsNotThereLooksLikeABrokenConnection) {
  const auto broken = proxy_to(free_port());
  Dialer dialer{broken->port()};
  EXPECT_EQ(dialer.ending(), "reset");
}

TEST_F(AFaultProxy, HealTakesBackEverything) {
  proxy->block(Way::to_store);
  proxy->block(Way::from_store);
  proxy->delay(Way::to_store, 1h);
  proxy->refuse_connections();
  proxy->heal();
  Dialer dialer{proxy->port()};
  ASSERT_TRUE(dialer.send("well"));
  EXPECT_EQ(dialer.receive(4), "WELL");
}

}  // namespace
}  // namespace holdfast::test
