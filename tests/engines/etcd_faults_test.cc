// What happens to etcd and on the way to it, and what the engine makes of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <holdfast/holdfast.h>

#include <csignal>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/ids.h"
#include "support/engine_driver.h"
#include "support/eventually.h"
#include "support/fault_proxy.h"
#include "support/needs.h"
#include "support/raw_etcd.h"
#include "support/server.h"

namespace holdfast {
namespace {

using namespace test;
using core::Outcome;
using core::Status;

class EtcdFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* program : {"etcd", "etcdctl"}) {
      HOLDFAST_SKIP_IF_MISSING(missing_program(program));
    }
    port_ = shared_server_port("etcd");
  }
  std::string url(const std::string& options = "") const { return url_at(port_, options); }
  std::string url_at(const std::string& port, const std::string& options = "") const {
    return "etcd://127.0.0.1:" + port + "/" + prefix_ + "?" + options;
  }
  std::string through(const proof::FaultProxy& proxy, const std::string& options = "") const {
    return url_at(std::to_string(proxy.port()), options);
  }
  std::unique_ptr<proof::FaultProxy> proxy() const {
    return proxy_to(static_cast<std::uint16_t>(std::stoi(port_)));
  }
  std::string etcdctl(const std::vector<std::string>& words) const {
    return RawEtcd{port_}.etcdctl(words);
  }
  std::vector<std::string> keys_of(const std::string& name) const {
    return RawEtcd{port_}.keys_below(prefix_ + "/" + name + "/");
  }

  std::string port_;
  const std::string prefix_ = "t-" + base::Id::random().hex().substr(0, 12);
};

TEST_F(EtcdFaults, ALostReplyToAnAcquireIsResolvedByAskingAgain) {
  const auto line = proxy();
  const auto engine = open_engine(through(*line, "timeout=1s"));
  ASSERT_EQ(submit(*engine, "warm-up", acquire(9)).status, Status::granted);
  for (const auto then : {Swallow::Then::cut, Swallow::Then::silence}) {
    const std::uint32_t number = then == Swallow::Then::cut ? 1 : 2;
    const std::string name = "lock" + std::to_string(number);
    line->swallow_reply({.pattern = prefix_ + "/" + name + "/", .then = then});
    const Outcome lost = submit(*engine, name, acquire(number));
    ASSERT_TRUE(lost.error);
    EXPECT_EQ(lost.error->code, ErrorCode::outcome_unknown) << *lost.error;
    const Outcome again = insist(*engine, name, acquire(number));
    EXPECT_EQ(again.status, Status::granted);
    EXPECT_EQ(keys_of(name).size(), 1U);
    EXPECT_EQ(insist(*engine, name, release(number)).status, Status::released);
    EXPECT_TRUE(keys_of(name).empty());
  }
}

// The first key must not come after its own release, and block the others.
TEST_F(EtcdFaults, AnAcquireThatWasGivenUpLeavesNothing) {
  const auto line = proxy();
  const auto engine = open_engine(through(*line, "timeout=1s"));
  ASSERT_EQ(submit(*engine, "keeps-the-lease", acquire(9)).status, Status::granted);
  line->block(Way::to_store);
  const Outcome lost = submit(*engine, "x", acquire(1));
  ASSERT_TRUE(lost.error);
  line->unblock(Way::to_store);  // and what was on its way arrives
  const Outcome released = insist(*engine, "x", release(1));
  EXPECT_THAT(released.status, ::testing::AnyOf(Status::released, Status::not_held));
  EXPECT_TRUE(eventually([&] { return keys_of("x").empty(); }));
  const auto other = open_engine(url(), 2);
  EXPECT_EQ(submit(*other, "x", try_acquire(2)).status, Status::granted);
  EXPECT_EQ(submit(*engine, "keeps-the-lease", renew(9)).status, Status::renewed);
  EXPECT_EQ(other->list("")->size(), 2U) << "what keeps the late key out is no lock";
}

TEST_F(EtcdFaults, ALostReplyToAReleaseHurtsNobody) {
  const auto line = proxy();
  const auto engine = open_engine(through(*line, "timeout=1s"));
  const auto other = open_engine(url(), 2);
  const Outcome first = submit(*engine, "x", acquire(1));
  ASSERT_EQ(first.status, Status::granted);
  line->swallow_reply({.pattern = prefix_ + "/x/", .then = Swallow::Then::cut});
  const Outcome lost = submit(*engine, "x", release(1));
  ASSERT_TRUE(lost.error);
  EXPECT_EQ(lost.error->code, ErrorCode::outcome_unknown);
  const Outcome next = submit(*other, "x", acquire(2));
  EXPECT_EQ(next.status, Status::granted);
  EXPECT_GT(next.token, first.token);
  EXPECT_EQ(insist(*engine, "x", release(1)).status, Status::not_held);
  EXPECT_EQ(submit(*other, "x", renew(2)).status, Status::renewed);
}

TEST_F(EtcdFaults, ALostReplyToARequeueGivesBackOnce) {
  const auto line = proxy();
  const auto engine = open_engine(through(*line, "timeout=1s"));
  ASSERT_EQ(submit(*engine, "x", acquire(1)).status, Status::granted);
  line->swallow_reply({.pattern = prefix_ + "/x/", .then = Swallow::Then::cut});
  core::Requeue requeue{.id = id(1), .next = acquire(2)};
  requeue.next.ttl = 20s;  // on another lease: its key cannot stay
  ASSERT_TRUE(submit(*engine, "x", requeue).error);
  const Outcome again = insist(*engine, "x", requeue);
  EXPECT_EQ(again.status, Status::granted);
  EXPECT_TRUE(again.gave_back);
  EXPECT_EQ(keys_of("x").size(), 1U);

  // It could stay, but the look at the line is lost.
  line->swallow_reply({.pattern = prefix_ + "/x/", .then = Swallow::Then::cut});
  requeue = {.id = id(2), .next = acquire(3)};
  requeue.next.ttl = 20s;
  const Outcome after = insist(*engine, "x", requeue);
  EXPECT_EQ(after.status, Status::granted);
  EXPECT_TRUE(after.gave_back);
  EXPECT_EQ(keys_of("x").size(), 1U);
  EXPECT_GT(after.token, again.token);
}

// A server that takes connections and says nothing is not taken for one.
TEST_F(EtcdFaults, ADeafServerIsPassedBy) {
  const auto line = proxy();
  line->block(Way::to_store);
  const std::string deaf = "127.0.0.1:" + std::to_string(line->port());
  const auto engine = open_engine("etcd://" + deaf + "," + deaf + ",127.0.0.1:" + port_ + "/" +
                                  prefix_ + "?timeout=2s");
  for (std::uint32_t i = 1; i < 4; ++i) {
    EXPECT_EQ(insist(*engine, "x", acquire(i)).status, Status::granted);
    EXPECT_EQ(insist(*engine, "x", release(i)).status, Status::released);
  }
}

TEST_F(EtcdFaults, WaitersLiveThroughACompaction) {
  PrivateServer server{"etcd"};  // on a shared one others compact as well
  port_ = std::to_string(server.port());
  auto one = Client::open(url()).value();
  auto other = Client::open(url()).value();
  auto lease = one.acquire("x").value();
  auto waiting = std::async(std::launch::async, [&] { return other.acquire("x"); });
  ASSERT_TRUE(eventually([&] { return one.show("x").value().queue.size() == 1; }));
  const std::string put = etcdctl({"put", prefix_ + "-unrelated", "x", "-w", "json"});
  const auto at = put.find("\"revision\":") + 11;
  etcdctl({"compact", put.substr(at, put.find_first_not_of("0123456789", at) - at)});
  EXPECT_TRUE(lease.release());
  const auto next = waiting.get();
  ASSERT_TRUE(next) << next.error();
  EXPECT_GT(next->token(), lease.token());
}

// Its lease was revoked, by somebody or by time: it lines up again.
TEST_F(EtcdFaults, AWaiterWhoseLeaseWasRevokedIsServedAfterAll) {
  auto one = Client::open(url()).value();
  auto other = Client::open(url()).value();
  auto lease = one.acquire("x").value();
  const std::string holder = keys_of("x").at(0);
  auto waiting =
      std::async(std::launch::async, [&] { return other.acquire("x", {.ttl = 6s, .wait = 60s}); });
  ASSERT_TRUE(eventually([&] { return keys_of("x").size() == 2; }));
  const auto before = keys_of("x");
  for (const std::string& key : before) {
    if (key != holder) etcdctl({"lease", "revoke", etcd_lease_of(key)});
  }
  ASSERT_NE(keys_of("x"), before);
  EXPECT_TRUE(lease.release());
  const auto next = waiting.get();
  ASSERT_TRUE(next) << next.error();
  EXPECT_TRUE(next->is_alive());
  EXPECT_EQ(keys_of("x").size(), 1U);
}

// Debian's version goes on renewing a lease that was revoked: the key decides.
TEST_F(EtcdFaults, AHolderWhoseLeaseWasRevokedIsTold) {
  auto client = Client::open(url()).value();
  auto lease = client.acquire("x", {.ttl = 6s}).value();
  etcdctl({"lease", "revoke", etcd_lease_of(keys_of("x").at(0))});
  EXPECT_TRUE(eventually([&] { return lease.lost().stop_requested(); }));
  EXPECT_FALSE(lease.is_alive());
  auto again = client.acquire("x", {.ttl = 6s, .wait = test::kPatience});
  ASSERT_TRUE(again) << again.error();
  EXPECT_GT(again->token(), lease.token());
}

TEST_F(EtcdFaults, RestartsKeepLocksAndTokens) {
  PrivateServer server{"etcd"};
  const auto engine = open_engine(url_at(std::to_string(server.port()), "timeout=2s"));
  const Outcome first = submit(*engine, "x", acquire(1));
  ASSERT_EQ(first.status, Status::granted);
  server.kill();
  server.start();
  EXPECT_EQ(insist(*engine, "x", renew(1)).status, Status::renewed);
  EXPECT_EQ(insist(*engine, "x", acquire(1)).token, first.token);
  server.signal(SIGTERM);  // it says good-bye to its connections
  eventually([&] { return submit(*engine, "x", renew(1)).status == Status::failed; });
  server.kill();
  server.start();
  EXPECT_EQ(insist(*engine, "x", renew(1)).status, Status::renewed);
  EXPECT_EQ(insist(*engine, "x", release(1)).status, Status::released);
  EXPECT_GT(insist(*engine, "x", acquire(2)).token, first.token);
}

// The first of its puts, which was not answered, may be carried out by a member that was cut
// off, after the second was answered and the lock given back: nobody would remove that key.
TEST_F(EtcdFaults, AnAcquireThatWasAskedTwiceDoesNotComeAfterItsRelease) {
  const auto line = proxy();
  const auto engine = open_engine(through(*line));
  ASSERT_EQ(submit(*engine, "warm-up", acquire(9)).status, Status::granted);
  const auto ask_twice = [&](std::uint32_t number) {
    line->swallow_reply({.pattern = "holdfast", .then = Swallow::Then::cut});
    const Outcome lost = submit(*engine, "x", acquire(number));
    EXPECT_TRUE(lost.error && lost.error->code == ErrorCode::outcome_unknown);
    EXPECT_EQ(insist(*engine, "x", acquire(number)).status, Status::granted);
  };
  ask_twice(1);
  EXPECT_EQ(submit(*engine, "x", release(1)).status, Status::released);
  EXPECT_EQ(submit(*engine, "x", acquire(1)).status, Status::not_held) << "the late one";
  EXPECT_TRUE(keys_of("x").empty());
  ask_twice(2);
  EXPECT_EQ(submit(*engine, "x", core::Requeue{.id = id(2), .next = acquire(3)}).status,
            Status::granted);
  EXPECT_EQ(submit(*engine, "x", acquire(2)).status, Status::not_held);
  EXPECT_EQ(keys_of("x").size(), 1U);
  EXPECT_EQ(submit(*engine, "x", release(3)).status, Status::released);
  EXPECT_EQ(submit(*engine, "x", acquire(2)).status, Status::not_held);
  EXPECT_TRUE(keys_of("x").empty());
  EXPECT_EQ(submit(*engine, "x", acquire(3)).status, Status::granted) << "nothing was in doubt";
}

// A server that is just running out of space carries out what it refuses.
TEST_F(EtcdFaults, AFullStoreLeavesNothingOfWhatItDidNotGrant) {
  PrivateServer server{"etcd", {"--quota-backend-bytes=600000"}};
  // With a user everything travels alone, and that is what the server counts.
  const auto engine =
      open_engine("etcd://app:app@127.0.0.1:" + std::to_string(server.port()) + "/t?timeout=20s");
  const RawEtcd raw{std::to_string(server.port())};
  std::uint32_t number = 0;
  std::size_t refused = 0;
  while (refused == 0 && number < 10'000) {
    std::vector<core::Command> batch;
    for (int i = 0; i < 400; ++i) {
      const std::string name = std::to_string(++number) + std::string(200, 'n');
      batch.push_back({name, acquire(number)});
    }
    const auto outcomes = submit(*engine, batch);
    const auto keys = raw.keys_below("t/");
    const std::set<std::string> names{[&] {
      std::set<std::string> all;
      for (const std::string& key : keys) all.insert(key.substr(2, key.rfind('/') - 2));
      return all;
    }()};
    for (std::size_t i = 0; i < batch.size(); ++i) {
      EXPECT_EQ(names.contains(batch[i].name), outcomes[i].status == Status::granted);
      if (outcomes[i].status == Status::granted) continue;
      ++refused;
      ASSERT_TRUE(outcomes[i].error);
      EXPECT_EQ(outcomes[i].error->code, ErrorCode::unavailable) << *outcomes[i].error;
    }
  }
  EXPECT_GT(refused, 0U);
}

}  // namespace
}  // namespace holdfast
