#include "engines/mysql/mysql_features.h"

#include <gtest/gtest.h>

namespace holdfast::engines {
namespace {

TEST(MysqlFeatures, AreThoseOfTheVersion) {
  struct Known {
    const char* version;
    bool mariadb;
    bool returning;
    bool nowait;
    bool skip_locked;
  };
  for (const Known& known :
       {Known{"5.7.44-log", false, false, false, false},
        Known{"8.0.35-0ubuntu0.22.04.1", false, false, true, true},
        Known{"8.4.0", false, false, true, true},
        Known{"10.3.39-MariaDB", true, false, true, false},
        Known{"10.5.1-MariaDB-log", true, true, true, false},
        Known{"10.11.19-MariaDB-0+deb12u1", true, true, true, true},
        Known{"11.4.2-MariaDB", true, true, true, true}, Known{"", false, false, false, false}}) {
    const MysqlFeatures features = MysqlFeatures::of(known.version);
    EXPECT_EQ(features.mariadb, known.mariadb) << known.version;
    EXPECT_EQ(features.returning, known.returning) << known.version;
    EXPECT_EQ(features.nowait, known.nowait) << known.version;
    EXPECT_EQ(features.skip_locked, known.skip_locked) << known.version;
  }
}

}  // namespace
}  // namespace holdfast::engines
