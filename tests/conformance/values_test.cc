// Values that are changed by comparing versions.
#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "conformance/conformance.h"
#include "support/fault_proxy.h"

namespace holdfast::test {
namespace {

using namespace std::string_literals;

class Values : public Conformance {
 protected:
  void SetUp() override {
    Conformance::SetUp();
    if (!IsSkipped()) bystander();  // memory: lives as long as somebody has it open
  }

  static int number(const std::optional<std::string>& value) {
    return value ? std::stoi(*value) : 0;
  }
  static std::optional<std::string> plus_one(const std::optional<std::string>& value) {
    return std::to_string(number(value) + 1);
  }

  // Runs `work(client, thread)` on that many threads, which share two clients.
  template <typename Work>
  void on_threads(int count, Work work) {
    const auto one = open();
    const auto other = open();
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) {
      threads.emplace_back([&, i] { work(i % 2 == 0 ? *one : *other, i); });
    }
    for (std::thread& thread : threads) thread.join();
  }

  std::string read(const std::string& of) {
    auto found = bystander().versioned(of).read();
    EXPECT_THAT(found, IsOk());
    return found && *found ? (*found)->value : "nothing";
  }
};
HOLDFAST_RUN_ON(Values, harnesses_with(&Claims::values));

// On the engines that are reached by TCP, over a line that the test may break.
class ValuesOnABadLine : public Conformance {
 protected:
  std::unique_ptr<Client> open_through(FaultProxy& proxy) {
    std::string url = harness().url();
    const auto [from, to] = address(url);
    url.replace(from, to - from, std::to_string(proxy.port()));
    auto client = Client::open(url);
    if (!client) throw std::runtime_error{client.error().text};
    return std::make_unique<Client>(std::move(*client));
  }
  std::unique_ptr<FaultProxy> line() {
    const std::string url = harness().url();
    const auto [from, to] = address(url);
    return proxy_to(static_cast<std::uint16_t>(std::stoi(url.substr(from, to - from))));
  }
  // As these bytes travel to the store.
  std::string sent(const std::string& bytes) const {
    if (GetParam().engine != "mysql") return bytes;
    std::string hex;
    for (const char c : bytes) {
      constexpr std::string_view kDigits = "0123456789abcdef";
      const auto byte = static_cast<unsigned char>(c);
      hex += {kDigits[byte >> 4U], kDigits[byte & 15U]};
    }
    return hex;
  }

 private:
  // Where the port stands in the URL.
  static std::pair<std::size_t, std::size_t> address(const std::string& url) {
    const std::string host = "127.0.0.1:";
    const std::size_t from = url.find(host) + host.size();
    return {from, url.find_first_not_of("0123456789", from)};
  }
};
std::vector<HarnessEntry> harnesses_by_tcp() {
  auto found = harnesses_with(&Claims::values, &Claims::processes);
  std::erase_if(found, [](const HarnessEntry& entry) { return entry.engine == "sqlite"; });
  return found;
}
HOLDFAST_RUN_ON(ValuesOnABadLine, harnesses_by_tcp());

TEST_P(ValuesOnABadLine, ALostAnswerIsFoundOut) {
  const auto proxy = line();
  const auto client = open_through(*proxy);
  const auto value = client->versioned(name());
  for (const std::string& bytes : {"first-"s + name(), "second-"s + name()}) {
    const auto before = value.read();
    ASSERT_THAT(before, IsOk());
    proxy->swallow_reply({.pattern = sent(bytes), .then = Swallow::Then::cut});
    const auto written =
        *before ? value.compare_and_set(bytes, (*before)->version) : value.create(bytes);
    ASSERT_THAT(written, IsOk());
    EXPECT_TRUE(written->stored);
    proxy->stop_swallowing();
    const auto after = value.read();
    ASSERT_THAT(after, IsOk());
    ASSERT_TRUE(*after);
    EXPECT_EQ((*after)->value, bytes);
    EXPECT_EQ((*after)->version, written->version);
  }
  EXPECT_EQ(proxy->swallowed(), 2U);
}

class NoValues : public Conformance {};
HOLDFAST_RUN_ON(NoValues, harnesses_without(&Claims::values));

TEST_P(NoValues, AreSaidToBeUnsupported) {
  const auto client = open();
  const auto value = client->versioned(name());
  const auto refused = value.read();
  ASSERT_THAT(refused, FailsWith(ErrorCode::unsupported));
  EXPECT_THAT(refused.error().text, ::testing::HasSubstr(std::string{GetParam().engine}));
  EXPECT_THAT(value.create("x"), FailsWith(ErrorCode::unsupported));
  EXPECT_THAT(value.update([](const auto&) { return "x"; }), FailsWith(ErrorCode::unsupported));
}

TEST_P(Values, AreNotThereBeforeTheyAreCreated) {
  const auto client = open();
  const auto value = client->versioned(name());
  const auto nothing = value.read();
  ASSERT_THAT(nothing, IsOk());
  EXPECT_FALSE(*nothing);
  const auto refused = value.compare_and_set("x", 7);
  ASSERT_THAT(refused, IsOk());
  EXPECT_FALSE(refused->stored);
  EXPECT_EQ(refused->version, 0U);
  EXPECT_EQ(read(name()), "nothing");
}

TEST_P(Values, AreCreatedOnce) {
  const auto client = open();
  const auto first = client->versioned(name()).create("one");
  ASSERT_THAT(first, IsOk());
  ASSERT_TRUE(first->stored);
  EXPECT_GT(first->version, 0U);
  const auto second = open()->versioned(name()).create("two");
  ASSERT_THAT(second, IsOk());
  EXPECT_FALSE(second->stored);
  EXPECT_EQ(second->version, first->version);
  EXPECT_EQ(read(name()), "one");
}

TEST_P(Values, ChangeOnlyFromTheLatestVersion) {
  const auto client = open();
  const auto value = client->versioned(name());
  const auto first = value.create("one");
  ASSERT_THAT(first, IsOk());
  const auto second = value.compare_and_set("two", first->version);
  ASSERT_THAT(second, IsOk());
  ASSERT_TRUE(second->stored);
  EXPECT_GT(second->version, first->version);
  const auto late = value.compare_and_set("late", first->version);
  ASSERT_THAT(late, IsOk());
  EXPECT_FALSE(late->stored);
  EXPECT_EQ(late->version, second->version);
  const auto found = value.read();
  ASSERT_THAT(found, IsOk());
  ASSERT_TRUE(*found);
  EXPECT_EQ((*found)->value, "two");
  EXPECT_EQ((*found)->version, second->version);
}

TEST_P(Values, NeverHaveAVersionTwice) {
  const auto client = open();
  const auto value = client->versioned(name());
  std::uint64_t last = 0;
  for (int i = 0; i < 4; ++i) {
    const auto made = value.create("same");
    ASSERT_THAT(made, IsOk());
    ASSERT_TRUE(made->stored);
    EXPECT_GT(made->version, last);
    last = made->version;
    if (i % 2 == 0) {
      const auto changed = value.compare_and_set("same", last);
      ASSERT_THAT(changed, IsOk());
      EXPECT_GT(changed->version, last);
      last = changed->version;
    }
    const auto erased = value.erase(last);
    ASSERT_THAT(erased, IsOk());
    EXPECT_TRUE(erased->stored);
    EXPECT_EQ(read(name()), "nothing");
  }
}

TEST_P(Values, AreErasedOnlyAtTheLatestVersion) {
  const auto client = open();
  const auto value = client->versioned(name());
  const auto first = value.create("one");
  ASSERT_THAT(first, IsOk());
  const auto second = value.compare_and_set("two", first->version);
  ASSERT_THAT(second, IsOk());
  const auto late = value.erase(first->version);
  ASSERT_THAT(late, IsOk());
  EXPECT_FALSE(late->stored);
  ASSERT_TRUE(value.erase(second->version)->stored);
  const auto again = value.erase(second->version);
  ASSERT_THAT(again, IsOk());
  EXPECT_FALSE(again->stored);
  const auto stale = value.compare_and_set("stale", second->version);
  ASSERT_THAT(stale, IsOk());
  EXPECT_FALSE(stale->stored);
  EXPECT_EQ(read(name()), "nothing");
}

TEST_P(Values, AreAnyBytes) {
  const auto client = open();
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all.push_back(static_cast<char>(byte));
  std::string longest;
  while (longest.size() < kMaxValueBytes) longest += all;
  longest.resize(kMaxValueBytes);
  for (const std::string& bytes : {""s, "\0"s, "'; --"s, "NULL"s, all, longest}) {
    const std::string where = harness().fresh_name();
    const auto made = client->versioned(where).create(bytes);
    ASSERT_THAT(made, IsOk());
    EXPECT_EQ(read(where), bytes);
    const auto changed = client->versioned(where).compare_and_set(bytes + "", made->version);
    ASSERT_THAT(changed, IsOk());
    EXPECT_TRUE(changed->stored);
  }
}

TEST_P(Values, HaveTheNamesOfLocksAndDoNotMeetThem) {
  const auto client = open();
  auto lease = client->try_acquire(name());
  ASSERT_THAT(lease, IsOk());
  const std::vector<std::string> names{name(),          name() + "/",    name() + "\0"s,
                                       name() + "%2F",  name() + "'",    name() + "\xFF",
                                       name() + "\\",   name() + "{a}",  name() + " ",
                                       name() + "/a/b", name() + "\xC3", name() + "A"};
  for (const std::string& each : names) {
    const auto made = client->versioned(each).create(each);
    ASSERT_THAT(made, IsOk()) << ::testing::PrintToString(each);
    EXPECT_TRUE(made->stored) << ::testing::PrintToString(each);
  }
  for (const std::string& each : names) EXPECT_EQ(read(each), each);
  EXPECT_THAT(lease->release(), IsOk());
  EXPECT_EQ(read(name()), name());
}

TEST_P(Values, BadInputIsNamed) {
  const auto client = open();
  const auto text_of = [](const auto& refused) {
    EXPECT_THAT(refused, FailsWith(ErrorCode::invalid_argument));
    return refused ? std::string{} : refused.error().text;
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(text_of(client->versioned("").read()), HasSubstr("name"));
  EXPECT_THAT(text_of(client->versioned(std::string(256, 'x')).read()), HasSubstr("255"));
  EXPECT_THAT(text_of(client->versioned("holdfast:x").create("")), HasSubstr("reserved"));
  const auto value = client->versioned(name());
  EXPECT_THAT(text_of(value.create(std::string(kMaxValueBytes + 1, 'x'))), HasSubstr("65536"));
  EXPECT_THAT(text_of(value.compare_and_set("x", 0)), HasSubstr("expected"));
  EXPECT_THAT(text_of(value.erase(0)), HasSubstr("expected"));
  EXPECT_THAT(text_of(value.update(nullptr)), HasSubstr("change"));
  EXPECT_EQ(read(name()), "nothing");
}

TEST_P(Values, AnUpdateMayLeaveThingsAsTheyAre) {
  const auto client = open();
  const auto value = client->versioned(name());
  const auto none = value.update([](const auto&) { return std::nullopt; });
  ASSERT_THAT(none, IsOk());
  EXPECT_EQ(none->end, UpdateEnd::unchanged);
  EXPECT_FALSE(none->value);
  const auto made = value.update(plus_one);
  ASSERT_THAT(made, IsOk());
  EXPECT_EQ(made->end, UpdateEnd::stored);
  EXPECT_EQ(made->value, "1");
  const auto kept = value.update([](const auto&) { return std::nullopt; });
  ASSERT_THAT(kept, IsOk());
  EXPECT_EQ(kept->end, UpdateEnd::unchanged);
  EXPECT_EQ(kept->value, "1");
  EXPECT_EQ(kept->version, made->version);
}

TEST_P(Values, AnUpdateGivesUpAfterItsRetries) {
  const auto client = open();
  const auto other = open();
  int calls = 0;
  const auto lost = client->versioned(name()).update(
      [&](const auto&) {
        ++calls;  // somebody is always faster
        EXPECT_THAT(other->versioned(name()).update(plus_one), IsOk());
        return "mine";
      },
      {.retries = 3});
  ASSERT_THAT(lost, IsOk());
  EXPECT_EQ(lost->end, UpdateEnd::conflict);
  EXPECT_EQ(lost->conflicts, 4U);
  EXPECT_EQ(calls, 4);
  EXPECT_EQ(read(name()), "4");
}

TEST_P(Values, AnUpdateCanBeStopped) {
  const auto client = open();
  std::stop_source stop;
  const auto stopped = client->versioned(name()).update(
      [&](const auto& value) {
        stop.request_stop();
        EXPECT_THAT(open()->versioned(name()).update(plus_one), IsOk());
        return plus_one(value);
      },
      {.stop = stop.get_token()});
  EXPECT_THAT(stopped, FailsWith(ErrorCode::cancelled));
  EXPECT_EQ(read(name()), "1");
}

// The history of all writes must be one chain: each stands on the version that
// it expected, no two on the same, and nothing is missing.
TEST_P(Values, ConcurrentUpdatesAreAllCountedInOneOrder) {
  constexpr int kThreads = 8;
  constexpr int kTimes = 12;
  std::mutex mutex;
  std::map<std::uint64_t, std::uint64_t> follows;  // version expected -> version written
  on_threads(kThreads, [&](Client& client, int) {
    const auto value = client.versioned(name());
    for (int i = 0; i < kTimes; ++i) {
      while (true) {
        const auto found = value.read();
        ASSERT_THAT(found, IsOk());
        const auto next = std::to_string(*found ? std::stoi((*found)->value) + 1 : 1);
        const std::uint64_t expected = *found ? (*found)->version : 0;
        const auto written =
            expected == 0 ? value.create(next) : value.compare_and_set(next, expected);
        ASSERT_THAT(written, IsOk());
        if (!written->stored) continue;
        const std::lock_guard lock{mutex};
        EXPECT_TRUE(follows.emplace(expected, written->version).second);
        break;
      }
    }
  });
  EXPECT_EQ(read(name()), std::to_string(kThreads * kTimes));
  std::uint64_t at = 0;
  std::size_t length = 0;
  for (auto step = follows.find(at); step != follows.end(); step = follows.find(at), ++length) {
    EXPECT_GT(step->second, at);
    at = step->second;
  }
  EXPECT_EQ(length, follows.size());
}

TEST_P(Values, UpdatesByManyThreadsLoseNothing) {
  constexpr int kThreads = 8;
  constexpr int kTimes = 8;
  on_threads(kThreads, [&](Client& client, int) {
    for (int i = 0; i < kTimes; ++i) {
      const auto done = client.versioned(name()).update(plus_one, {.retries = 10'000});
      ASSERT_THAT(done, IsOk());
      ASSERT_EQ(done->end, UpdateEnd::stored);
    }
  });
  EXPECT_EQ(read(name()), std::to_string(kThreads * kTimes));
}

TEST_P(Values, StockIsNeverSoldTwiceToThirtyTwoBuyers) {
  ASSERT_TRUE(open()->versioned(name()).create("10")->stored);
  std::atomic<int> sold = 0;
  on_threads(32, [&](Client& client, int) {
    const auto done = client.versioned(name()).update(
        [](const auto& stock) -> std::optional<std::string> {
          const int left = number(stock);
          EXPECT_GE(left, 0);
          return left > 0 ? std::optional{std::to_string(left - 1)} : std::nullopt;
        },
        {.retries = 10'000});
    ASSERT_THAT(done, IsOk());
    if (done->end == UpdateEnd::stored) ++sold;
  });
  EXPECT_EQ(sold, 10);
  EXPECT_EQ(read(name()), "0");
}

TEST_P(Values, SegmentsOfIdsDoNotOverlap) {
  std::mutex mutex;
  std::set<int> firsts;
  on_threads(8, [&](Client& client, int) {
    for (int i = 0; i < 4; ++i) {
      int first = 0;
      const auto taken = client.versioned(name()).update(
          [&](const auto& next) {
            first = next ? std::stoi(*next) : 1;
            return std::to_string(first + 1000);
          },
          {.retries = 10'000});
      ASSERT_THAT(taken, IsOk());
      const std::lock_guard lock{mutex};
      EXPECT_TRUE(firsts.insert(first).second);
    }
  });
  EXPECT_EQ(firsts.size(), 32U);
  EXPECT_EQ(*firsts.rbegin(), 31'001);
}

TEST_P(Values, OutliveTheirClientAndTellWhenTheyWereWritten) {
  auto keeper = open();  // memory: goes with its last client
  ASSERT_TRUE(open()->versioned(name()).create("one")->stored);
  const auto found = keeper->versioned(name()).read();
  ASSERT_THAT(found, IsOk());
  ASSERT_TRUE(*found);
  EXPECT_EQ((*found)->value, "one");
  ASSERT_TRUE(keeper->versioned(name()).compare_and_set("two", (*found)->version)->stored);
  const auto later = keeper->versioned(name()).read();
  ASSERT_THAT(later, IsOk());
  EXPECT_GE((*later)->written, (*found)->written);
  EXPECT_GT((*found)->written.time_since_epoch(), std::chrono::hours{24 * 365 * 50});
}

}  // namespace
}  // namespace holdfast::test
