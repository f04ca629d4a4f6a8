// What happens in ZooKeeper between two steps of ours.
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"  // GCC's own code for coroutines

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <thread>

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
  std::string name;
  std::uint32_t number = 0;
  Outcome outcome;
  const auto shrinks_in_between = [&] {
    name = "x" + std::to_string(number += 10);
    EXPECT_EQ(submit(*other, name, acquire(number, permits(1, 2))).status, Status::granted);
    line->block(Way::from_store);
    auto answer = std::async(std::launch::async, [&] {
      return submit(*engine, name, acquire(number + 1, permits(1, 2)));
    });
    EXPECT_TRUE(eventually([&] { return other->show(name).value().queue.size() == 1; }));
    // It learns that it is in line and counts; what it counted reaches it after the change.
    const std::uint64_t sent = line->bytes(Way::to_store);
    line->delay(Way::from_store, 2s);
    line->unblock(Way::from_store);
    EXPECT_TRUE(eventually([&] { return line->bytes(Way::to_store) > sent + 50; }));
    line->block(Way::from_store);
    line->block(Way::to_store);
    const bool in_time = other->show(name).value().holders.size() == 1;
    EXPECT_EQ(submit(*other, name, core::Resize{.limit = 1}).status, Status::done);
    line->heal();
    outcome = answer.get();
    return in_time;
  };
  ASSERT_TRUE(eventually(shrinks_in_between));
  EXPECT_EQ(outcome.status, Status::refused);
  EXPECT_EQ(other->show(name).value().holders.size(), 1U);
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

std::shared_ptr<engines::ZookeeperRecipe> recipe_at(const std::string& url) {
  const auto where = engine::Url::parse(url);
  auto recipe = std::make_shared<engines::ZookeeperRecipe>(
      engines::ZookeeperOptions::from(where.value()).value(), engine::EngineOptions{});
  EXPECT_TRUE(recipe->session().await_connection(base::BootClock::now() + kPatience));
  return recipe;
}

// Two looks of one waiter find the same node in front of it. The first is told that the node is
// watched, the second is not answered.
TEST_F(ZookeeperRaces, AWaiterWhoseLooksCrossIsNotForgotten) {
  const auto line = proxy();
  const auto other = open_engine(url(), 2);
  const auto recipe = recipe_at(url_at(port_of(*line)));
  std::string name;
  std::uint32_t number = 0;
  const auto looks_cross = [&] {
    name = "x" + std::to_string(number += 10);
    EXPECT_EQ(submit(*other, name, acquire(number)).status, Status::granted);
    perform(recipe, name, acquire(number + 1));  // so that the next steps are few
    perform(recipe, name, release(number + 1));
    line->delay(Way::from_store, 500ms);
    std::promise<Outcome> first;
    std::promise<Outcome> second;
    ask(recipe, {name, acquire(number + 2)}, first);
    eventually([&] { return recipe->watches() > 0; }, 5s);
    std::this_thread::sleep_for(100ms);  // its question is on its way, the answer is not here yet
    line->swallow_reply({.pattern = engines::node_prefix(engines::ZookeeperOptions::Layout::curator,
                                                         engines::NodeKind::mutex, id(number)),
                         .then = Swallow::Then::cut});
    ask(recipe, {name, poll(number + 2)}, second);
    const Outcome told = first.get_future().get();
    const Outcome lost = second.get_future().get();
    line->heal();
    const bool did = told.status == Status::queued && lost.status == Status::failed;
    if (!did) {
      eventually(
          [&] { return perform(recipe, name, release(number + 2)).status != Status::failed; });
    }
    return did;
  };
  ASSERT_TRUE(eventually(looks_cross));
  EXPECT_EQ(submit(*other, name, release(number)).status, Status::released);
  EXPECT_TRUE(eventually(
      [&] { return perform(recipe, name, poll(number + 2)).status == Status::granted; }));
  recipe->stop();
}

TEST_F(ZookeeperRaces, WhoeverLeavesTakesItsWatchAlong) {
  const auto other = open_engine(url(), 2);
  const auto recipe = recipe_at(url());
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
