#include "core/lock_record_codec.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "support/commands.h"

namespace holdfast::core {
namespace {

using namespace test;

LockRecord busy_mutex() {
  LockRecord record;
  std::vector<Wake> wakes;
  for (std::uint32_t i = 1; i <= 4; ++i) {
    record.apply(acquire(i), {.now = at(std::chrono::seconds{i}), .token_floor = 77}, wakes);
  }
  record.apply(Revoke{}, {.now = at(5s), .token_floor = 77}, wakes);
  return record;
}

LockRecord shrunken_semaphore() {
  LockRecord record;
  std::vector<Wake> wakes;
  const LockRecord::Context context{.now = at(0s), .token_floor = 5};
  record.apply(acquire(1, permits(7, 9)), context, wakes);
  record.apply(acquire(2, permits(2, 9)), context, wakes);
  record.apply(acquire(3, permits(2, 9)), context, wakes);
  record.apply(Resize{.limit = 3}, context, wakes);
  return record;
}

std::string encoded(const LockRecord& record) {
  std::string bytes = "left over from before";
  encode(record, bytes);
  return bytes;
}

TEST(LockRecordCodec, RoundTrip) {
  for (const LockRecord& record : {LockRecord{}, busy_mutex(), shrunken_semaphore()}) {
    const auto back = decode(encoded(record));
    ASSERT_TRUE(back) << back.error();
    EXPECT_EQ(*back, record);
  }
}

TEST(LockRecordCodec, RefusesEveryCutAndEveryExcess) {
  const std::string whole = encoded(busy_mutex());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(decode(whole.substr(0, size))) << size;
  }
  EXPECT_FALSE(decode(whole + '\0'));
}

TEST(LockRecordCodec, NamesAnotherVersion) {
  std::string bytes = encoded(busy_mutex());
  bytes[0] = 2;
  const auto result = decode(bytes);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::unavailable);
  EXPECT_NE(result.error().text.find("version (2)"), std::string::npos);
}

// Whatever the bytes are: refused, or a record that can be worked with and
// that encodes to the very same bytes.
TEST(LockRecordCodec, GarbageIsRefusedOrHarmless) {
  std::mt19937_64 random{20240501};
  const std::vector<std::string> seeds{encoded(busy_mutex()), encoded(shrunken_semaphore())};
  int accepted = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = seeds[random() % seeds.size()];
    for (auto flips = random() % 4; flips-- > 0;) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    auto record = decode(bytes);
    if (!record) {
      continue;
    }
    ++accepted;
    EXPECT_EQ(encoded(*record), bytes);
    std::vector<Wake> wakes;
    record->apply(heartbeat(2), {.now = at(6s), .token_floor = 77}, wakes);
    record->apply(acquire(99), {.now = at(7s), .token_floor = 77}, wakes);
    EXPECT_TRUE(decode(encoded(*record)));
  }
  EXPECT_GT(accepted, 0);
}

}  // namespace
}  // namespace holdfast::core
