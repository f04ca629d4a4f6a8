// Names are arbitrary bytes, 1 to 255, and different names are different locks.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "conformance/conformance.h"

namespace holdfast::test {
namespace {

using namespace std::string_literals;

class Names : public Conformance {
 protected:
  // Holds all of them at once, in one client, and sees each refused to another;
  // as many as a client can hold, where that has a bound.
  void expect_distinct(std::vector<std::string> names) {
    if (const std::size_t most = harness().most_at_once(); names.size() > most) {
      const auto rest = names.begin() + static_cast<std::ptrdiff_t>(most);
      expect_distinct({rest, names.end()});
      names.erase(rest, names.end());
    }
    auto client = open();
    auto other = open();
    std::vector<Lease> leases;
    for (const std::string& each : names) {
      auto lease = client->try_acquire(each);
      ASSERT_THAT(lease, IsOk()) << ::testing::PrintToString(each);
      EXPECT_EQ(lease->name(), each);
      leases.push_back(std::move(*lease));
    }
    for (const std::string& each : names) {
      EXPECT_THAT(other->try_acquire(each), FailsWith(ErrorCode::busy))
          << ::testing::PrintToString(each);
      auto info = other->show(each);
      ASSERT_THAT(info, IsOk());
      EXPECT_EQ(info->name, each);
      EXPECT_EQ(info->holders.size(), 1U);
    }
    for (Lease& lease : leases) EXPECT_THAT(lease.release(), IsOk());
  }

  std::string long_name(std::size_t bytes) {
    return name() + std::string(bytes - name().size(), 'x');
  }
};
HOLDFAST_RUN_ON(Names, harnesses());

TEST_P(Names, AnySingleByteIsANameOfItsOwn) {
  std::vector<std::string> names;
  for (int byte = 0; byte < 256; ++byte) names.emplace_back(1, static_cast<char>(byte));
  expect_distinct(names);
}

TEST_P(Names, LookalikesAreDifferentLocks) {
  expect_distinct({"a",        "A",        " a",           "a ",
                   "a\0"s,     "a\0b"s,    "a\0c"s,        "a/",
                   "a/b",      "a//b",     "a%2Fb",        "a%2fb",
                   "a%",       "a%25",     "a_",           "a.",
                   "a..",      "../a",     "a'b",          "a''b",
                   "a\"b",     "a`b",      "a\\b",         "a\\\\b",
                   "a;--",     "a{b}",     "{a}",          "a*",
                   "a?",       "a[b]",     "a\r\n",        "a\n",
                   "a\tb",     "é",        "e\xCC\x81",    "\xC3",
                   "\xFF\xFE", "\xC3\x28", "\xED\xA0\x80", "\xF0\x9F\x94\x92",
                   "1",        "01",       "NULL",         "x'61'",
                   "61",       "A\xC2\xA0"});
}

TEST_P(Names, TheLongestNamesCountToTheLastByte) {
  std::string one = long_name(kMaxNameBytes);
  std::string other = one;
  other.back() = 'y';
  expect_distinct({one, other, one.substr(0, kMaxNameBytes - 1)});
  expect_distinct({std::string(kMaxNameBytes, '\0'), std::string(kMaxNameBytes, '\xFF'),
                   std::string(kMaxNameBytes, '/'), std::string(kMaxNameBytes, '\'')});
}

TEST_P(Names, EmptyOrTooLongIsAMistakeOfTheCaller) {
  auto client = open();
  for (const std::string& wrong : {std::string{}, std::string(kMaxNameBytes + 1, 'x')}) {
    auto refused = client->try_acquire(wrong);
    EXPECT_THAT(refused, FailsWith(ErrorCode::invalid_argument));
    EXPECT_THAT(refused.error().text, ::testing::HasSubstr("255"));
    EXPECT_THAT(client->show(wrong), FailsWith(ErrorCode::invalid_argument));
    EXPECT_THAT(client->force_release(wrong), FailsWith(ErrorCode::invalid_argument));
    EXPECT_THAT(client->resize(wrong, 2), FailsWith(ErrorCode::invalid_argument));
    EXPECT_THROW((Mutex{*client, wrong}), LockError);
    EXPECT_THROW((SharedMutex{*client, wrong}), LockError);
    EXPECT_THROW((Semaphore{*client, wrong, 3}), LockError);
  }
}

TEST_P(Names, ManyNamesAreManyLocks) {
  std::vector<std::string> names;
  for (int i = 0; i < 300; ++i) names.push_back(harness().fresh_name());
  expect_distinct(names);
}

TEST_P(Names, ListingTakesAPrefixByteByByte) {
  auto client = open();
  const std::vector<std::string> mine{name() + "%a",   name() + "%b",       name() + "_a",
                                      name() + "\0a"s, name() + "\xFF\xFF", name()};
  std::vector<Lease> leases;
  for (const std::string& each : mine) {
    auto lease = client->try_acquire(each);
    ASSERT_THAT(lease, IsOk());
    leases.push_back(std::move(*lease));
  }
  const auto listed = [&](const std::string& prefix) {
    std::set<std::string> found;
    auto locks = client->list(prefix);
    EXPECT_THAT(locks, IsOk());
    for (const LockInfo& lock : locks.value()) EXPECT_TRUE(found.insert(lock.name).second);
    return found;
  };
  using ::testing::UnorderedElementsAre;
  EXPECT_THAT(listed(name() + "%"), UnorderedElementsAre(mine[0], mine[1]));
  EXPECT_THAT(listed(name() + "_"), UnorderedElementsAre(mine[2]));
  EXPECT_THAT(listed(name() + "\0"s), UnorderedElementsAre(mine[3]));
  EXPECT_THAT(listed(name() + "\xFF"), UnorderedElementsAre(mine[4]));
  EXPECT_THAT(listed(name()), ::testing::UnorderedElementsAreArray(mine));
}

}  // namespace
}  // namespace holdfast::test
