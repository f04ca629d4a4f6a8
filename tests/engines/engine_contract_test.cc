// What engine.h asks of the engines that run the lock record themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "support/engine_driver.h"
#include "support/eventually.h"
#include "support/stores.h"

namespace holdfast {
namespace {

using namespace test;
using core::Status;
using ::testing::IsEmpty;

class EngineContract : public ::testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<engine::Engine> open(std::uint32_t session = 1) {
    return open_engine(url_, session, [this] { return now_; });
  }

  TempDir dir_;
  const std::string url_ = store_url(GetParam(), dir_);
  base::Time now_ = at(0s);
};

TEST_P(EngineContract, TwoEnginesShareOneStore) {
  const auto a = open(1);
  const auto b = open(2);
  const auto first = submit(*a, "x", acquire(1));
  EXPECT_EQ(first.status, Status::granted);
  EXPECT_EQ(first.lease_for, 30s);
  EXPECT_EQ(submit(*b, "x", try_acquire(2)).status, Status::busy);
  EXPECT_EQ(submit(*b, "y", try_acquire(2)).status, Status::granted);
  EXPECT_EQ(submit(*a, "x", release(1)).status, Status::released);
  const auto second = submit(*b, "x", acquire(3));
  EXPECT_EQ(second.status, Status::granted);
  EXPECT_GT(second.token, first.token);
}

TEST_P(EngineContract, TheReleaseRingsTheNextInLine) {
  const auto a = open(1);
  const auto b = open(2);
  submit(*a, "x", acquire(1));
  EXPECT_EQ(submit(*b, "x", acquire(2)).status, Status::queued);
  EXPECT_THAT(b->answer_doorbell(), IsEmpty());
  submit(*a, "x", release(1));
  const auto rings = wait_for_ring(*b);
  ASSERT_EQ(rings.size(), 1U);
  EXPECT_EQ(rings[0].id, id(2));
  const auto granted = submit(*b, "x", poll(2));
  EXPECT_EQ(granted.status, Status::granted);
  EXPECT_TRUE(rings[0].token == 0 || rings[0].token == granted.token);
  EXPECT_THAT(b->answer_doorbell(), IsEmpty());
  EXPECT_THAT(a->answer_doorbell(), IsEmpty());
}

TEST_P(EngineContract, AnEngineRingsItself) {
  const auto a = open(1);
  auto other = acquire(2);
  other.session = id(1);
  submit(*a, "x", acquire(1));
  submit(*a, "x", other);
  submit(*a, "x", release(1));
  const auto rings = wait_for_ring(*a);
  ASSERT_EQ(rings.size(), 1U);
  EXPECT_EQ(rings[0].id, id(2));
}

TEST_P(EngineContract, BadNamesFailAloneInTheirBatch) {
  const auto a = open();
  const std::string longest(kMaxNameBytes, '\xff');
  const auto outcomes = submit(*a, {{"", acquire(1)},
                                    {longest, acquire(2)},
                                    {longest + "x", acquire(3)},
                                    {std::string{"\0'; --\n", 7}, acquire(4)}});
  ASSERT_EQ(outcomes.size(), 4U);
  EXPECT_EQ(outcomes[0].error->code, ErrorCode::invalid_argument);
  EXPECT_EQ(outcomes[1].status, Status::granted);
  EXPECT_EQ(outcomes[2].error->code, ErrorCode::invalid_argument);
  EXPECT_EQ(outcomes[3].status, Status::granted);
  const auto all = a->list("");
  ASSERT_TRUE(all) << all.error();
  ASSERT_EQ(all->size(), 2U);
  EXPECT_EQ((*all)[0].name, (std::string{"\0'; --\n", 7}));
  EXPECT_EQ((*all)[1].name, longest);
}

TEST_P(EngineContract, ListAndShowNameThePeople) {
  const auto a = open(1);
  const auto b = open(2);
  submit(*a, "shop/1", acquire(1, permits(2, 3)));
  now_ += 2s;
  submit(*b, "shop/1", acquire(2, permits(2, 3)));
  submit(*b, "shoq", acquire(3, kShared));
  now_ += 3s;
  const auto all = a->list("shop/");
  ASSERT_TRUE(all) << all.error();
  ASSERT_EQ(all->size(), 1U);
  const LockInfo& lock = all->front();
  EXPECT_EQ(lock.name, "shop/1");
  EXPECT_EQ(lock.limit, 3U);
  ASSERT_EQ(lock.holders.size(), 1U);
  EXPECT_EQ(lock.holders[0].party.label, "test 1");
  EXPECT_EQ(lock.holders[0].party.pid, 42);
  EXPECT_EQ(lock.holders[0].permits, 2U);
  EXPECT_EQ(lock.holders[0].held_for, 5s);
  EXPECT_EQ(lock.holders[0].expires_in, 25s);
  ASSERT_EQ(lock.queue.size(), 1U);
  EXPECT_EQ(lock.queue[0].party.label, "test 2");
  EXPECT_EQ(lock.queue[0].waiting_for, 3s);

  now_ += 1h;  // everybody's time is up, though nobody has touched the lock
  EXPECT_THAT(*a->list(""), IsEmpty());
  const auto shown = a->show("shop/1");
  ASSERT_TRUE(shown) << shown.error();
  EXPECT_EQ(shown->name, "shop/1");
  EXPECT_EQ(shown->limit, 0U);
  EXPECT_THAT(shown->holders, IsEmpty());
  EXPECT_FALSE(a->show(""));
}

TEST_P(EngineContract, ForgettingAnIdleNameNeverLowersItsToken) {
  const auto a = open();
  std::uint64_t last = 0;
  for (std::uint32_t i = 1; i <= 50; ++i) {
    const auto granted = submit(*a, "x", acquire(i));
    ASSERT_EQ(granted.status, Status::granted);
    EXPECT_GT(granted.token, last);
    last = granted.token + core::kTokenStride - 1;
    submit(*a, "x", release(i));
    a->tidy();
  }
  EXPECT_THAT(*a->list(""), IsEmpty());
}

TEST_P(EngineContract, TidyTouchesNothingThatIsUsed) {
  const auto a = open(1);
  const auto b = open(2);
  submit(*a, "x", acquire(1));
  submit(*b, "x", acquire(2));
  a->tidy();
  EXPECT_EQ(submit(*a, "x", renew(1)).status, Status::renewed);
  EXPECT_EQ(submit(*b, "x", poll(2)).status, Status::queued);
  now_ += 19s;
  submit(*b, "x", heartbeat(2));
  now_ += 11s;  // the holder's time is up, the waiter's is not
  a->tidy();
  EXPECT_EQ(submit(*b, "x", poll(2)).status, Status::granted);
}

std::vector<std::string> without(const std::string& engine) {
  auto all = engines_of_the_record();
  std::erase_if(all, [&](const std::string& each) { return each.starts_with(engine); });
  return all;
}

// Those whose rings cannot be missed without their noticing.
class EngineNews : public EngineContract {};

TEST_P(EngineNews, AnUnchangedStoreSaysSo) {
  const auto a = open(1);
  const auto b = open(2);
  submit(*a, "x", acquire(1));
  submit(*b, "x", acquire(2));
  // A bell that is just being hung may miss something.
  EXPECT_TRUE(eventually([&] { return !a->may_have_changed(); }));
  EXPECT_FALSE(a->may_have_changed());
  submit(*a, "x", poll(1));
  EXPECT_FALSE(a->may_have_changed());
  submit(*b, "x", core::Revoke{});
  EXPECT_TRUE(eventually([&] { return a->may_have_changed(); }));
}

TEST_P(EngineContract, InAForkedChildTheParentsEngineIsInert) {
  const auto parent = open(1);
  const auto before = submit(*parent, "x", acquire(1));
  ASSERT_EQ(before.status, Status::granted);
  const pid_t child = fork();
  if (child == 0) {
    const auto outcome = submit(*parent, "x", release(1));
    const bool inert = outcome.status == Status::failed && outcome.error &&
                       outcome.error->code == ErrorCode::unavailable && !parent->list("") &&
                       parent->answer_doorbell().empty();
    parent->tidy();
    const auto own = open(2);
    const bool works = own && submit(*own, "child", acquire(2)).status == Status::granted;
    _exit(inert && works ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  const auto after = submit(*parent, "x", acquire(1));
  EXPECT_EQ(after.status, Status::granted);
  EXPECT_EQ(after.token, before.token);
}

TEST_P(EngineContract, InitAndDoctorAreContent) {
  const auto a = open();
  EXPECT_TRUE(a->init());
  EXPECT_TRUE(a->init_script());
  const auto findings = a->doctor();
  EXPECT_FALSE(findings.empty());
  for (const Finding& finding : findings) {
    if (finding.topic == "durability") {
      continue;  // the servers of the tests are not durable, which is right to say
    }
    EXPECT_EQ(finding.level, Finding::Level::ok) << finding.topic << ": " << finding.text;
  }
}

INSTANTIATE_TEST_SUITE_P(, EngineNews, ::testing::ValuesIn(without("mysql")),
                         [](const auto& tested) { return tested.param; });
INSTANTIATE_TEST_SUITE_P(, EngineContract, ::testing::ValuesIn(engines_of_the_record()),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace holdfast
