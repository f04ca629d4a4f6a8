// Who is rung for, and who is not, while the bell is being hung.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <string>

#include "support/engine_driver.h"
#include "support/eventually.h"
#include "support/fault_proxy.h"
#include "support/needs.h"
#include "support/postgres_store.h"

namespace holdfast {
namespace {

using namespace test;
using core::Status;
using ::testing::IsEmpty;

class PostgresDoorbell : public ::testing::Test {
 protected:
  void SetUp() override {
    HOLDFAST_SKIP_IF_MISSING(missing_postgres());
    store_.emplace();
    proxy_ = proxy_to(static_cast<std::uint16_t>(std::stoi(store_->port())));
    engine_ = open_engine("postgres://postgres@127.0.0.1:" + std::to_string(proxy_->port()) +
                          "/postgres?timeout=60s&schema=" + store_->schema());
    proxy_->refuse_connections();  // the bell's
    ASSERT_EQ(submit(*engine_, "x", acquire(1)).status, Status::granted);
  }

  // Applied, but not answered before the line is healed.
  std::future<core::Outcome> release_without_an_answer() {
    proxy_->swallow_reply({});
    auto outcome =
        std::async(std::launch::async, [&] { return submit(*engine_, "x", release(1)); });
    EXPECT_TRUE(eventually([&] {
      return store_->sql().value("SELECT request IS NULL FROM " + store_->schema() +
                                 ".locks WHERE name = 'x'") == "t";
    }));
    return outcome;
  }

  void hang_the_bell() {
    proxy_->accept_connections();
    EXPECT_TRUE(eventually([&] {
      look();
      return !engine_->may_have_changed();
    }));
    look();
  }

  void look() {
    for (const engine::Ring& ring : engine_->answer_doorbell()) {
      rings_.push_back(ring);
    }
  }

  std::optional<PostgresStore> store_;
  std::unique_ptr<FaultProxy> proxy_;
  std::unique_ptr<engine::Engine> engine_;
  std::vector<engine::Ring> rings_;
};

// That it holds nothing any more is what it asked for, not news; but if nobody can tell it whether
// it does, it must look.
TEST_F(PostgresDoorbell, WhoIsGivingBackIsRungForOnlyIfThatFails) {
  auto outcome = release_without_an_answer();
  hang_the_bell();
  EXPECT_THAT(rings_, IsEmpty());
  proxy_->heal();  // resets the line that is mute
  EXPECT_EQ(outcome.get().status, Status::failed);
  ASSERT_TRUE(eventually([&] {
    look();
    return !rings_.empty();
  }));
  EXPECT_EQ(rings_[0].id, id(1));
  EXPECT_EQ(rings_[0].token, 0U);
}

TEST_F(PostgresDoorbell, WhoseReleaseFailedIsLookedAfterWhenTheBellHangs) {
  proxy_->swallow_reply({.then = Swallow::Then::cut});
  EXPECT_EQ(submit(*engine_, "x", release(1)).status, Status::failed);
  EXPECT_THAT(engine_->answer_doorbell(), IsEmpty());
  hang_the_bell();
  ASSERT_EQ(rings_.size(), 1U);
  EXPECT_EQ(rings_[0].id, id(1));
}

TEST_F(PostgresDoorbell, WhoGaveBackIsNotRungFor) {
  ASSERT_EQ(submit(*engine_, "x", release(1)).status, Status::released);
  hang_the_bell();
  EXPECT_THAT(rings_, IsEmpty());
}

}  // namespace
}  // namespace holdfast
