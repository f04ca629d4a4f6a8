// Rows of the user's own table, changed by comparing versions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <holdfast/mysql.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "support/mysql_store.h"
#include "support/needs.h"

namespace holdfast::test {
namespace {

class MysqlRow : public ::testing::Test {
 protected:
  void SetUp() override {
    HOLDFAST_SKIP_IF_MISSING(missing_program("mariadbd"));
    store_.emplace();
    sql().ask("CREATE TABLE " + table() +
              " (id INT PRIMARY KEY, `odd ``name` TEXT, count BIGINT NULL, price DOUBLE,"
              " version BIGINT NOT NULL) ENGINE=InnoDB");
    sql().ask("INSERT INTO " + table() + " VALUES (1, 'old', 10, 1.5, 7)");
  }
  void TearDown() override {
    if (store_) sql().ask("DROP TABLE " + table());
  }

  std::string table() const { return store_->prefix() + "stock"; }
  RawMysql& sql() { return store_->root(); }
  RowUpdate update(std::vector<SqlColumn> set, std::int64_t expected) const {
    return {.table = table(),
            .set = std::move(set),
            .key = {{"id", std::int64_t{1}}},
            .expected = expected};
  }

  std::optional<MysqlStore> store_;
};

TEST_F(MysqlRow, ChangesTheVersionThatWasRead) {
  const auto done = mysql::update_row(
      sql().get(),
      update({{"odd `name", "it's; -- \"new\""}, {"count", nullptr}, {"price", 0.1}}, 7));
  ASSERT_TRUE(done) << done.error();
  EXPECT_TRUE(done->stored);
  EXPECT_EQ(done->version, 8U);
  const auto row = sql().ask("SELECT * FROM " + table()).at(0);
  EXPECT_EQ(row, (std::vector<std::string>{"1", "it's; -- \"new\"", "NULL", "0.1", "8"}));
}

TEST_F(MysqlRow, AConflictChangesNothing) {
  const auto late = mysql::update_row(sql().get(), update({{"count", std::int64_t{1}}}, 6));
  ASSERT_TRUE(late) << late.error();
  EXPECT_FALSE(late->stored);
  auto other = update({{"count", std::int64_t{1}}}, 7);
  other.key = {{"id", std::int64_t{2}}};
  EXPECT_FALSE(mysql::update_row(sql().get(), other)->stored);
  EXPECT_EQ(sql().ask_one("SELECT count FROM " + table()), "10");
}

TEST_F(MysqlRow, TheSameValueAgainIsAChange) {
  EXPECT_TRUE(mysql::update_row(sql().get(), update({{"count", std::int64_t{10}}}, 7))->stored);
  EXPECT_FALSE(mysql::update_row(sql().get(), update({{"count", std::int64_t{10}}}, 7))->stored);
}

TEST_F(MysqlRow, WorksInATransaction) {
  sql().ask("START TRANSACTION");
  EXPECT_TRUE(mysql::update_row(sql().get(), update({{"count", std::int64_t{9}}}, 7))->stored);
  sql().ask("ROLLBACK");
  EXPECT_EQ(sql().ask_one("SELECT version FROM " + table()), "7");
}

TEST_F(MysqlRow, BadInputIsNamed) {
  const auto text_of = [&](const RowUpdate& wrong) {
    const auto refused = mysql::update_row(sql().get(), wrong);
    EXPECT_FALSE(refused);
    EXPECT_TRUE(refused || refused.error().code == ErrorCode::invalid_argument);
    return refused ? std::string{} : refused.error().text;
  };
  using ::testing::HasSubstr;
  const RowUpdate good = update({{"count", std::int64_t{1}}}, 7);
  RowUpdate wrong = good;
  wrong.table.clear();
  EXPECT_THAT(text_of(wrong), HasSubstr("table"));
  wrong.table = std::string(65, 'x');
  EXPECT_THAT(text_of(wrong), HasSubstr("table"));
  wrong = good;
  wrong.set.clear();
  EXPECT_THAT(text_of(wrong), HasSubstr("set"));
  wrong.set = {{"version", std::int64_t{1}}};
  EXPECT_THAT(text_of(wrong), HasSubstr("version"));
  wrong.set = {{"count", nullptr}, {"count", nullptr}};
  EXPECT_THAT(text_of(wrong), HasSubstr("twice"));
  wrong = good;
  wrong.key.clear();
  EXPECT_THAT(text_of(wrong), HasSubstr("key"));
  wrong.key = {{"id", nullptr}};
  EXPECT_THAT(text_of(wrong), HasSubstr("NULL"));
  wrong = good;
  wrong.version_column.clear();
  EXPECT_THAT(text_of(wrong), HasSubstr("version_column"));
  EXPECT_EQ(mysql::update_row(nullptr, good).error().code, ErrorCode::invalid_argument);
  wrong = good;
  wrong.table = "no_such_table";
  EXPECT_EQ(mysql::update_row(sql().get(), wrong).error().code, ErrorCode::unavailable);
}

TEST_F(MysqlRow, StockIsNeverSoldTwice) {
  std::atomic<int> sold = 0;
  std::vector<std::thread> buyers;
  for (int i = 0; i < 16; ++i) {
    buyers.emplace_back([&] {
      RawMysql mine{store_->port_text()};
      mine.ask("SET autocommit=1");
      while (true) {
        const auto row = mine.ask("SELECT count, version FROM " + table()).at(0);
        const std::int64_t left = std::stoll(row[0]);
        ASSERT_GE(left, 0);
        if (left == 0) return;
        const auto done =
            mysql::update_row(mine.get(), update({{"count", left - 1}}, std::stoll(row[1])));
        ASSERT_TRUE(done) << done.error();
        if (done->stored) {
          ++sold;
          return;
        }
      }
    });
  }
  for (std::thread& buyer : buyers) buyer.join();
  EXPECT_EQ(sold, 10);
  EXPECT_EQ(sql().ask_one("SELECT count FROM " + table()), "0");
}

}  // namespace
}  // namespace holdfast::test
