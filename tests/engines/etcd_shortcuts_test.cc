// What etcd is spared, and that nothing is lost by it: keys that stay, transactions that travel
// together, entries without a look.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <holdfast/holdfast.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/ids.h"
#include "support/engine_driver.h"
#include "support/eventually.h"
#include "support/fault_proxy.h"
#include "support/loopback.h"
#include "support/needs.h"
#include "support/raw_etcd.h"
#include "support/server.h"

namespace holdfast::test {
namespace {

using core::Outcome;
using core::Status;

class EtcdShortcuts : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* program : {"etcd", "etcdctl"}) {
      HOLDFAST_SKIP_IF_MISSING(missing_program(program));
    }
    server_.emplace("etcd");
  }
  std::string url(std::uint16_t port, const std::string& options = "") const {
    return "etcd://127.0.0.1:" + std::to_string(port) + "/t?" + options;
  }
  std::string url() const { return url(server_->port()); }
  RawEtcd raw() const { return RawEtcd{std::to_string(server_->port())}; }
  std::vector<std::string> keys_of(const std::string& name) const {
    return raw().keys_below("t/" + name + "/");
  }
  static core::Requeue requeue(std::uint32_t from, core::Acquire next) {
    return {.id = id(from), .next = next};
  }
  void expect_not_inherited(const core::Operation& forced, const core::Shape& shape);

  std::optional<PrivateServer> server_;
};

// --- a key that stays

TEST_F(EtcdShortcuts, NobodyElseInLineAndTheKeyStays) {
  const auto engine = open_engine(url());
  const auto other = open_engine(url(), 2);
  Outcome last = submit(*engine, "x", acquire(1));
  ASSERT_EQ(last.status, Status::granted);
  const auto first = keys_of("x");
  ASSERT_EQ(first.size(), 1U);
  const std::uint64_t writes = raw().calls_of("Txn");
  std::uint32_t number = 1;
  for (; number <= 20; ++number) {
    const Outcome next = submit(*engine, "x", requeue(number, acquire(number + 1)));
    ASSERT_EQ(next.status, Status::granted);
    EXPECT_TRUE(next.gave_back);
    EXPECT_GE(next.token, last.token + core::kTokenStride);
    EXPECT_EQ(submit(*engine, "x", renew(number)).status, Status::not_held);
    EXPECT_EQ(submit(*engine, "x", release(number)).status, Status::not_held);
    EXPECT_EQ(submit(*engine, "x", poll(number + 1)).token, next.token);
    EXPECT_EQ(engine->show("x")->holders.at(0).token, next.token);
    last = next;
  }
  EXPECT_EQ(raw().calls_of("Txn"), writes);
  EXPECT_EQ(keys_of("x"), first);
  EXPECT_EQ(submit(*engine, "x", renew(number)).token, last.token);
  EXPECT_EQ(submit(*other, "x", try_acquire(99)).status, Status::busy);
  EXPECT_EQ(submit(*engine, "x", release(number)).status, Status::released);
  EXPECT_TRUE(keys_of("x").empty());
  EXPECT_GT(submit(*other, "x", acquire(100)).token, last.token);
}

// The room below the next revision ends at some time, and then there is a new key.
TEST_F(EtcdShortcuts, TokensRiseHoweverLongItStays) {
  const auto engine = open_engine(url());
  const auto other = open_engine(url(), 2);
  Outcome last = submit(*engine, "x", acquire(1));
  std::set<std::string> keys;
  std::uint32_t number = 1;
  for (; number <= 100; ++number) {
    const Outcome next = submit(*engine, "x", requeue(number, acquire(number + 1)));
    ASSERT_EQ(next.status, Status::granted);
    EXPECT_GE(next.token, last.token + core::kTokenStride);
    last = next;
    if (number % 10 == 0) keys.insert(keys_of("x").at(0));
  }
  EXPECT_GT(keys.size(), 1U);
  EXPECT_EQ(submit(*other, "x", acquire(1000)).status, Status::queued);
  const Outcome behind = submit(*engine, "x", requeue(number, acquire(number + 1)));
  EXPECT_EQ(behind.status, Status::queued) << "somebody waits, and comes first";
  Outcome entered;
  EXPECT_TRUE(eventually([&] {
    entered = submit(*other, "x", poll(1000));
    return entered.status == Status::granted;
  }));
  EXPECT_GT(entered.token, last.token + core::kTokenStride - 1);
}

TEST_F(EtcdShortcuts, AKeyThatStaysIsNoGhost) {
  const auto engine = open_engine(url());
  ASSERT_EQ(submit(*engine, "x", acquire(1)).status, Status::granted);
  ASSERT_EQ(submit(*engine, "x", requeue(1, acquire(2))).status, Status::granted);
  ASSERT_EQ(submit(*engine, "x", acquire(3)).status, Status::queued);
  ASSERT_EQ(submit(*engine, "x", poll(3)).status, Status::queued);
  EXPECT_EQ(submit(*engine, "x", renew(2)).status, Status::renewed);
  EXPECT_EQ(keys_of("x").size(), 2U);
  EXPECT_EQ(submit(*engine, "x", release(2)).status, Status::released);
  EXPECT_TRUE(eventually([&] { return submit(*engine, "x", poll(3)).status == Status::granted; }));
}

// What others note in it, they note in the key as it stands.
TEST_F(EtcdShortcuts, AKeyThatStaysIsRevokedAsAnyOther) {
  const auto engine = open_engine(url());
  const auto other = open_engine(url(), 2);
  ASSERT_EQ(submit(*engine, "x", acquire(1)).status, Status::granted);
  const Outcome stayed = submit(*engine, "x", requeue(1, acquire(2)));
  ASSERT_EQ(stayed.status, Status::granted);
  ASSERT_EQ(submit(*other, "x", core::Revoke{}).status, Status::done);
  EXPECT_EQ(submit(*engine, "x", renew(2)).status, Status::revoked);
  EXPECT_EQ(submit(*engine, "x", poll(2)).token, stayed.token);
  const auto marked = keys_of("x");
  const Outcome next = submit(*engine, "x", requeue(2, acquire(3)));
  EXPECT_EQ(next.status, Status::granted);
  EXPECT_NE(keys_of("x"), marked) << "the mark was for the one before";
  EXPECT_GT(next.token, stayed.token);
  ASSERT_EQ(submit(*engine, "x", requeue(3, acquire(4))).status, Status::granted);
  ASSERT_EQ(submit(*other, "x", core::Revoke{.now = true}).status, Status::done);
  EXPECT_EQ(submit(*engine, "x", renew(4)).status, Status::not_held);
}

TEST_F(EtcdShortcuts, AKeyThatStaysChangesItsMode) {
  const auto engine = open_engine(url());
  const auto other = open_engine(url(), 2);
  ASSERT_EQ(submit(*engine, "x", acquire(1, kShared)).status, Status::granted);
  const Outcome reader = submit(*engine, "x", requeue(1, acquire(2, kShared)));
  ASSERT_EQ(reader.status, Status::granted);
  const Outcome beside = submit(*other, "x", acquire(9, kShared));
  ASSERT_EQ(beside.status, Status::granted);
  ASSERT_EQ(submit(*other, "x", release(9)).status, Status::released);
  const Outcome writer = submit(*engine, "x", upgrade(2));
  ASSERT_EQ(writer.status, Status::granted);
  EXPECT_GT(writer.token, std::max(reader.token, beside.token));
  EXPECT_EQ(submit(*engine, "x", downgrade(2)).token, writer.token);
  const Outcome again = submit(*engine, "x", requeue(2, acquire(3, kShared)));
  ASSERT_EQ(again.status, Status::granted);
  EXPECT_GT(again.token, writer.token);
  EXPECT_EQ(submit(*engine, "x", renew(3)).token, again.token);
  EXPECT_EQ(submit(*engine, "x", requeue(3, acquire(4))).status, Status::granted) << "now a writer";
  EXPECT_EQ(submit(*other, "x", try_acquire(10, kShared)).status, Status::busy);
  EXPECT_EQ(submit(*engine, "x", release(4)).status, Status::released);
}

// Others know a grant by its request: it is written down before a code leaves the process.
TEST_F(EtcdShortcuts, AKeyThatStaysIsDisclosedBeforeItIsGivenAway) {
  const auto giver = open_engine(url());
  const auto taker = open_engine(url(), 2);
  ASSERT_EQ(submit(*giver, "x", acquire(1)).status, Status::granted);
  const Outcome stayed = submit(*giver, "x", requeue(1, acquire(2)));
  ASSERT_TRUE(giver->disclose(id(2)));
  EXPECT_EQ(taker->show("x")->holders.at(0).token, stayed.token);
  EXPECT_EQ(submit(*taker, "x", transfer(1, 3)).status, Status::not_held) << "passed on before";
  EXPECT_EQ(submit(*giver, "x", renew(2)).token, stayed.token);
  const Outcome given = submit(*taker, "x", transfer(2, 4));
  ASSERT_EQ(given.status, Status::granted);
  EXPECT_GT(given.token, stayed.token);
  EXPECT_EQ(submit(*giver, "x", renew(2)).status, Status::not_held);
  EXPECT_EQ(submit(*giver, "x", release(2)).status, Status::not_held);
  EXPECT_FALSE(giver->disclose(id(2)));
  ASSERT_EQ(submit(*taker, "x", requeue(4, acquire(5))).status, Status::granted);
  EXPECT_EQ(submit(*taker, "x", transfer(5, 6)).status, Status::granted) << "in one process";
  EXPECT_EQ(submit(*taker, "x", release(6)).status, Status::released);
}

// A downgrade that was not answered may come as long as its key is as it was: for the next one,
// who writes, and readers would enter beside it.
TEST_F(EtcdShortcuts, WhatIsInDoubtIsNotInherited) {
  const auto line = proxy_to(server_->port());
  const auto engine = open_engine(url(line->port()));
  const auto other = open_engine(url(), 2);
  std::uint32_t number = 0;
  std::string name;
  const auto downgrade_is_in_doubt = [&] {
    name = "x" + std::to_string(++number);
    EXPECT_EQ(insist(*engine, name, acquire(number)).status, Status::granted);
    wait_for_ring(*engine);  // it is watched: from now on nothing is said unasked
    const std::uint64_t before = line->bytes(Way::to_store);
    EXPECT_EQ(insist(*engine, name, poll(number)).status, Status::granted);
    // A look at the line gets through, but not what is much longer.
    line->cut_after(Way::to_store, line->bytes(Way::to_store) - before + 100);
    const std::uint64_t looks = raw().calls_of("Range");
    const Outcome lost = submit(*engine, name, downgrade(number));
    line->heal();
    // A keep-alive just then may have taken the room that the look needs.
    if (raw().calls_of("Range") == looks) return false;
    const auto seen = other->show(name);
    return lost.error && lost.error->code == ErrorCode::outcome_unknown &&
           seen->holders.at(0).mode == Mode::exclusive;
  };
  ASSERT_TRUE(eventually(downgrade_is_in_doubt));
  const auto key = keys_of(name);
  const Outcome next = insist(*engine, name, requeue(number, acquire(1000)));
  EXPECT_EQ(next.status, Status::granted);
  EXPECT_TRUE(next.gave_back);
  const auto fresh = keys_of(name);
  EXPECT_NE(fresh, key);
  EXPECT_EQ(submit(*engine, name, requeue(1000, acquire(1001))).status, Status::granted);
  EXPECT_EQ(keys_of(name), fresh) << "nothing is in doubt any more";
}

// The same for what people force in this process: it was meant for the one before.
void EtcdShortcuts::expect_not_inherited(const core::Operation& forced, const core::Shape& shape) {
  const auto line = proxy_to(server_->port());
  const auto engine = open_engine(url(line->port()));
  const auto other = open_engine(url(), 2);
  std::uint32_t number = 0;
  std::string name;
  const auto is_in_doubt = [&] {
    number += 2;
    name = "x" + std::to_string(number);
    EXPECT_EQ(insist(*engine, name, acquire(number, shape)).status, Status::granted);
    const Outcome stayed = insist(*engine, name, requeue(number, acquire(number + 1, shape)));
    EXPECT_EQ(stayed.status, Status::granted);
    wait_for_ring(*engine);  // it is watched: from now on nothing is said unasked
    const std::uint64_t before = line->bytes(Way::to_store);
    EXPECT_EQ(insist(*engine, name, poll(number + 1)).status, Status::granted);
    line->cut_after(Way::to_store, line->bytes(Way::to_store) - before + 100);
    const std::uint64_t looks = raw().calls_of("Range");
    const Outcome lost = submit(*engine, name, forced);
    line->heal();
    // A keep-alive just then may have taken the room that the look needs.
    if (raw().calls_of("Range") == looks) return false;
    const auto seen = other->show(name);
    return lost.error && lost.error->code == ErrorCode::outcome_unknown &&
           !seen->holders.at(0).revoked && seen->limit == shape.limit;
  };
  ASSERT_TRUE(eventually(is_in_doubt));
  const auto key = keys_of(name);
  const Outcome next = insist(*engine, name, requeue(number + 1, acquire(1000, shape)));
  EXPECT_EQ(next.status, Status::granted);
  const auto fresh = keys_of(name);
  EXPECT_NE(fresh, key);
  EXPECT_EQ(submit(*engine, name, requeue(1000, acquire(1001, shape))).status, Status::granted);
  EXPECT_EQ(keys_of(name), fresh) << "nothing is in doubt any more";
}

TEST_F(EtcdShortcuts, ARevocationInDoubtIsNotInherited) {
  expect_not_inherited(core::Revoke{}, {});
}

TEST_F(EtcdShortcuts, AResizeInDoubtIsNotInherited) {
  expect_not_inherited(core::Resize{.limit = 3}, permits(1, 2));
}

// The key may go on while a note of this process is on its way: what it is known by must not
// change with the note.
TEST_F(EtcdShortcuts, ARevocationOfItsOwnLeavesTheNameInTheKey) {
  const auto engine = open_engine(url());
  ASSERT_EQ(submit(*engine, "x", acquire(1)).status, Status::granted);
  ASSERT_EQ(submit(*engine, "x", requeue(1, acquire(2))).status, Status::granted);
  const Outcome stayed = submit(*engine, "x", requeue(2, acquire(3)));
  ASSERT_EQ(stayed.status, Status::granted);
  ASSERT_EQ(submit(*engine, "x", core::Revoke{}).status, Status::done);
  const std::string noted = raw().etcdctl({"get", "--prefix", "t/x/", "--print-value-only"});
  EXPECT_THAT(noted, ::testing::HasSubstr("revoked"));
  EXPECT_THAT(noted, ::testing::Not(::testing::HasSubstr(id(3).hex())));
  ASSERT_EQ(submit(*engine, "x", acquire(9)).status, Status::queued) << "and is no ghost";
  EXPECT_EQ(submit(*engine, "x", renew(3)).status, Status::revoked);
  EXPECT_EQ(submit(*engine, "x", poll(3)).token, stayed.token);
  EXPECT_EQ(submit(*engine, "x", release(3)).status, Status::released);
}

// Whether it was written down or not, nothing was lost by it.
TEST_F(EtcdShortcuts, ALostReplyToADisclosureLeavesTheLeaseAsItWas) {
  const auto line = proxy_to(server_->port());
  const auto giver = open_engine(url(line->port()));
  ASSERT_EQ(submit(*giver, "x", acquire(1)).status, Status::granted);
  const Outcome stayed = submit(*giver, "x", requeue(1, acquire(2)));
  ASSERT_EQ(stayed.status, Status::granted);
  line->swallow_reply({.pattern = "holdfast", .then = Swallow::Then::cut});
  const auto lost = giver->disclose(id(2));
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, ErrorCode::unavailable) << lost.error();
  const Outcome renewed = insist(*giver, "x", renew(2));
  EXPECT_EQ(renewed.status, Status::renewed);
  EXPECT_EQ(renewed.token, stayed.token);
  EXPECT_TRUE(giver->disclose(id(2)));
  EXPECT_EQ(submit(*giver, "x", release(2)).status, Status::released);
}

// Its own key was to be watched just when it went on to another.
TEST_F(EtcdShortcuts, AKeyThatStaysLeavesNoWatchBehind) {
  const auto line = proxy_to(server_->port());
  const auto engine = open_engine(url(line->port()));
  ASSERT_EQ(submit(*engine, "x", acquire(1)).status, Status::granted);
  std::uint32_t number = 1;
  for (; number < 5; ++number) {
    line->delay(Way::from_store, 400ms);
    ASSERT_EQ(submit(*engine, "x", requeue(number, acquire(number + 1))).status, Status::granted);
    line->delay(Way::from_store, 0ms);
  }
  EXPECT_TRUE(eventually([&] { return raw().watches() == 1; }, 10s)) << raw().watches();
  ASSERT_EQ(submit(*engine, "x", release(number)).status, Status::released);
  EXPECT_TRUE(eventually([&] { return raw().watches() == 0; })) << raw().watches();
}

// In a crowd that passes the lock on to itself nearly every grant is by a key that stayed.
TEST_F(EtcdShortcuts, TheClientDisclosesWhatItGivesAway) {
  auto giver = Client::open(url()).value();
  auto taker = Client::open(url()).value();
  const AcquireOptions few{.hand_over = 2};
  std::vector<std::jthread> crowd;  // whatever fails, it goes home
  for (int i = 0; i < 4; ++i) {
    crowd.emplace_back([&](const std::stop_token& over) {
      while (!over.stop_requested()) EXPECT_TRUE(giver.acquire("x", few));
    });
  }
  std::optional<std::uint64_t> last;
  for (int turn = 0; turn < 10; ++turn) {
    auto lease = giver.acquire("x", few);
    ASSERT_TRUE(lease) << lease.error();
    EXPECT_GT(lease->token(), last);
    const auto token = lease->token();
    const auto code = lease->give_away();
    ASSERT_TRUE(code) << code.error();
    const auto adopted = taker.adopt(*code);
    EXPECT_TRUE(adopted) << adopted.error();
    if (!adopted) break;
    EXPECT_GT(adopted->token(), token);
    last = adopted->token();
  }
}

// Nobody renews it, and other locks keep the lease alive.
TEST_F(EtcdShortcuts, AKeyThatStaysEndsInTime) {
  const auto engine = open_engine(url());
  const auto made = [](std::uint32_t number) {
    core::Acquire one = acquire(number);
    one.ttl = 1s;
    one.window = 600ms;
    return one;
  };
  ASSERT_EQ(submit(*engine, "x", made(1)).status, Status::granted);
  ASSERT_EQ(submit(*engine, "x", requeue(1, made(2))).status, Status::granted);
  EXPECT_TRUE(eventually([&] { return keys_of("x").empty(); }));
  EXPECT_EQ(submit(*engine, "x", renew(2)).status, Status::not_held);
}

// --- transactions that travel together

TEST_F(EtcdShortcuts, DifferentLocksShareATransaction) {
  constexpr std::uint32_t kMany = 60;
  const auto engine = open_engine(url());
  const auto other = open_engine(url(), 2);
  ASSERT_EQ(submit(*engine, "warm-up", acquire(1000)).status, Status::granted);
  ASSERT_EQ(submit(*other, "x7", acquire(1007)).status, Status::granted);
  std::vector<core::Command> taken;
  std::vector<core::Command> exchanged;
  for (std::uint32_t i = 1; i <= kMany; ++i) {
    taken.push_back({"x" + std::to_string(i), try_acquire(i)});
    exchanged.push_back({"x" + std::to_string(i), release(i)});
    exchanged.push_back({"y" + std::to_string(i), acquire(100 + i)});
  }
  const std::uint64_t before = raw().calls_of("Txn");
  const auto outcomes = submit(*engine, taken);
  EXPECT_LE(raw().calls_of("Txn") - before, 4U);  // the seventh leaves the line again
  for (std::uint32_t i = 1; i <= kMany; ++i) {
    EXPECT_EQ(outcomes[i - 1].status, i == 7 ? Status::busy : Status::granted) << i;
  }
  const std::uint64_t between = raw().calls_of("Txn");
  const auto after = submit(*engine, exchanged);
  EXPECT_LE(raw().calls_of("Txn") - between, 4U);
  for (std::uint32_t i = 1; i <= kMany; ++i) {
    EXPECT_EQ(after[2 * i - 2].status, i == 7 ? Status::not_held : Status::released) << i;
    EXPECT_EQ(after[2 * i - 1].status, Status::granted) << i;
    EXPECT_EQ(keys_of("x" + std::to_string(i)).size(), i == 7 ? 1U : 0U);
  }
  EXPECT_EQ(submit(*other, "x7", renew(1007)).status, Status::renewed);
  for (std::uint32_t i = 1; i <= kMany; ++i) {
    const std::string name = "y" + std::to_string(i);
    EXPECT_EQ(submit(*other, name, try_acquire(300 + i)).status, Status::busy);
    const Outcome renewed = submit(*engine, name, renew(100 + i));
    EXPECT_EQ(renewed.token, after[2 * i - 1].token);
  }
}

// The lease is gone, and the whole of it is refused: each is sent again by itself.
TEST_F(EtcdShortcuts, WhatIsRefusedTogetherIsSentOneByOne) {
  const auto engine = open_engine(url());
  const auto made = [](std::uint32_t number) {
    core::Acquire one = acquire(number);
    one.ttl = number % 2 == 0 ? 30s : 20s;
    return one;
  };
  ASSERT_EQ(submit(*engine, "warm-up", made(1000)).status, Status::granted);
  ASSERT_EQ(submit(*engine, "held", made(1001)).status, Status::granted);
  const std::string lease = etcd_lease_of(keys_of("warm-up").at(0));
  ASSERT_NE(lease, etcd_lease_of(keys_of("held").at(0)));
  raw().etcdctl({"lease", "revoke", lease});
  std::vector<core::Command> taken;
  for (std::uint32_t i = 1; i <= 20; ++i) taken.push_back({"x" + std::to_string(i), made(i)});
  for (const Outcome& each : submit(*engine, taken)) EXPECT_EQ(each.status, Status::granted);
  for (std::uint32_t i = 1; i <= 20; ++i) {
    EXPECT_EQ(keys_of("x" + std::to_string(i)).size(), 1U);
    EXPECT_EQ(submit(*engine, "x" + std::to_string(i), renew(i)).status, Status::renewed);
  }
  EXPECT_EQ(submit(*engine, "held", renew(1001)).status, Status::renewed)
      << "nothing happened to it";
}

TEST_F(EtcdShortcuts, ALostReplyToSeveralIsResolvedByAskingAgain) {
  const auto line = proxy_to(server_->port());
  const auto engine = open_engine(url(line->port()));
  ASSERT_EQ(submit(*engine, "warm-up", acquire(1000)).status, Status::granted);
  std::vector<core::Command> taken;
  for (std::uint32_t i = 1; i <= 10; ++i) taken.push_back({"x" + std::to_string(i), acquire(i)});
  line->swallow_reply({.pattern = "t/x5/", .then = Swallow::Then::cut});
  for (const Outcome& each : submit(*engine, taken)) {
    ASSERT_TRUE(each.error);
    EXPECT_EQ(each.error->code, ErrorCode::outcome_unknown);
  }
  for (std::uint32_t i = 1; i <= 10; ++i) {
    const std::string name = "x" + std::to_string(i);
    EXPECT_EQ(insist(*engine, name, acquire(i)).status, Status::granted);
    EXPECT_EQ(keys_of(name).size(), 1U);
    EXPECT_EQ(insist(*engine, name, release(i)).status, Status::released);
  }
}

// --- entries without a look

TEST_F(EtcdShortcuts, TheNextInLineEntersByWhatItsWatchSaw) {
  const auto holder = open_engine(url());
  const auto waiter = open_engine(url(), 2);
  const auto third = open_engine(url(), 3);
  const auto looks_that_an_entry_takes = [&] {
    EXPECT_EQ(submit(*holder, "x", acquire(1)).status, Status::granted);
    EXPECT_EQ(submit(*waiter, "x", acquire(2)).status, Status::queued);
    EXPECT_EQ(submit(*third, "x", acquire(3)).status, Status::queued);
    EXPECT_EQ(submit(*third, "x", release(3)).status, Status::released);  // none of its business
    EXPECT_EQ(submit(*third, "x", acquire(4)).status, Status::queued);
    const std::uint64_t looks = raw().calls_of("Range");
    EXPECT_EQ(submit(*holder, "x", release(1)).status, Status::released);
    const auto rings = wait_for_ring(*waiter);
    const std::uint64_t more = raw().calls_of("Range") - looks;
    const Outcome held = submit(*waiter, "x", renew(2));
    EXPECT_EQ(held.status, Status::renewed);
    EXPECT_TRUE(!rings.empty() && rings[0].id == id(2) && rings[0].token == held.token);
    EXPECT_EQ(submit(*waiter, "x", release(2)).status, Status::released);
    EXPECT_TRUE(eventually([&] { return submit(*third, "x", poll(4)).status == Status::granted; }));
    EXPECT_EQ(submit(*third, "x", release(4)).status, Status::released);
    return more;
  };
  // Now and then a lease is kept alive, which takes a look as well.
  EXPECT_TRUE(eventually([&] { return looks_that_an_entry_takes() == 0 || HasFailure(); }));
}

// It may enter though nobody goes: the one in front reads as well from now on.
TEST_F(EtcdShortcuts, TheNextReaderHearsOfADowngrade) {
  const auto holder = open_engine(url());
  const auto waiter = open_engine(url(), 2);
  ASSERT_EQ(submit(*holder, "x", acquire(1)).status, Status::granted);
  ASSERT_EQ(submit(*waiter, "x", acquire(2, kShared)).status, Status::queued);
  ASSERT_EQ(submit(*holder, "x", downgrade(1)).status, Status::granted);
  const auto rings = wait_for_ring(*waiter);
  ASSERT_FALSE(rings.empty());
  EXPECT_EQ(rings[0].id, id(2));
  EXPECT_NE(rings[0].token, 0U);
  EXPECT_EQ(submit(*waiter, "x", renew(2)).status, Status::renewed);
}

// Both went in the same moment: there is nothing to enter with.
TEST_F(EtcdShortcuts, WhoseOwnKeyEndedDoesNotEnter) {
  const auto holder = open_engine(url());
  const auto waiter = open_engine(url(), 2);
  ASSERT_EQ(submit(*holder, "x", acquire(1)).status, Status::granted);
  ASSERT_EQ(submit(*waiter, "x", acquire(2)).status, Status::queued);
  const auto keys = keys_of("x");
  ASSERT_EQ(keys.size(), 2U);
  raw().etcdctl({"del", "--prefix", "t/x/"});
  for (const engine::Ring& ring : wait_for_ring(*waiter)) EXPECT_EQ(ring.token, 0U);
  EXPECT_EQ(submit(*waiter, "x", poll(2)).status, Status::not_held);
}

// Who is in front of it may go; those in front of that one are still there.
TEST_F(EtcdShortcuts, TheLastOfThreeIsNotTheNext) {
  const auto holder = open_engine(url());
  const auto waiter = open_engine(url(), 2);
  const auto last = open_engine(url(), 3);
  ASSERT_EQ(submit(*holder, "x", acquire(1)).status, Status::granted);
  ASSERT_EQ(submit(*waiter, "x", acquire(2)).status, Status::queued);
  ASSERT_EQ(submit(*last, "x", acquire(3)).status, Status::queued);
  ASSERT_EQ(submit(*waiter, "x", release(2)).status, Status::released);
  const Outcome seen = submit(*last, "x", poll(3));
  EXPECT_EQ(seen.status, Status::queued);
  ASSERT_EQ(submit(*holder, "x", release(1)).status, Status::released);
  const auto rings = wait_for_ring(*last);
  ASSERT_FALSE(rings.empty());
  EXPECT_NE(rings.back().token, 0U);
  EXPECT_EQ(submit(*last, "x", renew(3)).status, Status::renewed);
}

}  // namespace
}  // namespace holdfast::test
