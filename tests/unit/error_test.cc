#include <gtest/gtest.h>
#include <holdfast/error.h>
#include <holdfast/inspect.h>

#include <set>
#include <sstream>
#include <string>

namespace holdfast {
namespace {

TEST(ErrorCodes, HaveDistinctNames) {
  std::set<std::string_view> names;
  for (int code = 1; code <= static_cast<int>(ErrorCode::unauthorized); ++code) {
    names.insert(to_string(static_cast<ErrorCode>(code)));
  }
  EXPECT_EQ(names.size(), 9U);
  EXPECT_FALSE(names.contains("unknown"));
  EXPECT_TRUE(names.contains("outcome_unknown"));
}

TEST(ErrorCodes, AreStandardErrorCodes) {
  const std::error_code code = ErrorCode::lease_lost;
  EXPECT_STREQ(code.category().name(), "holdfast");
  EXPECT_EQ(code.message(), "lease_lost");
  EXPECT_EQ(code, ErrorCode::lease_lost);
}

TEST(ErrorText, HasCodeTextAndNativeCode) {
  std::ostringstream out;
  out << Error{ErrorCode::unavailable, "the disk is full", 13};
  EXPECT_EQ(out.str(), "unavailable: the disk is full [13]");
}

TEST(LockErrorTest, CarriesTheError) {
  const LockError thrown{Error{ErrorCode::busy, "taken", std::nullopt}};
  EXPECT_EQ(thrown.code(), ErrorCode::busy);
  EXPECT_EQ(thrown.error().text, "taken");
  EXPECT_NE(std::string{thrown.what()}.find("taken"), std::string::npos);
}

}  // namespace
}  // namespace holdfast
