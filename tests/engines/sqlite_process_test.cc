// Several processes on one database, some of them killed.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <vector>

#include "base/time.h"
#include "support/child_process.h"
#include "support/eventually.h"
#include "support/sqlite_fixture.h"

namespace holdfast {
namespace {

using namespace test;
using core::Status;
namespace fs = std::filesystem;

class SqliteProcesses : public SqliteTest {
 protected:
  fs::path bells() const { return file().string() + "-bells"; }

  std::size_t sockets() const {
    std::error_code none;
    const fs::directory_iterator all{bells(), none};
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }
};

core::Acquire request(std::uint32_t session, base::Duration ttl) {
  core::Acquire made = acquire(session);
  made.id = core::RequestId::random();
  made.ttl = ttl;
  made.window = ttl * 2 / 3;
  return made;
}

// Takes the lock as a client would, but without renewing: the token, or 0.
std::uint64_t take(engine::Engine& engine, const std::string& name, const core::Acquire& wanted) {
  core::Outcome outcome = submit(engine, name, wanted);
  while (outcome.status == Status::queued) {
    pollfd bell{.fd = engine.doorbell_fd(), .events = POLLIN, .revents = 0};
    poll(&bell, 1, static_cast<int>(wanted.window / 3ms));
    engine.answer_doorbell();
    outcome = submit(engine, name, core::Poll{.id = wanted.id, .heartbeat = true});
  }
  return outcome.status == Status::granted ? outcome.token : 0;
}

TEST_F(SqliteProcesses, ManyMayCreateTheDatabaseAtOnce) {
  Shared<std::atomic<int>> ready;
  std::vector<std::unique_ptr<ChildProcess>> children;
  for (std::uint32_t i = 1; i <= 8; ++i) {
    children.push_back(std::make_unique<ChildProcess>([&, i] {
      ++*ready;
      while (*ready < 8) {
      }
      const auto engine = open_live(i);
      const core::Acquire wanted = request(i, 30s);
      return engine && take(*engine, "x", wanted) != 0 &&
                     submit(*engine, "x", core::Release{wanted.id}).status == Status::released
                 ? 0
                 : 1;
    }));
  }
  for (const auto& child : children) {
    EXPECT_EQ(child->wait(), 0);
  }
}

TEST_F(SqliteProcesses, AReleaseWakesAWaiterInAnotherProcess) {
  Shared<std::atomic<bool>> queued;
  const auto holder = open_live(1);
  const auto before = submit(*holder, "x", acquire(1));
  ChildProcess waiter{[&] {
    const auto engine = open_live(2);
    if (submit(*engine, "x", acquire(2)).status != Status::queued) return 1;
    *queued = true;
    const auto rings = wait_for_ring(*engine);
    if (rings.size() != 1 || rings[0].id != id(2) || rings[0].token <= before.token) return 2;
    const auto granted = submit(*engine, "x", core::Renew{id(2)});
    return granted.status == Status::renewed && granted.token == rings[0].token ? 0 : 3;
  }};
  ASSERT_TRUE(eventually([&] { return queued->load(); }));
  EXPECT_EQ(submit(*holder, "x", release(1)).status, Status::released);
  EXPECT_EQ(waiter.wait(), 0);
}

// Reads, waits and writes: lost updates show overlapping holders.
TEST_F(SqliteProcesses, ParentAndForkedChildExcludeEachOther) {
  constexpr int kRounds = 150;
  Shared<std::atomic<int>> counter;
  const auto parent = open_live(1);
  const auto kept = submit(*parent, "kept", acquire(1));
  ASSERT_EQ(kept.status, Status::granted);
  const auto count = [&](engine::Engine& engine, std::uint32_t session) {
    for (int i = 0; i < kRounds; ++i) {
      const core::Acquire wanted = request(session, 30s);
      if (take(engine, "counter", wanted) == 0) return 1;
      const int value = *counter;
      usleep(50);
      *counter = value + 1;
      if (submit(engine, "counter", core::Release{wanted.id}).status != Status::released) return 2;
    }
    return 0;
  };
  ChildProcess child{[&] {
    const auto own = open_live(2);
    return count(*own, 2);
  }};
  EXPECT_EQ(count(*parent, 1), 0);
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(*counter, 2 * kRounds);
  EXPECT_EQ(submit(*parent, "kept", acquire(1)).token, kept.token);
}

TEST_F(SqliteProcesses, AForkedChildThatEndsTakesNothingAlong) {
  const auto parent = open_live(1);
  submit(*parent, "x", acquire(1));
  ChildProcess child{[&] { return parent->doorbell_fd() >= 0 ? 0 : 1; }};
  EXPECT_EQ(child.wait(), 0);
  ChildProcess careful{[&] {
    const_cast<std::unique_ptr<engine::Engine>&>(parent).reset();
    return 0;
  }};
  EXPECT_EQ(careful.wait(), 0);
  EXPECT_EQ(sockets(), 1U);
  submit(*parent, "x", acquire(2));
  EXPECT_EQ(submit(*parent, "x", release(1)).status, Status::released);
  EXPECT_EQ(RawSqlite{file()}.number("SELECT count(*) FROM sessions"), 1);
}

TEST_F(SqliteProcesses, ADeadProcessIsForgottenOnceItsLeasesEnd) {
  ChildProcess crashed{[&] {
    const auto engine = open_live(2);
    const auto seen = open_live(3);  // never asked for anything: no row
    take(*engine, "x", request(2, 300ms));
    raise(SIGKILL);
    return 0;
  }};
  EXPECT_EQ(crashed.wait(), 128 + SIGKILL);
  const auto survivor = open_live(1);
  EXPECT_EQ(sockets(), 3U);
  const auto is_clean = [&] {
    survivor->tidy();
    return RawSqlite{file()}.number("SELECT count(*) FROM sessions") == 0 &&
           RawSqlite{file()}.number("SELECT count(*) FROM locks") == 0;
  };
  EXPECT_TRUE(eventually(is_clean));
  EXPECT_FALSE(fs::exists(bells() / id(2).hex()));
  // One without a row may be just starting: it goes when it is old.
  EXPECT_TRUE(fs::exists(bells() / id(3).hex()));
  const timespec old{.tv_sec = 1'000'000'000, .tv_nsec = 0};
  const timespec times[2] = {old, old};
  utimensat(AT_FDCWD, (bells() / id(3).hex()).c_str(), times, 0);
  survivor->tidy();
  EXPECT_EQ(sockets(), 1U);
}

// Processes that are killed wherever they happen to be.
TEST_F(SqliteProcesses, KilledAnywhereTheLockPassesOnAndTokensRise) {
  struct State {
    std::atomic<std::uint64_t> last_token{0};
    std::atomic<int> grants{0};
    std::atomic<int> fallen{0};
  };
  Shared<State> state;
  const auto work = [&](std::uint32_t session) {
    const auto engine = open_live(session);
    while (engine) {
      const core::Acquire wanted = request(session, 60ms);
      const std::uint64_t token = take(*engine, "x", wanted);
      if (token == 0) continue;
      // A holder that was slower than its ttl may come late: the fence is for
      // that; here only counts who held it before and after.
      const auto holds = [&] {
        return submit(*engine, "x", core::Renew{wanted.id}).status == Status::renewed;
      };
      if (holds()) {
        if (state->last_token.exchange(token) >= token && holds()) ++state->fallen;
        ++state->grants;
      }
      submit(*engine, "x", core::Release{wanted.id});
      submit(*engine, "other" + std::to_string(token % 7), try_acquire(session));
      if (token % 5 == 0) engine->tidy();
    }
    return 1;
  };
  std::mt19937_64 random{static_cast<std::uint64_t>(getpid())};
  const int rounds = std::getenv("HOLDFAST_QUICK") != nullptr ? 15 : 60;
  std::uint32_t session = 0;
  for (int round = 0; round < rounds; ++round) {
    const int before = state->grants;
    ChildProcess a{[&] { return work(session + 1); }};
    ChildProcess b{[&] { return work(session + 2); }};
    session += 2;
    ASSERT_TRUE(eventually([&] { return state->grants > before + 2; })) << "round " << round;
    usleep(static_cast<useconds_t>(random() % 5000));
    a.signal(SIGKILL);
    b.signal(SIGKILL);
    a.wait();
    b.wait();
  }
  EXPECT_EQ(state->fallen, 0);
  const auto survivor = open_live(9999);
  EXPECT_GT(take(*survivor, "x", request(9999, 1s)), state->last_token);
  RawSqlite raw{file()};
  EXPECT_EQ(raw.text("PRAGMA integrity_check"), "ok");
}

TEST_F(SqliteProcesses, ForgettingRacesWithAcquiring) {
  constexpr int kRounds = 400;
  Shared<std::atomic<bool>> stop;
  ChildProcess tidier{[&] {
    const auto engine = open_live(2);
    while (!*stop) engine->tidy();
    return 0;
  }};
  const auto engine = open_live(1);
  std::uint64_t last = 0;
  for (std::uint32_t i = 0; i < kRounds; ++i) {
    const core::Acquire wanted = request(1, 30s);
    const auto granted = submit(*engine, "x", wanted);
    ASSERT_EQ(granted.status, Status::granted);
    ASSERT_GT(granted.token, last);
    last = granted.token + core::kTokenStride - 1;
    ASSERT_EQ(submit(*engine, "x", core::Renew{wanted.id}).status, Status::renewed);
    ASSERT_EQ(submit(*engine, "x", core::Release{wanted.id}).status, Status::released);
  }
  *stop = true;
  EXPECT_EQ(tidier.wait(), 0);
}

}  // namespace
}  // namespace holdfast
