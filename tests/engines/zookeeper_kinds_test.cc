// What our nodes are called, so that Java's part in the same lock sees them.
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"  // GCC's own code for coroutines

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <string>
#include <utility>
#include <vector>

#include "engine/task.h"
#include "engine/url.h"
#include "engines/zookeeper/zookeeper_session.h"
#include "support/engine_driver.h"
#include "support/eventually.h"
#include "support/zookeeper_test.h"

namespace holdfast::test {
namespace {

using core::Outcome;
using core::Status;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

engine::Detached ask(engines::ZookeeperRequest request,
                     std::promise<engines::ZookeeperReply>& answer) {
  answer.set_value(co_await request);
}

class ZookeeperKinds : public ZookeeperTest {
 protected:
  void SetUp() override {
    ZookeeperTest::SetUp();
    if (IsSkipped()) return;
    const auto where = engine::Url::parse(url());
    session_ = std::make_unique<engines::ZookeeperSession>(
        engines::ZookeeperOptions::from(where.value()).value(),
        engines::ZookeeperSession::Events{
            .changed = [](const std::string&) {}, .connected = [] {}, .disconnected = [](bool) {}});
    ASSERT_TRUE(session_->await_connection(base::BootClock::now() + kPatience));
  }
  static engines::ZookeeperReply told(engines::ZookeeperRequest request) {
    std::promise<engines::ZookeeperReply> answer;
    auto future = answer.get_future();
    ask(std::move(request), answer);
    return future.get();
  }
  std::vector<std::string> children_of(const std::string& name) const {
    return told(session_->children(root_ + "/" + name)).children;
  }
  // As a program in Java does: its node, in one that says nothing.
  std::string make_java_node(const std::string& name, const std::string& recipe) const {
    using Mode = engines::ZookeeperMode;
    told(session_->create(root_, "", Mode::container));
    told(session_->create(root_ + "/" + name, "10.0.0.1", Mode::container));
    const std::string node = "/_c_5a0e9b4c-0f6d-4f2b-8f2e-3d9c0f1e2a3b-" + recipe;
    return told(session_->create(root_ + "/" + name + node, "10.0.0.1", Mode::ephemeral_sequential))
        .text;
  }

  std::unique_ptr<engines::ZookeeperSession> session_;
};

// The lock's node names those who were revoked; what it says of its kind holds all the same.
TEST_F(ZookeeperKinds, ALockOfReadersAndWritersStaysOneAfterARevocation) {
  const auto engine = open_engine(url());
  const auto other = open_engine(url(), 2);
  ASSERT_EQ(submit(*engine, "x", acquire(1, kShared)).status, Status::granted);
  ASSERT_EQ(submit(*other, "x", core::Revoke{}).status, Status::done);
  for (const auto& each : {engine.get(), other.get()}) {
    const std::uint32_t number = each == engine.get() ? 2 : 3;
    const Outcome writer = submit(*each, "x", acquire(number));
    EXPECT_EQ(writer.status, Status::queued) << writer.error.value_or(Error{});
  }
  EXPECT_THAT(children_of("x"), Each(Not(HasSubstr("-lock-"))));
  EXPECT_EQ(children_of("x").size(), 3U);
  EXPECT_EQ(submit(*engine, "x", release(1)).status, Status::released);
  EXPECT_TRUE(eventually([&] { return submit(*engine, "x", poll(2)).status == Status::granted; }));
}

TEST_F(ZookeeperKinds, ARequeueKeepsToTheKindOfTheLock) {
  const auto engine = open_engine(url());
  const auto other = open_engine(url(), 2);
  ASSERT_EQ(submit(*engine, "x", acquire(1, kShared)).status, Status::granted);
  ASSERT_EQ(submit(*other, "x", core::Revoke{}).status, Status::done);
  ASSERT_EQ(submit(*engine, "x", renew(1)).status, Status::revoked);
  ASSERT_EQ(submit(*other, "x", acquire(9)).status, Status::queued);
  // A reader that wants to write, then a writer that goes behind the others.
  std::uint32_t number = 1;
  for (; number < 3; ++number) {
    const core::Requeue requeue{.id = id(number), .next = acquire(number + 1)};
    EXPECT_EQ(submit(*engine, "x", requeue).status, Status::queued);
    EXPECT_THAT(children_of("x"), Each(HasSubstr("-__WRIT__")));
  }
  EXPECT_EQ(submit(*other, "x", release(9)).status, Status::released);
  EXPECT_EQ(submit(*engine, "x", release(number)).status, Status::released);
}

// Its users show what the lock is, and we may see them only once our node is among theirs.
TEST_F(ZookeeperKinds, AReadWriteLockOfJavasIsOneForUsAtTheFirstAttempt) {
  const auto engine = open_engine(url());
  const std::string reader = make_java_node("x", "__READ__");
  ASSERT_THAT(reader, HasSubstr("__READ__"));
  const Outcome writer = submit(*engine, "x", acquire(1));
  EXPECT_EQ(writer.status, Status::queued) << writer.error.value_or(Error{});
  EXPECT_THAT(children_of("x"), Contains(HasSubstr("-__WRIT__")));
  told(session_->remove(reader));
  EXPECT_TRUE(eventually([&] { return submit(*engine, "x", poll(1)).status == Status::granted; }));
  const core::Requeue requeue{.id = id(1), .next = acquire(2, kShared)};
  EXPECT_EQ(submit(*engine, "x", requeue).status, Status::granted);
  const core::Requeue back{.id = id(2), .next = acquire(3)};
  EXPECT_EQ(submit(*engine, "x", back).status, Status::granted);
  EXPECT_THAT(children_of("x"), ElementsAre(HasSubstr("-__WRIT__")));
  EXPECT_EQ(submit(*engine, "x", release(3)).status, Status::released);
}

}  // namespace
}  // namespace holdfast::test
