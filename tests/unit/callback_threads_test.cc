#include "client/callback_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <thread>

namespace holdfast::client {
namespace {

TEST(CallbackThreads, FinishWhatWasPostedOnThreadsOfTheirOwn) {
  std::atomic<int> ran = 0;
  {
    CallbackThreads callbacks;
    EXPECT_FALSE(callbacks.is_current());
    for (int i = 0; i < 100; ++i) {
      callbacks.post([&, caller = std::this_thread::get_id()] {
        EXPECT_NE(std::this_thread::get_id(), caller);
        ++ran;
      });
    }
  }
  EXPECT_EQ(ran, 100);
}

TEST(CallbackThreads, ASlowCallbackDelaysNoOther) {
  std::promise<void> other;
  CallbackThreads callbacks;
  callbacks.post([&] { other.get_future().wait(); });
  callbacks.post([&] { other.set_value(); });
}

TEST(CallbackThreads, ACallbackMayPostAnother) {
  std::promise<void> second;
  CallbackThreads callbacks;
  callbacks.post([&] { callbacks.post([&] { second.set_value(); }); });
  second.get_future().wait();
}

// Whoever the captures belong to may come back into the service when they end.
TEST(CallbackThreads, CapturesEndOutsideTheLock) {
  CallbackThreads callbacks;
  struct PostsWhenItEnds {
    explicit PostsWhenItEnds(CallbackThreads& where, std::promise<void>& what)
        : callbacks{where}, done{what} {}
    ~PostsWhenItEnds() {
      EXPECT_TRUE(callbacks.is_current());
      callbacks.post([&promise = done] { promise.set_value(); });
    }
    CallbackThreads& callbacks;
    std::promise<void>& done;
  };
  std::promise<void> done;
  callbacks.post([last = std::make_shared<PostsWhenItEnds>(callbacks, done)] {});
  done.get_future().wait();
}

TEST(CallbackThreads, WithoutCallbacksThereIsNoThread) {
  const CallbackThreads callbacks;
  EXPECT_FALSE(callbacks.is_current());
}

}  // namespace
}  // namespace holdfast::client
