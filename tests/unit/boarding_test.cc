// Who shares a transaction with whom.
#include "engine/boarding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

namespace holdfast::engine {
namespace {

using ::testing::ElementsAre;

class BoardingTest : public ::testing::Test {
 protected:
  using Gate = Boarding<int>::Gate;
  std::vector<std::vector<int>> departed_;
  const std::shared_ptr<Boarding<int>> boarding_ = std::make_shared<Boarding<int>>(
      3, [this](std::vector<int> together) { departed_.push_back(std::move(together)); });
};

TEST_F(BoardingTest, WithoutAGateEverybodyGoesAtOnceAlone) {
  boarding_->board(1, "");
  boarding_->board(2, "");
  EXPECT_THAT(departed_, ElementsAre(ElementsAre(1), ElementsAre(2)));
}

TEST_F(BoardingTest, ThoseWhoComeWhileAGateIsOpenGoTogetherWhenItCloses) {
  {
    const Gate gate{boarding_};
    boarding_->board(1, "");
    boarding_->board(2, "");
    EXPECT_TRUE(departed_.empty());
  }
  EXPECT_THAT(departed_, ElementsAre(ElementsAre(1, 2)));
  boarding_->board(3, "");
  EXPECT_THAT(departed_, ElementsAre(ElementsAre(1, 2), ElementsAre(3)));
}

// Gates may overlap without end; nobody waits for the last of them.
TEST_F(BoardingTest, AnyGateThatClosesTakesThemAlong) {
  std::optional<Gate> first{std::in_place, boarding_};
  const Gate second{boarding_};
  boarding_->board(1, "");
  first.reset();
  EXPECT_THAT(departed_, ElementsAre(ElementsAre(1)));
  boarding_->board(2, "");
  EXPECT_THAT(departed_, ElementsAre(ElementsAre(1))) << "one is still open";
}

TEST_F(BoardingTest, ThereAreOnlySoManySeats) {
  {
    const Gate gate{boarding_};
    for (int i = 1; i <= 7; ++i) boarding_->board(i, "");
  }
  EXPECT_THAT(departed_, ElementsAre(ElementsAre(1, 2, 3), ElementsAre(4, 5, 6), ElementsAre(7)));
}

TEST_F(BoardingTest, ThoseOfOneLineNeverShare) {
  {
    const Gate gate{boarding_};
    boarding_->board(1, "a");
    boarding_->board(2, "a");
    boarding_->board(3, "b");
    boarding_->board(4, "");
    boarding_->board(5, "");
  }
  EXPECT_THAT(departed_, ElementsAre(ElementsAre(1, 3, 4), ElementsAre(2, 5)));
}

// Whoever was served may want something else at once.
TEST_F(BoardingTest, WhoComesBackWhileOthersDepartGoesAtOnce) {
  std::vector<std::vector<int>> departed;
  std::shared_ptr<Boarding<int>> boarding;
  boarding = std::make_shared<Boarding<int>>(3, [&](std::vector<int> together) {
    if (together.front() == 1) boarding->board(10, "");
    departed.push_back(std::move(together));
  });
  {
    const Boarding<int>::Gate gate{boarding};
    boarding->board(1, "");
  }
  EXPECT_THAT(departed, ElementsAre(ElementsAre(10), ElementsAre(1)));
  boarding.reset();
}

}  // namespace
}  // namespace holdfast::engine
