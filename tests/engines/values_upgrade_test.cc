// Stores that an older holdfast prepared have no table for values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/engine_driver.h"
#include "support/needs.h"
#include "support/raw_sqlite.h"
#include "support/stores.h"
#ifndef HOLDFAST_WITHOUT_MYSQL
#include "support/mysql_store.h"
#endif
#ifndef HOLDFAST_WITHOUT_POSTGRES
#include "support/postgres_store.h"
#endif

namespace holdfast::test {
namespace {

const core::ValueWrite kWrite{
    .name = "x", .expected = std::nullopt, .bytes = "y", .writer = id(7), .hold_off = {}};

TEST(ValuesUpgrade, SqliteMakesItsTableWhenItOpensTheFile) {
  const TempDir dir;
  const std::string file = (dir / "locks.db").string();
  open_engine("sqlite:" + file);
  RawSqlite{file}.run("DROP TABLE versioned_values");
  const auto engine = open_engine("sqlite:" + file);
  EXPECT_EQ(submit(*engine, "x", acquire(1)).status, core::Status::granted);
  const auto written = engine->write_value(kWrite);
  ASSERT_TRUE(written) << written.error();
  EXPECT_TRUE(written->applied);
}

#ifndef HOLDFAST_WITHOUT_MYSQL
TEST(ValuesUpgrade, MysqlMakesItsTableAtTheFirstUse) {
  HOLDFAST_SKIP_IF_MISSING(missing_program("mariadbd"));
  MysqlStore store;
  const auto engine = open_engine(store.url());
  ASSERT_TRUE(engine->init());
  store.root().ask("DROP TABLE " + store.prefix() + "values");
  EXPECT_EQ(submit(*engine, "x", acquire(1)).status, core::Status::granted);
  const auto written = engine->write_value(kWrite);
  ASSERT_TRUE(written) << written.error();
  EXPECT_TRUE(written->applied);
  store.root().ask("DROP TABLE " + store.prefix() + "values");
  ASSERT_TRUE(engine->init());
  EXPECT_TRUE(engine->list_values("")->empty());
}

TEST(ValuesUpgrade, MysqlSaysWhatToDoIfItMayNot) {
  HOLDFAST_SKIP_IF_MISSING(missing_program("mariadbd"));
  MysqlStore store;
  ASSERT_TRUE(open_engine(store.url())->init());
  const std::string user = store.add_least_user();
  const auto engine = open_engine(store.url_of(user));
  EXPECT_TRUE(engine->write_value(kWrite)->applied);
  store.root().ask("DROP TABLE " + store.prefix() + "values");
  const auto refused = engine->write_value(kWrite);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text, ::testing::HasSubstr("holdfast init"));
  store.drop_user(user);
}
#endif

#ifndef HOLDFAST_WITHOUT_POSTGRES
TEST(ValuesUpgrade, PostgresNeedsInitOnceMore) {
  HOLDFAST_SKIP_IF_MISSING(missing_postgres());
  PostgresStore store;
  store.sql().run("DROP TABLE " + store.schema() + ".versioned_values");
  const auto engine = open_engine(store.url());
  EXPECT_EQ(submit(*engine, "x", acquire(1)).status, core::Status::granted);
  const auto refused = engine->write_value(kWrite);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
  EXPECT_THAT(refused.error().text, ::testing::HasSubstr("holdfast init"));
  const auto findings = engine->doctor();
  EXPECT_THAT(findings, ::testing::Contains(::testing::Field(&Finding::topic, "values")));
  ASSERT_TRUE(engine->init());
  EXPECT_TRUE(engine->write_value(kWrite)->applied);
}
#endif

}  // namespace
}  // namespace holdfast::test
