// After all is released, everything is back where it was.
#include <malloc.h>

#include <filesystem>
#include <iterator>
#include <latch>
#include <vector>

#include "conformance/conformance.h"

namespace holdfast::test {
namespace {

std::size_t entries(const char* directory) {
  const std::filesystem::directory_iterator all{directory};
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}
std::size_t open_files() {
  return entries("/proc/self/fd");
}
std::size_t threads() {
  return entries("/proc/self/task");
}

// Once nobody is at it any more: an earlier test's may still be being closed.
std::size_t settled(std::size_t (*count)()) {
  std::size_t found = 0;
  EXPECT_TRUE(eventually([&] {
    found = count();
    return throughout(100ms, [&] { return count() == found; });
  }));
  return found;
}

class Leaks : public Conformance {
 protected:
  // Some of everything: holders, local and remote waiters, time-outs, cancels.
  void bustle() {
    auto one = open();
    auto other = open();
    std::vector<std::future<void>> work;
    for (int i = 0; i < 6; ++i) {
      work.push_back(in_background([&, i] {
        for (int turn = 0; turn < 10; ++turn) {
          std::stop_source stop;
          if (i == 0) stop.request_stop();
          const Duration wait = i == 1 ? 1ms : kPatience;
          auto lease =
              (i % 2 == 0 ? one : other)->acquire(name(), {.wait = wait, .stop = stop.get_token()});
          if (lease && turn % 2 == 0) std::ignore = lease->release();
        }
      }));
    }
    for (auto& each : work) each.get();
    EXPECT_THAT(one->flush(), IsOk());
    EXPECT_THAT(other->flush(), IsOk());
  }
};
class LeaksOfMany : public Leaks {};
HOLDFAST_RUN_ON(Leaks, harnesses());
HOLDFAST_RUN_ON(LeaksOfMany, harnesses_with(&Claims::survives));

TEST_P(Leaks, NoDescriptorsAndNoThreadsStayBehind) {
  in_background([] {}).get();  // a sanitizer has a thread of its own from then on
  const std::size_t files_before = settled(open_files);
  const std::size_t threads_before = settled(threads);
  for (int round = 0; round < 3; ++round) bustle();
  EXPECT_TRUE(eventually([&] { return open_files() == files_before; }))
      << open_files() << " open files instead of " << files_before;
  EXPECT_TRUE(eventually([&] { return threads() == threads_before; }))
      << threads() << " threads instead of " << threads_before;
}

TEST_P(Leaks, NoNamesStayBehind) {
  bustle();
  EXPECT_TRUE(await_nothing_left());
}

TEST_P(LeaksOfMany, AClientHasFewDescriptorsAndThreadsHoweverManyLocksAndWaiters) {
  auto one = open();
  auto other = open();
  ASSERT_THAT(one->acquire(name()), IsOk());
  ASSERT_THAT(one->flush(), IsOk());
  const std::size_t files_before = open_files();
  const std::size_t threads_before = threads();
  std::vector<Lease> held;
  std::latch served{100};
  for (int i = 0; i < 100; ++i) {
    const std::string each = harness().fresh_name();
    auto lease = one->acquire(each);
    ASSERT_THAT(lease, IsOk());
    held.push_back(std::move(*lease));
    other->acquire_then(each, {.wait = kPatience}, [&](Result<Lease> result) {
      EXPECT_THAT(result, IsOk());
      served.count_down();
    });
  }
  EXPECT_LE(open_files(), files_before + 8);
  EXPECT_LE(threads(), threads_before + 8);
  held.clear();
  EXPECT_TRUE(eventually([&] { return served.try_wait(); }));
}

TEST_P(Leaks, NoMemoryStaysBehindForNamesThatAreForgotten) {
  auto client = open();
  const auto use_many_names = [&] {
    for (int i = 0; i < 1500; ++i) {
      auto lease = client->acquire(harness().fresh_name(), {.ttl = ttl(1s)});
      ASSERT_THAT(lease, IsOk());
      lease->release_in_background();
    }
    ASSERT_THAT(client->flush(), IsOk());
  };
  const auto in_use = [&] { return ::mallinfo2().uordblks - harness().cache_bytes(); };
  use_many_names();
  const auto before = in_use();
  use_many_names();
  const auto after = in_use();
  EXPECT_LT(after, before + 64 * 1500) << "more than 64 bytes a name";
}

}  // namespace
}  // namespace holdfast::test
