// What happens in ZooKeeper between two steps of ours.
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"  // GCC's own code for coroutines

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>

#include "engine/task.h"
#include "engine/url.h"
#include "engines/zookeeper/zookeeper_recipe.h"
#include "support/engine_driver.h"
#include "support/eventually.h"
#include "support/zookeeper_test.h"

namespace holdfast::test {
namespace {

using core::Outcome;
using core::Status;

class ZookeeperRaces : public ZookeeperTest {};

// The total is read, then somebody lowers it, then the permits are counted.
TEST_F(ZookeeperRaces, ASemaphoreThatShrinksWhileSomebodyLinesUpIsNotOverbooked) {
  const auto line = proxy();
  const auto engine = open_engine(url_at(port_of(*line)));
  const auto other = open_engine(url(), 2);
  ASSERT_EQ(submit(*other, "x", acquire(1, permits(1, 2))).status, Status::granted);
  // So it knows what the node says, in that version.
  ASSERT_EQ(submit(*engine, "x", acquire(3, permits(1, 2))).status, Status::granted);
  ASSERT_EQ(submit(*engine, "x", release(3)).status, Status::released);
  line->block(Way::from_store);
  auto answer = std::async(std::launch::async,
                           [&] { return submit(*engine, "x", acquire(2, permits(1, 2))); });
  ASSERT_TRUE(eventually([&] { return other->show("x").value().queue.size() == 1; }));
  ASSERT_EQ(submit(*other, "x", core::Resize{.limit = 1}).status, Status::done);
  line->unblock(Way::from_store);
  const Outcome outcome = answer.get();
  EXPECT_EQ(outcome.status, Status::refused);
  EXPECT_EQ(outcome.count, 1U);
  EXPECT_EQ(other->show("x").value().holders.size(), 1U);
}

// The permits are counted, then somebody lowers the total, then they are taken.
TEST_F(ZookeeperRaces, ASemaphoreThatShrinksWhilePermitsAreTakenIsNotOverbooked) {
  const auto line = proxy();
  const auto engine = open_engine(url_at(port_of(*line)));
  const auto other = open_engine(url(), 2);
  ASSERT_EQ(submit(*other, "x", acquire(1, permits(1, 2))).status, Status::granted);
  line->block(Way::from_store);
  auto answer = std::async(std::launch::async,
                           [&] { return submit(*engine, "x", acquire(2, permits(1, 2))); });
  ASSERT_TRUE(eventually([&] { return other->show("x").value().queue.size() == 1; }));
  // It learns that it is in line and counts; what it counted reaches it after the change.
  const std::uint64_t sent = line->bytes(Way::to_store);
  line->delay(Way::from_store, 2s);
  line->unblock(Way::from_store);
  ASSERT_TRUE(eventually([&] { return line->bytes(Way::to_store) > sent + 50; }));
  line->block(Way::from_store);
  ASSERT_EQ(submit(*other, "x", core::Resize{.limit = 1}).status, Status::done);
  line->delay(Way::from_store, 0s);
  line->unblock(Way::from_store);
  EXPECT_EQ(answer.get().status, Status::refused);
  EXPECT_EQ(other->show("x").value().holders.size(), 1U);
}

// To look at a queue takes several requests; the ages are as of one moment all the same.
TEST_F(ZookeeperRaces, WhoCameFirstHasWaitedLongest) {
  const auto line = proxy();
  const auto slow = open_engine(url_at(port_of(*line)));
  const auto holder = open_engine(url(), 2);
  ASSERT_EQ(submit(*holder, "x", acquire(1)).status, Status::granted);
  for (std::uint32_t number = 2; number < 6; ++number) {
    ASSERT_EQ(submit(*holder, "x", acquire(number)).status, Status::queued);
  }
  ASSERT_EQ(submit(*holder, "y", acquire(10)).status, Status::granted);
  line->delay(Way::from_store, 200ms);
  const LockInfo seen = slow->show("x").value();
  ASSERT_EQ(seen.queue.size(), 4U);
  for (std::size_t i = 1; i < seen.queue.size(); ++i) {
    EXPECT_GE(seen.queue[i - 1].waiting_for, seen.queue[i].waiting_for);
  }
  const auto all = slow->list("").value();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_GE(all[0].holders.at(0).held_for, all[1].holders.at(0).held_for) << "x is older than y";
}

engine::Detached ask(std::shared_ptr<engines::ZookeeperRecipe> recipe, core::Command command,
                     std::promise<Outcome>& answer) {
  answer.set_value(co_await recipe->perform(std::move(command)));
}

Outcome perform(const std::shared_ptr<engines::ZookeeperRecipe>& recipe, const std::string& name,
                const core::Operation& operation) {
  std::promise<Outcome> answer;
  auto told = answer.get_future();
  ask(recipe, {name, operation}, answer);
  return told.get();
}

TEST_F(ZookeeperRaces, WhoeverLeavesTakesItsWatchAlong) {
  const auto other = open_engine(url(), 2);
  const auto where = engine::Url::parse(url());
  const auto recipe = std::make_shared<engines::ZookeeperRecipe>(
      engines::ZookeeperOptions::from(where.value()).value(), engine::EngineOptions{});
  ASSERT_TRUE(recipe->session().await_connection(base::BootClock::now() + kPatience));
  ASSERT_EQ(submit(*other, "x", acquire(1)).status, Status::granted);
  ASSERT_EQ(submit(*other, "s", acquire(2, permits(1, 1))).status, Status::granted);
  for (std::uint32_t number = 10; number < 13; ++number) {
    EXPECT_EQ(perform(recipe, "x", acquire(number)).status, Status::queued);
    EXPECT_EQ(perform(recipe, "s", acquire(number + 10, permits(1, 1))).status, Status::queued);
  }
  EXPECT_GE(recipe->watches(), 6U);
  for (std::uint32_t number = 10; number < 13; ++number) {
    EXPECT_EQ(perform(recipe, "x", release(number)).status, Status::released);
    EXPECT_EQ(perform(recipe, "s", release(number + 10)).status, Status::released);
  }
  // Not only when those in front go: they stay.
  EXPECT_TRUE(eventually(
      [&] {
        EXPECT_EQ(submit(*other, "x", renew(1)).status, Status::renewed);
        EXPECT_EQ(submit(*other, "s", renew(2)).status, Status::renewed);
        return recipe->watches() == 0;
      },
      5s))
      << recipe->watches();
  recipe->stop();
}

}  // namespace
}  // namespace holdfast::test
