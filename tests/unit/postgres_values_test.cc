#include "engines/postgres/postgres_values.h"

#include <gtest/gtest.h>

namespace holdfast::engines::postgres {
namespace {

using namespace std::chrono_literals;

TEST(PostgresValues, AnIntervalAsTextHasNoLargeNumbers) {
  EXPECT_EQ(interval_text(0us), "00:00:00.000000");
  EXPECT_EQ(interval_text(20ms + 1us + 999ns), "00:00:00.020001");
  EXPECT_EQ(interval_text(61min + 1s), "01:01:01.000000");
  EXPECT_EQ(interval_text(168h), "168:00:00.000000");
  EXPECT_EQ(interval_text(base::Duration::max()), "2562047:47:16.854775");
}

}  // namespace
}  // namespace holdfast::engines::postgres
