// Who is rung for, and who is not, while the bell is being hung.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

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

// Nobody answers on the bell's line: who renews or asks meanwhile is not kept by that.
TEST_F(PostgresDoorbell, ALineThatIsNotMadeKeepsNobodyFromRenewing) {
  const int silent = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  socklen_t size = sizeof address;
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(silent, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(silent, 8), 0);
  ASSERT_EQ(getsockname(silent, reinterpret_cast<sockaddr*>(&address), &size), 0);
  ASSERT_TRUE(proxy_->retarget({{"127.0.0.1", ntohs(address.sin_port)}}));
  proxy_->accept_connections();
  auto outcomes = std::async(std::launch::async, [&] {
    return submit(*engine_, {{"y", poll(2)}, {"x", renew(1)}});
  });
  EXPECT_EQ(outcomes.wait_for(test::kPatience), std::future_status::ready);
  proxy_->heal();
  proxy_->reset_all();
  EXPECT_EQ(outcomes.get().at(1).status, Status::renewed);
  close(silent);
}

TEST_F(PostgresDoorbell, WhoGaveBackIsNotRungFor) {
  ASSERT_EQ(submit(*engine_, "x", release(1)).status, Status::released);
  hang_the_bell();
  EXPECT_THAT(rings_, IsEmpty());
}

}  // namespace
}  // namespace holdfast
