#include "client/callback_thread.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <vector>

namespace holdfast::client {
namespace {

TEST(CallbackThread, RunsInOrderOnOneThreadOfItsOwn) {
  std::vector<int> seen;
  std::vector<std::thread::id> threads;
  {
    CallbackThread callbacks;
    EXPECT_FALSE(callbacks.is_current());
    for (int i = 0; i < 100; ++i) {
      callbacks.post([&, i] {
        seen.push_back(i);
        threads.push_back(std::this_thread::get_id());
        EXPECT_TRUE(callbacks.is_current());
      });
    }
  }  // finishes what was posted
  ASSERT_EQ(seen.size(), 100U);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(seen[static_cast<std::size_t>(i)], i);
    EXPECT_EQ(threads[static_cast<std::size_t>(i)], threads[0]);
  }
  EXPECT_NE(threads[0], std::this_thread::get_id());
}

TEST(CallbackThread, ACallbackMayPostAnother) {
  std::promise<void> second;
  CallbackThread callbacks;
  callbacks.post([&] { callbacks.post([&] { second.set_value(); }); });
  second.get_future().wait();
}

// Whoever the captures belong to may come back into the service when they end.
TEST(CallbackThread, CapturesEndOutsideTheLock) {
  CallbackThread callbacks;
  struct PostsWhenItEnds {
    explicit PostsWhenItEnds(CallbackThread& where, std::promise<void>& what)
        : callbacks{where}, done{what} {}
    ~PostsWhenItEnds() {
      EXPECT_TRUE(callbacks.is_current());
      callbacks.post([&promise = done] { promise.set_value(); });
    }
    CallbackThread& callbacks;
    std::promise<void>& done;
  };
  std::promise<void> done;
  callbacks.post([last = std::make_shared<PostsWhenItEnds>(callbacks, done)] {});
  done.get_future().wait();
}

TEST(CallbackThread, WithoutCallbacksThereIsNoThread) {
  const CallbackThread callbacks;
  EXPECT_FALSE(callbacks.is_current());
}

}  // namespace
}  // namespace holdfast::client
