#include "holdfast/changes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace holdfast::command {
namespace {

using namespace std::chrono_literals;

constexpr Instant kStart{};

HolderInfo holder(const std::string& label, std::uint64_t token) {
  HolderInfo info;
  info.party = {label, "host", 1};
  info.token = token;
  info.expires_in = 10s;
  return info;
}

WaiterInfo waiter(const std::string& label) {
  WaiterInfo info;
  info.party = {label, "host", 1};
  return info;
}

LockInfo lock(const std::string& name, std::vector<HolderInfo> holders,
              std::vector<WaiterInfo> queue = {}) {
  return {name, 0, std::move(holders), std::move(queue)};
}

std::vector<std::string> told(const std::vector<Change>& changes) {
  std::vector<std::string> lines;
  for (const Change& change : changes) {
    lines.push_back(std::string{to_string(change.what)} + " " + change.name + " " +
                    change.party.label);
  }
  return lines;
}

using Lines = std::vector<std::string>;

TEST(Changes, FirstTellsWhatThereIs) {
  Changes changes;
  EXPECT_EQ(told(changes.look({lock("x", {holder("a", 1)}, {waiter("b")})}, kStart)),
            (Lines{"acquired x a", "queued x b"}));
}

TEST(Changes, AreNoneWhenNothingHappened) {
  Changes changes;
  changes.look({lock("x", {holder("a", 1)}, {waiter("b")})}, kStart);
  EXPECT_TRUE(changes.look({lock("x", {holder("a", 1)}, {waiter("b")})}, kStart + 1s).empty());
}

TEST(Changes, ShowAHandOverAsReleaseAndGrant) {
  Changes changes;
  changes.look({lock("x", {holder("a", 1)}, {waiter("b"), waiter("b")})}, kStart);
  EXPECT_EQ(told(changes.look({lock("x", {holder("b", 2)}, {waiter("b")})}, kStart + 1s)),
            (Lines{"released x a", "acquired x b"}));
}

TEST(Changes, ShowANewGrantToTheSameHolder) {
  Changes changes;
  changes.look({lock("x", {holder("a", 1)})}, kStart);
  EXPECT_EQ(told(changes.look({lock("x", {holder("a", 2)})}, kStart + 1s)),
            (Lines{"released x a", "acquired x a"}));
}

TEST(Changes, TellALeaseThatRanOut) {
  Changes changes;
  changes.look({lock("x", {holder("a", 1)})}, kStart);
  EXPECT_EQ(told(changes.look({}, kStart + 11s)), (Lines{"expired x a"}));
}

TEST(Changes, TellThatAWaiterLeft) {
  Changes changes;
  changes.look({lock("x", {holder("a", 1)}, {waiter("b")})}, kStart);
  EXPECT_EQ(told(changes.look({lock("x", {holder("a", 1)})}, kStart + 1s)), (Lines{"left x b"}));
}

TEST(Changes, TellARevocationOnce) {
  Changes changes;
  changes.look({lock("x", {holder("a", 1)})}, kStart);
  auto revoked = holder("a", 1);
  revoked.revoked = true;
  EXPECT_EQ(told(changes.look({lock("x", {revoked})}, kStart + 1s)), (Lines{"revoked x a"}));
  EXPECT_TRUE(changes.look({lock("x", {revoked})}, kStart + 2s).empty());
}

TEST(Changes, KeepNamesApart) {
  Changes changes;
  changes.look({lock("b", {holder("a", 1)}), lock("d", {holder("a", 1)})}, kStart);
  EXPECT_EQ(told(changes.look({lock("c", {holder("a", 1)}), lock("a", {holder("a", 1)}),
                               lock("d", {holder("a", 1)})},
                              kStart + 1s)),
            (Lines{"acquired a a", "released b a", "acquired c a"}));
}

}  // namespace
}  // namespace holdfast::command
