// The asynchronous twin, from Asio coroutines.
// GCC's own code for a coroutine is what this warns of.
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"
#ifdef __SANITIZE_THREAD__
#define BOOST_ASIO_DISABLE_FENCED_BLOCK  // the sanitizer does not understand fences
#endif

#include <holdfast/asio.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <thread>

#include "conformance/conformance.h"

namespace holdfast::test {
namespace {

namespace asio = boost::asio;

class Async : public Conformance {
 protected:
  // Runs until all coroutines are through; false if they are not in time.
  static bool run(asio::io_context& context) {
    context.run_for(kPatience);
    return context.stopped();
  }
};
HOLDFAST_RUN_ON(Async, harnesses());

TEST_P(Async, ACoroutineAcquiresAndTheResultComesOnItsExecutor) {
  auto client = open();
  asio::io_context context;
  bool done = false;
  const auto main_thread = std::this_thread::get_id();
  asio::co_spawn(
      context,
      [&]() -> asio::awaitable<void> {
        auto lease = co_await client->async_acquire(name(), {}, asio::use_awaitable);
        EXPECT_EQ(std::this_thread::get_id(), main_thread);
        EXPECT_THAT(lease, IsOk());
        if (lease) {
          EXPECT_TRUE(lease->is_alive());
        }
        done = true;
      },
      asio::detached);
  EXPECT_TRUE(run(context));
  EXPECT_TRUE(done);
}

TEST_P(Async, ManyCoroutinesOfOneThreadTakeTurns) {
  constexpr int kCoroutines = 50;
  auto one = open();
  auto other = open();
  asio::io_context context;
  int inside = 0;
  int turns = 0;
  for (int i = 0; i < kCoroutines; ++i) {
    asio::co_spawn(
        context,
        [&, i]() -> asio::awaitable<void> {
          auto lease = co_await (i % 2 == 0 ? one : other)
                           ->async_acquire(name(), {.wait = kPatience}, asio::use_awaitable);
          EXPECT_THAT(lease, IsOk());
          EXPECT_EQ(++inside, 1);
          // Lets others run while we are inside.
          co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
          ++turns;
          --inside;
        },
        asio::detached);
  }
  EXPECT_TRUE(run(context));
  EXPECT_EQ(turns, kCoroutines);
  EXPECT_TRUE(await_nothing_left());
}

TEST_P(Async, WaitingBlocksNeitherTheThreadNorOtherCoroutines) {
  auto one = open();
  auto other = open();
  auto held = one->acquire(name());
  ASSERT_THAT(held, IsOk());
  asio::io_context context;
  std::vector<int> order;
  asio::co_spawn(
      context,
      [&]() -> asio::awaitable<void> {
        auto lease =
            co_await other->async_acquire(name(), {.wait = kPatience}, asio::use_awaitable);
        EXPECT_THAT(lease, IsOk());
        order.push_back(2);
      },
      asio::detached);
  asio::co_spawn(
      context,
      [&]() -> asio::awaitable<void> {
        order.push_back(1);
        held->release_in_background();
        co_return;
      },
      asio::detached);
  EXPECT_TRUE(run(context));
  EXPECT_THAT(order, ::testing::ElementsAre(1, 2));
}

TEST_P(Async, AStopTokenCancelsAndLeavesNothing) {
  auto one = open();
  auto other = open();
  auto held = one->acquire(name());
  ASSERT_THAT(held, IsOk());
  asio::io_context context;
  std::stop_source stop;
  auto result = asio::co_spawn(
      context,
      [&]() -> asio::awaitable<ErrorCode> {
        const AcquireOptions how{.wait = kPatience, .stop = stop.get_token()};
        auto lease = co_await other->async_acquire(name(), how, asio::use_awaitable);
        co_return lease ? ErrorCode{} : lease.error().code;
      },
      asio::use_future);
  auto canceller = in_background([&] {
    EXPECT_TRUE(await_waiters(1));
    stop.request_stop();
  });
  EXPECT_TRUE(run(context));
  EXPECT_EQ(result.get(), ErrorCode::cancelled);
  canceller.get();
  EXPECT_TRUE(await_waiters(0));
  ASSERT_THAT(held->release(), IsOk());
  EXPECT_TRUE(await_nothing_left());
}

TEST_P(Async, ErrorsComeTheSameWay) {
  auto client = open();
  auto held = client->acquire(name());
  ASSERT_THAT(held, IsOk());
  asio::io_context context;
  int outcomes = 0;
  asio::co_spawn(
      context,
      [&]() -> asio::awaitable<void> {
        EXPECT_THAT(co_await client->async_acquire(name(), {.wait = 0s}, asio::use_awaitable),
                    FailsWith(ErrorCode::busy));
        EXPECT_THAT(co_await client->async_acquire(name(), {.wait = 20ms}, asio::use_awaitable),
                    FailsWith(ErrorCode::timed_out));
        EXPECT_THAT(co_await client->async_acquire("", {}, asio::use_awaitable),
                    FailsWith(ErrorCode::invalid_argument));
        ++outcomes;
      },
      asio::detached);
  EXPECT_TRUE(run(context));
  EXPECT_EQ(outcomes, 1);
}

}  // namespace
}  // namespace holdfast::test
