// Grants on etcd that change while they last, and how much they cost to keep.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <holdfast/holdfast.h>

#include <algorithm>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "base/ids.h"
#include "support/engine_driver.h"
#include "support/eventually.h"
#include "support/fault_proxy.h"
#include "support/loopback.h"
#include "support/needs.h"
#include "support/peer.h"
#include "support/process.h"
#include "support/raw_etcd.h"
#include "support/server.h"

namespace holdfast::test {
namespace {

using core::Outcome;
using core::Status;

class EtcdChanges : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* program : {"etcd", "etcdctl"}) {
      HOLDFAST_SKIP_IF_MISSING(missing_program(program));
    }
    port_ = shared_server_port("etcd");
  }
  std::string url(const std::string& port, const std::string& options = "") const {
    return "etcd://127.0.0.1:" + port + "/" + prefix_ + "?" + options;
  }
  std::string url() const { return url(port_); }
  std::vector<std::string> etcdctl(const std::vector<std::string>& words) const {
    std::vector<std::string> all{"env", "ETCDCTL_API=3", "etcdctl",
                                 "--endpoints=http://127.0.0.1:" + port_};
    all.insert(all.end(), words.begin(), words.end());
    return all;
  }
  std::string run(const std::vector<std::string>& words) const {
    Process process = Process::start(etcdctl(words));
    EXPECT_EQ(process.wait(), 0) << process.out() << process.err();
    return process.out();
  }
  std::string key_of(const std::string& name) const {
    const std::string keys = run({"get", "--prefix", "--keys-only", prefix_ + "/" + name + "/"});
    return keys.substr(0, keys.find('\n'));
  }
  Peer stranger(const std::string& name) const {
    return Peer{etcdctl({"lock", "--ttl=10", "--", prefix_ + "/" + name, "sh", "-c",
                         "echo held; while [ ! -e \"$0\" ]; do sleep 0.02; done"})};
  }
  static Outcome insist(engine::Engine& engine, const std::string& name,
                        const core::Operation& operation) {
    Outcome outcome;
    eventually([&] {
      outcome = submit(engine, name, operation);
      return outcome.status != Status::failed;
    });
    return outcome;
  }

  std::string port_;
  const std::string prefix_ = "t-" + base::Id::random().hex().substr(0, 12);
};

// Whatever happened to a key, the next renewal tells: nothing else need have.
TEST_F(EtcdChanges, ARenewalLooksAtEveryKey) {
  const auto engine = open_engine(url());
  const auto other = open_engine(url(), 2);
  std::vector<core::Command> all;
  for (std::uint32_t i = 1; i <= 150; ++i) {
    const std::string name = "x" + std::to_string(i);
    ASSERT_EQ(submit(*engine, name, acquire(i)).status, Status::granted);
    all.push_back({name, renew(i)});
  }
  for (const Outcome& each : submit(*engine, all)) EXPECT_EQ(each.status, Status::renewed);
  run({"del", key_of("x7")});
  ASSERT_EQ(submit(*other, "x130", core::Revoke{}).status, Status::done);
  for (int turn = 0; turn < 2; ++turn) {
    const auto outcomes = submit(*engine, all);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Status expected = all[i].name == "x7"     ? Status::not_held
                              : all[i].name == "x130" ? Status::revoked
                                                      : Status::renewed;
      EXPECT_EQ(outcomes[i].status, expected) << all[i].name;
    }
  }
  EXPECT_EQ(submit(*engine, "x130", release(130)).status, Status::released);
  const std::string key = key_of("x1");
  const auto start = key.rfind('/') + 1;
  run({"lease", "revoke", key.substr(start, key.rfind('-') - start)});
  for (const Outcome& each : submit(*engine, all)) EXPECT_EQ(each.status, Status::not_held);
}

// Renewals share requests, but not if that would change what they are told.
TEST_F(EtcdChanges, CommandsOfOneNameAreCarriedOutInTheirOrder) {
  const auto engine = open_engine(url());
  for (std::uint32_t i = 1; i <= 20; ++i) {
    ASSERT_EQ(submit(*engine, "x", acquire(i, kShared)).status, Status::granted);
    const auto outcomes = submit(*engine, {{"x", upgrade(i)},
                                           {"x", renew(i)},
                                           {"x", downgrade(i)},
                                           {"x", renew(i)},
                                           {"x", release(i)},
                                           {"x", renew(i)}});
    EXPECT_EQ(outcomes[0].status, Status::granted);
    EXPECT_EQ(outcomes[1].status, Status::renewed);
    EXPECT_EQ(outcomes[1].token, outcomes[0].token);
    EXPECT_EQ(outcomes[3].token, outcomes[0].token);
    EXPECT_EQ(outcomes[4].status, Status::released);
    EXPECT_EQ(outcomes[5].status, Status::not_held);
  }
}

// One lease, and a hundred keys a request: not one of each for every lock.
TEST_F(EtcdChanges, ManyAreRenewedByFewRequests) {
  constexpr std::uint32_t kMany = 2000;
  PrivateServer server{"etcd"};
  const RawEtcd raw{std::to_string(server.port())};
  const auto engine = open_engine(url(std::to_string(server.port())));
  std::vector<core::Command> taken;
  std::vector<core::Command> renewed;
  for (std::uint32_t i = 1; i <= kMany; ++i) {
    taken.push_back({"x" + std::to_string(i), acquire(i)});
    renewed.push_back({"x" + std::to_string(i), renew(i)});
  }
  for (const Outcome& each : submit(*engine, taken)) ASSERT_EQ(each.status, Status::granted);
  const std::uint64_t transactions = raw.calls_of("Txn");
  const std::uint64_t leases = raw.calls_of("LeaseKeepAlive");
  ASSERT_GE(transactions, kMany / 100);
  for (const Outcome& each : submit(*engine, renewed)) ASSERT_EQ(each.status, Status::renewed);
  EXPECT_LE(raw.calls_of("Txn") - transactions, kMany / 100);
  EXPECT_LE(raw.calls_of("LeaseKeepAlive") - leases, kMany / 100);  // and those that are due anyway
}

TEST_F(EtcdChanges, TokensOfAnUpgradeStandBetweenReadersAndWaiters) {
  const auto one = open_engine(url());
  const auto other = open_engine(url(), 2);
  ASSERT_EQ(submit(*one, "x", acquire(1, kShared)).status, Status::granted);
  const Outcome reader = submit(*other, "x", acquire(2, kShared));
  ASSERT_EQ(submit(*other, "x", acquire(3)).status, Status::queued);
  EXPECT_EQ(submit(*one, "x", upgrade(1)).status, Status::queued);
  EXPECT_EQ(submit(*other, "x", upgrade(2)).status, Status::busy);
  ASSERT_EQ(submit(*other, "x", release(2)).status, Status::released);
  // What is held for a while is watched, and that rings as well, without a token.
  const auto tells = [](const engine::Ring& ring) { return ring.id == id(1) && ring.token != 0; };
  EXPECT_TRUE(eventually([&] { return std::ranges::any_of(one->answer_doorbell(), tells); }));
  std::uint64_t last = reader.token;
  for (int turn = 0; turn < 3; ++turn) {
    const Outcome writer = submit(*one, "x", upgrade(1));
    ASSERT_EQ(writer.status, Status::granted);
    EXPECT_GT(writer.token, last);
    EXPECT_EQ(submit(*one, "x", renew(1)).token, writer.token);
    const Outcome down = submit(*one, "x", downgrade(1));
    EXPECT_EQ(down.token, writer.token);
    last = writer.token;
  }
  ASSERT_EQ(submit(*one, "x", release(1)).status, Status::released);
  Outcome next;
  EXPECT_TRUE(eventually([&] {
    next = submit(*other, "x", poll(3));
    return next.status == Status::granted;
  }));
  EXPECT_GT(next.token, last);
}

// Between a look at the line and the note that follows from it there is time
// for others to come.
TEST_F(EtcdChanges, AReaderThatComesInTheMiddleOfAnUpgradeCounts) {
  const auto line = proxy_to(static_cast<std::uint16_t>(std::stoi(port_)));
  const auto slow = open_engine(url(std::to_string(line->port()), "timeout=10s"));
  const auto other = open_engine(url(), 2);
  for (std::uint32_t i = 1; i <= 3; ++i) {
    const std::string name = "x" + std::to_string(i);
    ASSERT_EQ(submit(*slow, name, acquire(i, kShared)).status, Status::granted);
    const std::uint64_t before = line->bytes(Way::to_store);
    line->delay(Way::from_store, 300ms);
    auto upgraded = std::async(std::launch::async, [&] { return submit(*slow, name, upgrade(i)); });
    EXPECT_TRUE(eventually([&] { return line->bytes(Way::to_store) > before; }));
    ASSERT_TRUE(other->show("x")) << "the look is over";
    const Outcome reader = submit(*other, name, acquire(10 + i, kShared));
    const Outcome writer = upgraded.get();
    line->delay(Way::from_store, 0ms);
    EXPECT_FALSE(reader.status == Status::granted && writer.status == Status::granted)
        << "a reader and a writer hold it";
    EXPECT_TRUE(reader.status == Status::granted || writer.status == Status::granted);
  }
}

// Who was revoked, or whose key was rewritten, keeps its token.
TEST_F(EtcdChanges, ATokenOutlivesLaterNotes) {
  const auto one = open_engine(url());
  const auto other = open_engine(url(), 2);
  ASSERT_EQ(submit(*one, "x", acquire(1, kShared)).status, Status::granted);
  const Outcome writer = submit(*one, "x", upgrade(1));
  ASSERT_EQ(writer.status, Status::granted);
  ASSERT_EQ(submit(*other, "x", core::Revoke{}).status, Status::done);
  const Outcome revoked = submit(*one, "x", poll(1));
  EXPECT_EQ(revoked.status, Status::revoked);
  EXPECT_EQ(revoked.token, writer.token);
  EXPECT_EQ(other->show("x")->holders.at(0).token, writer.token);
  EXPECT_EQ(submit(*one, "x", upgrade(1)).status, Status::revoked);
  EXPECT_EQ(submit(*other, "x", transfer(1, 5)).status, Status::not_held);
  EXPECT_EQ(submit(*one, "x", release(1)).status, Status::released);
}

TEST_F(EtcdChanges, TheGiverCanDoNothingToWhatItGave) {
  const auto giver = open_engine(url());
  const auto taker = open_engine(url(), 2);
  const Outcome first = submit(*giver, "x", acquire(1));
  const Outcome second = submit(*taker, "x", transfer(1, 2));
  ASSERT_EQ(second.status, Status::granted);
  EXPECT_GT(second.token, first.token);
  EXPECT_EQ(submit(*taker, "x", transfer(1, 2)).token, second.token) << "asked again";
  EXPECT_EQ(submit(*taker, "x", transfer(1, 3)).status, Status::not_held);
  EXPECT_EQ(submit(*giver, "x", renew(1)).status, Status::not_held);
  EXPECT_EQ(submit(*taker, "x", renew(2)).status, Status::renewed);

  // It hangs on the taker's lease alone.
  const std::string key = key_of("x");
  const auto start = key.rfind('/') + 1;
  run({"lease", "revoke", key.substr(start, key.rfind('-') - start)});
  EXPECT_EQ(submit(*taker, "x", renew(2)).status, Status::renewed);

  // And back, with a lease that is gone and is replaced.
  const Outcome back = submit(*giver, "x", transfer(2, 4));
  ASSERT_EQ(back.status, Status::granted);
  EXPECT_GT(back.token, second.token);
  EXPECT_EQ(submit(*taker, "x", release(2)).status, Status::not_held);
  EXPECT_EQ(submit(*giver, "x", renew(4)).status, Status::renewed);
  EXPECT_EQ(submit(*giver, "x", transfer(4, 5)).status, Status::granted) << "in one process";
  EXPECT_EQ(submit(*giver, "x", release(4)).status, Status::not_held);
  const core::Requeue requeue{.id = id(4), .next = try_acquire(6)};
  EXPECT_EQ(submit(*giver, "x", requeue).status, Status::busy);
  EXPECT_EQ(submit(*giver, "x", renew(5)).status, Status::renewed);
  EXPECT_EQ(submit(*giver, "x", release(5)).status, Status::released);
}

// Its process ended in good order; the code is good for as long as the lease was.
TEST_F(EtcdChanges, AGrantCanBeTakenOverAfterItsGiverLeft) {
  auto giver = open_engine(url());
  const auto taker = open_engine(url(), 2);
  ASSERT_EQ(submit(*giver, "x", acquire(1)).status, Status::granted);
  ASSERT_EQ(submit(*giver, "x", acquire(3)).status, Status::queued);
  giver.reset();
  EXPECT_TRUE(eventually([&] { return taker->show("x")->queue.empty(); })) << "who waited is gone";
  EXPECT_EQ(submit(*taker, "x", transfer(1, 2)).status, Status::granted);
  EXPECT_EQ(submit(*taker, "x", release(2)).status, Status::released);
}

TEST_F(EtcdChanges, LostRepliesAreResolvedByAskingAgain) {
  const auto line = proxy_to(static_cast<std::uint16_t>(std::stoi(port_)));
  const auto giver = open_engine(url(), 2);
  const auto engine = open_engine(url(std::to_string(line->port()), "timeout=1s"));
  const auto lose = [&](const std::string& name, const core::Operation& operation) {
    line->swallow_reply({.pattern = "holdfast", .then = Swallow::Then::cut});  // a key's note
    const Outcome lost = submit(*engine, name, operation);
    ASSERT_TRUE(lost.error);
    EXPECT_EQ(lost.error->code, ErrorCode::outcome_unknown) << *lost.error;
  };
  const Outcome reader = insist(*engine, "r", acquire(1, kShared));
  lose("r", upgrade(1));
  // The server may not have come to it when the line was cut.
  const auto seen = giver->show("r")->holders.at(0).token.value();
  EXPECT_GE(insist(*engine, "r", renew(1)).token, seen) << "it was upgraded, the renewal says so";
  const Outcome writer = insist(*engine, "r", upgrade(1));
  EXPECT_GE(writer.token, seen);
  EXPECT_GT(writer.token, reader.token);
  EXPECT_EQ(insist(*engine, "r", renew(1)).token, writer.token);
  lose("r", downgrade(1));
  EXPECT_EQ(insist(*engine, "r", downgrade(1)).token, writer.token);
  EXPECT_EQ(submit(*giver, "r", try_acquire(9, kShared)).status, Status::granted);

  const Outcome given = submit(*giver, "x", acquire(2));
  lose("x", transfer(2, 3));
  EXPECT_GT(insist(*engine, "x", transfer(2, 3)).token, given.token);
  EXPECT_EQ(insist(*engine, "x", release(3)).status, Status::released);
  EXPECT_EQ(submit(*giver, "x", release(2)).status, Status::not_held);

  // Given up instead: what was perhaps taken over is given back.
  ASSERT_EQ(submit(*giver, "y", acquire(4)).status, Status::granted);
  lose("y", transfer(4, 5));
  EXPECT_EQ(insist(*engine, "y", release(5)).status, Status::released);
  EXPECT_EQ(submit(*giver, "y", try_acquire(6)).status, Status::granted);
}

// It did not get through, and the giver's grant is nobody else's to remove.
TEST_F(EtcdChanges, ATakeOverThatWasGivenUpTouchesNothingOfTheGivers) {
  const auto line = proxy_to(static_cast<std::uint16_t>(std::stoi(port_)));
  const auto giver = open_engine(url(), 2);
  const auto third = open_engine(url(), 3);
  const auto engine = open_engine(url(std::to_string(line->port()), "timeout=1s"));
  ASSERT_EQ(insist(*engine, "warm-up", acquire(9)).status, Status::granted);
  ASSERT_EQ(submit(*giver, "x", acquire(1)).status, Status::granted);
  // A look at the line gets through, but not what is much longer.
  const std::uint64_t before = line->bytes(Way::to_store);
  ASSERT_EQ(submit(*engine, "warm-up", poll(9)).status, Status::granted);
  line->cut_after(Way::to_store, line->bytes(Way::to_store) - before + 100);
  const Outcome lost = submit(*engine, "x", transfer(1, 2));
  ASSERT_TRUE(lost.error);
  EXPECT_EQ(lost.error->code, ErrorCode::outcome_unknown) << *lost.error;
  EXPECT_EQ(insist(*engine, "x", release(2)).status, Status::not_held);
  EXPECT_EQ(submit(*giver, "x", renew(1)).status, Status::renewed);
  EXPECT_EQ(submit(*third, "x", transfer(1, 3)).status, Status::granted);
  EXPECT_EQ(insist(*engine, "x", transfer(1, 2)).status, Status::not_held);
  EXPECT_EQ(submit(*third, "x", renew(3)).status, Status::renewed);
}

// A stranger sees one key that stays where it is.
TEST_F(EtcdChanges, EtcdctlWaitsThroughUpgradeAndHandOver) {
  auto one = Client::open(url()).value();
  auto other = Client::open(url()).value();
  auto lease = one.acquire("x", {.mode = Mode::shared}).value();
  Peer etcdctl = stranger("x");
  ASSERT_TRUE(eventually([&] { return one.show("x").value().queue.size() == 1; }));
  ASSERT_TRUE(lease.upgrade(0s));
  const auto code = lease.give_away();
  ASSERT_TRUE(code) << code.error();
  auto adopted = other.adopt(*code);
  ASSERT_TRUE(adopted) << adopted.error();
  const LockInfo seen = one.show("x").value();
  ASSERT_EQ(seen.holders.size(), 1U);
  EXPECT_EQ(seen.queue.size(), 1U);
  EXPECT_EQ(seen.holders[0].token, adopted->token());
  ASSERT_TRUE(adopted->downgrade());
  EXPECT_FALSE(etcdctl.holds());
  EXPECT_TRUE(adopted->is_alive());
  EXPECT_TRUE(adopted->release());
  EXPECT_TRUE(etcdctl.await_hold()) << etcdctl.words();
  EXPECT_TRUE(etcdctl.let_go());
}

}  // namespace
}  // namespace holdfast::test
