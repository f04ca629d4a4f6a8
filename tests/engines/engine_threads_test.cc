// Engines under several threads, as engine.h permits them.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "support/engine_driver.h"
#include "support/temp_dir.h"

namespace holdfast {
namespace {

using namespace test;
using core::Status;

class EngineThreads : public ::testing::TestWithParam<std::string> {
 protected:
  std::string url() const {
    return GetParam() == "sqlite" ? "sqlite:" + (dir_ / "locks.db").string() : "memory:threads";
  }

  // One lane's traffic: what a client's threads send in turn.
  static void work(engine::Engine& engine, std::uint32_t first, const std::atomic<bool>& stop,
                   std::atomic<int>& wrong) {
    std::uint64_t last = 0;
    for (std::uint32_t i = first; !stop; ++i) {
      const auto granted = submit(engine, "mine " + std::to_string(first), acquire(i));
      if (granted.status != Status::granted || granted.token <= last) ++wrong;
      last = granted.token;
      submit(engine, "ours", try_acquire(i));
      submit(engine, {{"ours", release(i)}, {"mine " + std::to_string(first), release(i)}});
    }
  }

  TempDir dir_;
};

TEST_P(EngineThreads, HousekeepingBesideTraffic) {
  const auto a = open_engine(url(), 1);
  const auto b = open_engine(url(), 2);
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::thread first{[&] { work(*a, 1'000'000, stop, wrong); }};
  std::thread second{[&] { work(*b, 2'000'000, stop, wrong); }};
  for (int i = 0; i < 100; ++i) {
    a->tidy();
    a->may_have_changed();
    a->answer_doorbell();
    if (!a->list("") || !b->show("ours")) ++wrong;
  }
  stop = true;
  first.join();
  second.join();
  EXPECT_EQ(wrong, 0);
}

TEST_P(EngineThreads, ForksInTheMiddleOfTraffic) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer's allocator may be locked by another thread when it is forked";
#endif
  const auto engine = open_engine(url(), 1);
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::thread traffic{[&] { work(*engine, 1'000'000, stop, wrong); }};
  for (std::uint32_t i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      const auto own = open_engine(url(), 10 + i);
      const bool works = own && submit(*own, "child's", acquire(10 + i)).status != Status::failed &&
                         submit(*engine, "ours", acquire(10 + i)).status == Status::failed;
      _exit(works ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  stop = true;
  traffic.join();
  EXPECT_EQ(wrong, 0);
}

INSTANTIATE_TEST_SUITE_P(Embedded, EngineThreads, ::testing::Values("memory", "sqlite"),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace holdfast
