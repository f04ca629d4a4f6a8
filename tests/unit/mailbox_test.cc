#include "client/mailbox.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "support/eventually.h"

namespace holdfast::client {
namespace {

using namespace std::chrono_literals;
using base::BootClock;

TEST(Mailbox, KeepsWhatCameBeforeTheWait) {
  Mailbox<std::unique_ptr<int>> box;
  box.put(std::make_unique<int>(7));
  EXPECT_EQ(**box.take_until(base::kNever), 7);
}

TEST(Mailbox, TheDeadlineEndsTheWaitAndTheValueComesLater) {
  Mailbox<int> box;
  const auto deadline = BootClock::now() + 5ms;
  EXPECT_EQ(box.take_until(deadline), std::nullopt);
  EXPECT_GE(BootClock::now(), deadline);
  EXPECT_FALSE(box.interrupted());
  EXPECT_EQ(box.take_until(base::Time::min()), std::nullopt);
  box.put(1);
  EXPECT_EQ(box.take(), 1);
}

TEST(Mailbox, AValueWakesWhoWaits) {
  for (const base::Time deadline : {base::kNever, BootClock::now() + test::kPatience}) {
    Mailbox<int> box;
    std::thread putter{[&] { box.put(3); }};
    EXPECT_EQ(box.take_until(deadline), 3);
    putter.join();
  }
}

TEST(Mailbox, AnInterruptEndsTheWaitButNotTheValue) {
  Mailbox<int> box;
  std::thread interrupter{[&] { box.interrupt(); }};
  EXPECT_EQ(box.take_until(base::kNever), std::nullopt);
  interrupter.join();
  EXPECT_TRUE(box.interrupted());
  box.put(5);
  EXPECT_EQ(box.take(), 5);
}

TEST(Mailbox, AValueIsWorthMoreThanAnInterrupt) {
  Mailbox<int> box;
  box.interrupt();
  box.put(5);
  EXPECT_EQ(box.take_until(base::kNever), 5);
}

}  // namespace
}  // namespace holdfast::client
