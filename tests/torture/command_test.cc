// What surrounds the torture: its words, its refusals, its addresses.

#include <gtest/gtest.h>

#include "holdfast/torture/line.h"
#include "holdfast/torture/nemesis.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace holdfast::command::torture {
namespace {

using test::Process;

int status_of(const std::vector<std::string>& more, const std::string& url, std::string& err) {
  std::vector<std::string> words{HOLDFAST_COMMAND, "torture", "--url", url};
  words.insert(words.end(), more.begin(), more.end());
  Process process = Process::start(words);
  const auto status = process.wait();
  err = process.err();
  return status.value_or(-1);
}

TEST(TortureCommand, RefusesWhatMakesNoSense) {
  const test::TempDir dir;
  const std::string url = "sqlite:" + (dir / "a.db").string();
  std::string err;
  EXPECT_EQ(status_of({}, "memory:", err), 64) << err;
  EXPECT_NE(err.find("lives in one process"), std::string::npos) << err;
  EXPECT_EQ(status_of({"--faults", "reset"}, url, err), 64) << err;
  EXPECT_NE(err.find("plain TCP"), std::string::npos) << err;
  EXPECT_EQ(status_of({"--faults", "rust"}, url, err), 64) << err;
  EXPECT_NE(err.find("no fault is called 'rust'"), std::string::npos) << err;
  EXPECT_EQ(status_of({"--ttl", "1ms"}, url, err), 64) << err;
  EXPECT_EQ(status_of({"--seconds", "0"}, url, err), 64) << err;
  EXPECT_EQ(status_of({"--processes", "many"}, url, err), 64) << err;
  EXPECT_EQ(status_of({"--worker"}, url, err), 64) << err;
}

TEST(TortureCommand, UnderstandsGroupsOfFaults) {
  EXPECT_EQ(parse_faults("none")->size(), 0U);
  EXPECT_EQ(parse_faults("process")->size(), 2U);
  EXPECT_EQ(parse_faults("all")->size(), proof::kFaults);
  EXPECT_EQ(parse_faults("network,kill,kill")->size(), proof::kFaults - 1);
  EXPECT_FALSE(
      parse_faults("kill,"
                   "death"));
}

TEST(StoreAddress, FindsTheHosts) {
  const auto mysql = address_of("mysql://me:a@b@db.example/locks?strategy=lease");
  ASSERT_TRUE(mysql);
  EXPECT_EQ(mysql->head, "mysql://me:a@b@");
  ASSERT_EQ(mysql->endpoints.size(), 1U);
  EXPECT_EQ(mysql->endpoints[0].host, "db.example");
  EXPECT_EQ(mysql->endpoints[0].port, 3306);
  EXPECT_EQ(mysql->with({{"127.0.0.1", 7}}), "mysql://me:a@b@127.0.0.1:7/locks?strategy=lease");

  const auto zookeeper = address_of("zookeeper://a,[::1]:99,c:2182");
  ASSERT_TRUE(zookeeper);
  ASSERT_EQ(zookeeper->endpoints.size(), 3U);
  EXPECT_EQ(zookeeper->endpoints[0].port, 2181);
  EXPECT_EQ(zookeeper->endpoints[1].host, "::1");
  EXPECT_EQ(zookeeper->endpoints[1].port, 99);
  EXPECT_EQ(zookeeper->endpoints[2].port, 2182);
}

TEST(StoreAddress, LeavesAloneWhatCannotBeIntercepted) {
  EXPECT_FALSE(address_of("sqlite:/tmp/a.db"));
  EXPECT_FALSE(address_of("memory:"));
  EXPECT_FALSE(address_of("rediss://host"));
  EXPECT_FALSE(address_of("mysql://host/db?tls=required"));
  EXPECT_FALSE(address_of("postgres://host/db?socket=/run/pg"));
  EXPECT_FALSE(address_of("redis://host:port"));
  EXPECT_FALSE(address_of("redis://"));
}

}  // namespace
}  // namespace holdfast::command::torture
