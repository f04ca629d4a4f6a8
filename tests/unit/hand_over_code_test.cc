#include "client/hand_over_code.h"

#include <gtest/gtest.h>

#include "support/commands.h"

namespace holdfast::client {
namespace {

TEST(HandOverCode, SurvivesItsText) {
  for (const core::Shape& shape : {core::Shape{}, test::kShared, test::permits(2, 5)}) {
    const HandOverCode code{std::string{"a\0b-\xff", 5}, test::id(7), shape};
    const auto read = HandOverCode::read(code.text());
    ASSERT_TRUE(read) << read.error();
    EXPECT_EQ(read->name, code.name);
    EXPECT_EQ(read->request, code.request);
    EXPECT_EQ(read->shape, shape);
  }
}

TEST(HandOverCode, AnythingElseIsRefused) {
  const std::string good = HandOverCode{"x", test::id(7), {}}.text();
  for (const std::string& bad :
       {std::string{}, std::string{"-----"}, good.substr(1), good + "0", good + "-", good + "zz",
        good.substr(0, good.size() - 2), std::string{"holdfast1-00-0-1-0-78"},
        std::string{"holdfast1-"} + std::string(32, '0') + "-3-1-0-78",
        std::string{"holdfast1-"} + std::string(32, '0') + "-0-2-0-78",
        std::string{"holdfast1-"} + std::string(32, '0') + "-2-4-3-78",
        std::string{"holdfast1-"} + std::string(32, '0') + "-0-1-0-" + std::string(512, '7')}) {
    const auto read = HandOverCode::read(bad);
    ASSERT_FALSE(read) << bad;
    EXPECT_EQ(read.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(read.error().text.find("code"), std::string::npos);
  }
}

}  // namespace
}  // namespace holdfast::client
