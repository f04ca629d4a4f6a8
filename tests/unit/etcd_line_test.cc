// Who holds, by the keys of a line alone, and which token.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engines/etcd/etcd_line.h"
#include "support/commands.h"

namespace holdfast::engines {
namespace {

using test::id;
using ::testing::ElementsAre;

constexpr unsigned kBits = 12;

EtcdNote note(Mode mode) {
  EtcdNote made;
  made.shape.mode = mode;
  return made;
}
EtcdNote upgrading(std::int64_t readers_until) {
  EtcdNote made = note(Mode::shared);
  made.readers_until = readers_until;
  return made;
}

// The request has the number of its revision.
EtcdKey key(std::int64_t revision, const EtcdNote& said) {
  return {.key = etcd_key("p/n/", 7, id(static_cast<std::uint32_t>(revision))),
          .value = said.text(),
          .create_revision = revision,
          .mod_revision = revision,
          .lease = 7};
}
EtcdKey stranger(std::int64_t revision) {
  return {.key = "p/n/694d", .value = "", .create_revision = revision, .mod_revision = revision};
}

std::vector<std::int64_t> holders(const std::vector<Entrant>& line) {
  std::vector<std::int64_t> found;
  for (const Entrant& each : line) {
    if (each.holds) found.push_back(each.key.create_revision);
  }
  return found;
}

TEST(EtcdLine, ANoteSaysWhatItWasToldToSay) {
  EtcdNote before = upgrading(12);
  before.token = 81984;
  before.request = id(3);
  before.revoked = true;
  const EtcdNote after = EtcdNote::parse(before.text());
  EXPECT_EQ(after.token, before.token);
  EXPECT_EQ(after.readers_until, 12);
  EXPECT_EQ(after.request, id(3));
  EXPECT_TRUE(after.revoked);
  const EtcdNote plain = EtcdNote::parse(note(Mode::exclusive).text());
  EXPECT_EQ(plain.token, 0U);
  EXPECT_FALSE(plain.request);
}

TEST(EtcdLine, AReaderThatWaitsToWriteKeepsNewReadersOut) {
  EXPECT_THAT(holders(line_up({key(10, note(Mode::shared)), key(12, note(Mode::shared)),
                               key(14, note(Mode::shared))})),
              ElementsAre(10, 12, 14));
  // The one at 14 came when it waited already.
  const auto line =
      line_up({key(10, upgrading(12)), key(12, note(Mode::shared)), key(14, note(Mode::shared))});
  EXPECT_THAT(holders(line), ElementsAre(10, 12));
  EXPECT_EQ(standing_of(line, line[2].key.key, id(14)).blocker, line[0].key.key);
}

// 14 was behind a writer that has given up since: it did not read at the time.
TEST(EtcdLine, WhoStoodBehindAWriterDoesNotReadOnBecauseThatLeft) {
  const auto line = line_up({key(10, upgrading(12)), key(14, note(Mode::shared))});
  EXPECT_THAT(holders(line), ElementsAre(10));
}

// A writer in front lets readers in by its end, or by becoming one of them.
TEST(EtcdLine, OnlyAWriterEntersByTheEndOfTheOneInFront) {
  for (const Mode mode : {Mode::exclusive, Mode::shared}) {
    const auto line =
        line_up({key(10, note(Mode::exclusive)), key(12, note(mode)), key(14, note(mode))});
    EXPECT_EQ(standing_of(line, line[1].key.key, id(12)).next, mode == Mode::exclusive);
    EXPECT_FALSE(standing_of(line, line[2].key.key, id(14)).next);
  }
}

TEST(EtcdLine, AStrangerWaitsBehindAnUpgrade) {
  EXPECT_THAT(holders(line_up({key(10, upgrading(10)), stranger(11)})), ElementsAre(10));
  EXPECT_THAT(holders(line_up({key(10, note(Mode::exclusive)), stranger(11)})), ElementsAre(10));
}

TEST(EtcdLine, AGrantThatWasHandedOverIsTheTakersAlone) {
  EtcdNote handed = note(Mode::exclusive);
  handed.request = id(99);
  const auto line = line_up({key(10, handed)});
  EXPECT_FALSE(standing_of(line, line[0].key.key, id(10)).found);
  EXPECT_TRUE(standing_of(line, line[0].key.key, id(99)).holds);
}

TEST(EtcdToken, AnUpgradeIsAboveAllReadersAndBelowWhoWaits) {
  // A reader created at 19 was there and left; 20 waits.
  const auto line = line_up({key(10, note(Mode::shared)), key(20, note(Mode::exclusive))});
  const auto token = etcd_token_alone(line, 500);
  ASSERT_TRUE(token);
  EXPECT_GT(*token, (std::uint64_t{19} << kBits) + core::kTokenStride - 1);
  EXPECT_LT(*token + core::kTokenStride, (std::uint64_t{20} << kBits) + 1);
  // Nobody waits: above whatever there was.
  const auto free = etcd_token_alone(line_up({key(10, note(Mode::shared))}), 500);
  ASSERT_TRUE(free);
  EXPECT_GT(*free, std::uint64_t{500} << kBits);
  EXPECT_LT(*free, std::uint64_t{501} << kBits);
}

// A reader of the last revision before the waiter was handed over, as often as
// can be, and left: nothing in the line tells.
TEST(EtcdToken, AnUpgradeIsAboveWhatReadersWereHandedOver) {
  Entrant reader = entrant_of(key(19, note(Mode::shared)));
  std::uint64_t highest = reader.token;
  for (auto next = etcd_token_after(reader); next; next = etcd_token_after(reader)) {
    EXPECT_GT(*next, highest);
    highest = reader.token = *next;
  }
  EXPECT_EQ(highest >> kBits, 19U);
  const auto line = line_up({key(10, note(Mode::shared)), key(20, note(Mode::exclusive))});
  EXPECT_GE(etcd_token_alone(line, 500).value_or(0), highest + core::kTokenStride);
}

TEST(EtcdToken, TurnsRunOutInsteadOfWrapping) {
  EtcdKey mine = key(10, note(Mode::shared));
  std::uint64_t last = 0;
  int turns = 0;
  for (;; ++turns) {
    const auto token = etcd_token_alone(line_up({mine, key(11, note(Mode::exclusive))}), 500);
    if (!token) break;
    EXPECT_GT(*token, last);
    EXPECT_LT(*token + core::kTokenStride, (std::uint64_t{11} << kBits) + 1);
    last = *token;
    EtcdNote said = note(Mode::shared);
    said.token = *token;
    mine.value = said.text();
  }
  EXPECT_GT(turns, 20);
  EXPECT_TRUE(etcd_token_alone(line_up({mine}), 500)) << "once nobody waits there is room again";
}

}  // namespace
}  // namespace holdfast::engines
