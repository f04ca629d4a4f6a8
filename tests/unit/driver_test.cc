#include "engine/driver.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "support/eventually.h"

namespace holdfast::engine {
namespace {

using namespace std::chrono_literals;

// Reads one byte from a socket; says on which thread it ended.
class OneByte : public Conversation {
 public:
  OneByte() { socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends_.data()); }
  ~OneByte() override {
    close(ends_[0]);
    close(ends_[1]);
  }

  void answer() { ASSERT_EQ(write(ends_[1], "x", 1), 1); }

  std::optional<Wait> advance(short) override {
    ++advanced;
    if (given_up_ || read(ends_[0], &byte, 1) == 1 || base::BootClock::now() >= until) {
      return std::nullopt;
    }
    return Wait{ends_[0], POLLIN, until};
  }
  void give_up() override { given_up_ = true; }
  void finish() override {
    thread = std::this_thread::get_id();
    if (then) then();
    over = true;
  }

  base::Time until = base::kNever;
  char byte = 0;
  std::atomic<int> advanced = 0;
  std::atomic<bool> over = false;
  std::thread::id thread;
  std::function<void()> then;

 private:
  std::array<int, 2> ends_{};
  bool given_up_ = false;
};

TEST(Driver, ThePatientCallerDrivesItself) {
  Driver driver;
  OneByte talk;
  std::thread server{[&] { talk.answer(); }};
  driver.run(talk, Patience::for_outcomes);
  EXPECT_TRUE(talk.over);
  EXPECT_EQ(talk.thread, std::this_thread::get_id());
  EXPECT_EQ(talk.byte, 'x');
  server.join();
}

TEST(Driver, WithoutPatienceTheDriversThreadFinishes) {
  Driver driver;
  OneByte talk;
  driver.run(talk, Patience::none);
  EXPECT_EQ(talk.advanced, 1);  // it was begun
  EXPECT_FALSE(talk.over);
  talk.answer();
  EXPECT_TRUE(test::eventually([&] { return talk.over.load(); }));
  EXPECT_NE(talk.thread, std::this_thread::get_id());
}

TEST(Driver, PatienceEnds) {
  Driver driver;
  OneByte talk;
  driver.run(talk, Patience{base::BootClock::now() + 20ms});
  EXPECT_FALSE(talk.over);
  talk.answer();
  EXPECT_TRUE(test::eventually([&] { return talk.over.load(); }));
}

TEST(Driver, TimePassesOnEitherThread) {
  Driver driver;
  OneByte mine;
  mine.until = base::BootClock::now() + 20ms;
  driver.run(mine, Patience::for_outcomes);
  EXPECT_TRUE(mine.over);
  OneByte its;
  its.until = base::BootClock::now() + 20ms;
  driver.run(its, Patience::none);
  EXPECT_TRUE(test::eventually([&] { return its.over.load(); }));
}

// What comes next may block, so it says that it waits, though there is nothing to wait for.
class Aside : public Conversation {
 public:
  std::optional<Wait> advance(short) override {
    if (began) return std::nullopt;
    began = true;
    return Wait{.until = base::BootClock::now()};
  }
  void give_up() override {}
  void finish() override {
    thread = std::this_thread::get_id();
    over = true;
  }

  bool began = false;
  std::atomic<bool> over = false;
  std::thread::id thread;
};

TEST(Driver, WhoHasNoTimeIsNotKeptByWhatWaitsForThisMoment) {
  Driver driver;
  Aside hurried;
  driver.run(hurried, Patience::none);
  EXPECT_TRUE(test::eventually([&] { return hurried.over.load(); }));
  EXPECT_NE(hurried.thread, std::this_thread::get_id());
  Aside patient;
  driver.run(patient, Patience::for_outcomes);
  EXPECT_EQ(patient.thread, std::this_thread::get_id());
}

TEST(Driver, GivesUpWhatStillRuns) {
  auto driver = std::make_unique<Driver>();
  OneByte one;
  OneByte two;
  driver->run(one, Patience::none);
  driver->run(two, Patience::none);
  driver = nullptr;
  EXPECT_TRUE(one.over);
  EXPECT_TRUE(two.over);
}

TEST(Driver, FinishMayBeginTheNextOrEndTheDriver) {
  auto driver = std::make_unique<Driver>();
  OneByte first;
  OneByte second;
  OneByte bystander;
  first.then = [&] { driver->run(second, Patience::none); };
  second.then = [&] { driver = nullptr; };
  driver->run(bystander, Patience::none);
  driver->run(first, Patience::none);
  first.answer();
  EXPECT_TRUE(test::eventually([&] { return first.over.load(); }));
  second.answer();
  EXPECT_TRUE(test::eventually([&] { return second.over && bystander.over; }));
}

}  // namespace
}  // namespace holdfast::engine
