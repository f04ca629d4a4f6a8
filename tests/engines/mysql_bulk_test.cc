// Batches that go to MariaDB as rows of a prepared statement.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "support/engine_driver.h"
#include "support/mysql_store.h"
#include "support/needs.h"

namespace holdfast {
namespace {

using namespace test;
using core::Outcome;
using core::Status;
using ::testing::Each;
using ::testing::Field;

class MysqlBulk : public ::testing::Test {
 protected:
  void SetUp() override {
    HOLDFAST_SKIP_IF_MISSING(missing_program("mariadbd"));
    store_ = std::make_unique<MysqlStore>();
  }

  // For each name, with the ids that follow the first.
  template <typename Make>
  static std::vector<core::Command> for_all(const std::vector<std::string>& names,
                                            std::uint32_t first, Make make) {
    std::vector<core::Command> batch;
    for (const std::string& name : names) batch.push_back({name, make(first++)});
    return batch;
  }
  static auto all_are(Status status) { return Each(Field(&Outcome::status, status)); }
  static core::Operation take(std::uint32_t number) { return try_acquire(number); }
  static core::Operation give_back(std::uint32_t number) { return release(number); }
  static core::Operation prolong(std::uint32_t number) { return renew(number); }

  std::unique_ptr<MysqlStore> store_;
};

TEST_F(MysqlBulk, WhatIsInANameIsNeverPartOfAStatement) {
  const std::vector<std::string> names{"?",
                                       "it's",
                                       R"(\' OR 1=1; -- )",
                                       "\xff\xfe\x80",
                                       std::string{"a\0b", 3},
                                       "\"`x'00'",
                                       "\xf0\x9f\x94\x92",
                                       std::string(255, '\'')};
  const auto engine = open_engine(store_->url(), 1);
  const auto other = open_engine(store_->url(), 2);
  for (std::uint32_t round = 0; round < 2; ++round) {  // without rows, then with them
    const std::uint32_t first = 100 * (round + 1);
    const auto granted = submit(*engine, for_all(names, first, take));
    EXPECT_THAT(granted, all_are(Status::granted));
    EXPECT_THAT(submit(*other, for_all(names, first + 50, take)), all_are(Status::busy));
    EXPECT_THAT(submit(*engine, for_all(names, first, prolong)), all_are(Status::renewed));
    EXPECT_THAT(submit(*other, for_all(names, first + 50, give_back)), all_are(Status::not_held));
    for (std::size_t i = 0; i < names.size(); ++i) {
      EXPECT_EQ(engine->show(names[i])->holders.size(), 1U) << i;
      EXPECT_EQ(engine->show(names[i])->holders.front().token, granted[i].token) << i;
    }
    EXPECT_THAT(submit(*engine, for_all(names, first, give_back)), all_are(Status::released));
    EXPECT_THAT(submit(*engine, for_all(names, first, give_back)), all_are(Status::not_held));
  }
  EXPECT_EQ(store_->rows(), names.size());
}

TEST_F(MysqlBulk, ARowThatIsGoneIsMadeAnewAndWhole) {
  const auto engine = open_engine(store_->url(), 1);
  const std::vector<std::string> names{"a", "b", "c"};
  EXPECT_THAT(submit(*engine, for_all(names, 1, take)), all_are(Status::granted));
  EXPECT_THAT(submit(*engine, for_all(names, 1, give_back)), all_are(Status::released));
  store_->root().ask("DELETE FROM " + store_->prefix() + "locks");
  const auto granted = submit(*engine, for_all(names, 11, take));
  EXPECT_THAT(granted, all_are(Status::granted));
  EXPECT_EQ(store_->token_of("b"), granted[1].token);
  // On MySQL the record makes it, which knows no party of these sessions.
  const std::string whole = store_->is_mariadb() ? "holder<>'' AND " : "";
  EXPECT_EQ(store_->root().ask_one("SELECT COUNT(*) FROM " + store_->prefix() + "locks WHERE " +
                                   whole + "held_until>UTC_TIMESTAMP(6)"),
            "3");
  store_->root().ask("DELETE FROM " + store_->prefix() + "locks");
  EXPECT_THAT(submit(*engine, for_all(names, 11, prolong)), all_are(Status::not_held));
  EXPECT_THAT(submit(*engine, for_all(names, 11, give_back)), all_are(Status::not_held));
  EXPECT_THAT(submit(*engine, for_all(names, 21, take)), all_are(Status::granted));
}

// On a server of its own, where nobody else prepares statements.
TEST_F(MysqlBulk, IsParsedOnceAndDoneWithoutWhereTheServerRefuses) {
  if (!store_->is_mariadb()) GTEST_SKIP() << "MySQL knows no rows of a prepared statement";
  MysqlStore own{{"--max-prepared-stmt-count=1"}};
  const auto prepared = [&] {
    return own.root().ask("SHOW GLOBAL STATUS LIKE 'Com_stmt_prepare'").at(0).at(1);
  };
  const auto engine = open_engine(own.url(), 1);
  ASSERT_TRUE(engine->init());
  const std::vector<std::string> names{"a", "b", "c"};
  for (std::uint32_t round = 0; round < 5; ++round) {
    EXPECT_THAT(submit(*engine, for_all(names, 100 * round, take)), all_are(Status::granted));
    EXPECT_THAT(submit(*engine, for_all(names, 100 * round, give_back)), all_are(Status::released));
  }
  EXPECT_EQ(prepared(), "1");
  EXPECT_EQ(own.root().ask("SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'").at(0).at(1), "1");
  const auto other = open_engine(own.url(), 2);
  EXPECT_THAT(submit(*other, for_all(names, 1000, take)), all_are(Status::granted));
  EXPECT_THAT(submit(*other, for_all(names, 1000, give_back)), all_are(Status::released));
}

}  // namespace
}  // namespace holdfast
