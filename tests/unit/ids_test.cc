#include "base/ids.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>
#include <thread>
#include <vector>

namespace holdfast::base {
namespace {

TEST(Ids, HexIsTwoDigitsAByte) {
  Id id;
  id.bytes.front() = 0x0f;
  id.bytes.back() = 0xa0;
  EXPECT_EQ(id.hex(), "0f0000000000000000000000000000a0");
}

TEST(Ids, RandomIdsDifferBetweenThreads) {
  constexpr std::size_t kEach = 1000;
  std::vector<std::vector<Id>> drawn(4);
  std::vector<std::thread> threads;
  for (auto& mine : drawn) {
    threads.emplace_back([&mine] {
      for (std::size_t i = 0; i < kEach; ++i) {
        mine.push_back(Id::random());
      }
    });
  }
  std::set<Id> all;
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    threads[i].join();
    all.insert(drawn[i].begin(), drawn[i].end());
  }
  EXPECT_EQ(all.size(), drawn.size() * kEach);
}

// The supply of random bytes is copied by fork(); the copy must not be used.
TEST(Ids, AForkedChildDrawsOtherIdsThanItsParent) {
  Id::random();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const Id drawn = Id::random();
    const auto size = static_cast<ssize_t>(drawn.bytes.size());
    _exit(write(ends[1], drawn.bytes.data(), drawn.bytes.size()) == size ? 0 : 1);
  }
  Id theirs;
  close(ends[1]);
  ASSERT_EQ(read(ends[0], theirs.bytes.data(), theirs.bytes.size()),
            static_cast<ssize_t>(theirs.bytes.size()));
  close(ends[0]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_NE(theirs, Id::random());
}

}  // namespace
}  // namespace holdfast::base
