// What survives the end of processes, of the machine, and of the disk's room.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>

#include "engines/sqlite/sqlite_tables.h"
#include "support/child_process.h"
#include "support/sqlite_fixture.h"

namespace {
std::atomic<int> syncs{0};
}

// In place of the C library's, also for SQLite: counts.
extern "C" int fsync(int fd) {
  ++syncs;
  return static_cast<int>(syscall(SYS_fsync, fd));
}
extern "C" int fdatasync(int fd) {
  ++syncs;
  return static_cast<int>(syscall(SYS_fdatasync, fd));
}

namespace holdfast {
namespace {

using namespace test;
using core::Status;
using ::testing::HasSubstr;

using SqliteDurability = SqliteTest;

TEST_F(SqliteDurability, GrantsNeedNoSync) {
  const auto engine = open();
  submit(*engine, "x", acquire(1));
  submit(*engine, "x", release(1));
  const int before = syncs;
  for (std::uint32_t i = 2; i < 52; ++i) {
    now_ += 1s;
    submit(*engine, "x", acquire(i));
    submit(*engine, "x", release(i));
  }
  EXPECT_EQ(syncs, before);
}

TEST_F(SqliteDurability, TokensNeverPassWhatIsOnTheDisk) {
  const auto engine = open();
  const int before = syncs;
  std::uint64_t last = 0;
  for (std::uint32_t i = 1; i <= 10; ++i) {
    now_ += 40min;
    const auto granted = submit(*engine, "x", acquire(i));
    ASSERT_EQ(granted.status, Status::granted);
    EXPECT_GT(granted.token, last);
    last = granted.token + core::kTokenStride - 1;
    EXPECT_LT(last, static_cast<std::uint64_t>(RawSqlite{file()}.number(
                        "SELECT value FROM meta WHERE key = 'token_ceiling'")));
    submit(*engine, "x", release(i));
  }
  const int used = syncs - before;
  EXPECT_GE(used, 5);   // six hours and a half, an hour's worth at a time
  EXPECT_LE(used, 10);  // each by one sync
}

TEST_F(SqliteDurability, ASecondEngineUsesTheFirstOnesBlock) {
  const auto a = open(1);
  const auto b = open(2);
  now_ += 2h;
  submit(*a, "x", acquire(1));
  const int before = syncs;
  EXPECT_EQ(submit(*b, "y", acquire(2)).status, Status::granted);
  EXPECT_EQ(syncs, before);
}

TEST_F(SqliteDurability, TheMachinesRestartFreesLocksAndKeepsTokensRising) {
  auto engine = open_after_boot("monday");
  const auto held = submit(*engine, "x", acquire(1));
  submit(*engine, "y", acquire(2));
  engine = nullptr;
  engine = open_after_boot("monday");
  EXPECT_EQ(submit(*engine, "x", try_acquire(3)).status, Status::busy);
  engine = nullptr;

  now_ = base::Time{3s};  // the clock starts anew
  engine = open_after_boot("tuesday");
  EXPECT_TRUE(engine->list("")->empty());
  EXPECT_EQ(submit(*engine, "x", renew(1)).status, Status::not_held);
  const auto granted = submit(*engine, "x", try_acquire(3));
  ASSERT_EQ(granted.status, Status::granted);
  EXPECT_GE(granted.token, held.token + engines::kTokenBlock - 1'000'000);
  const auto other = submit(*engine, "z", try_acquire(4));
  EXPECT_GT(other.token, held.token);
}

// The file as a power cut may leave it: nothing after the last sync.
TEST_F(SqliteDurability, LostCommitsDoNotLowerTokens) {
  auto engine = open_after_boot("monday");
  const std::filesystem::path copy = dir_ / "copy.db";
  const auto copy_from = [](const std::filesystem::path& from, const std::filesystem::path& to) {
    for (const char* suffix : {"", "-wal"}) {
      std::filesystem::copy_file(from.string() + suffix, to.string() + suffix,
                                 std::filesystem::copy_options::overwrite_existing);
    }
  };
  now_ += 90min;
  submit(*engine, "a", acquire(1));
  copy_from(file(), copy);  // synced, as the tests above show
  std::uint64_t highest = 0;
  for (std::uint32_t i = 2; i < 100; ++i) {
    now_ += 10s;
    highest = std::max(highest, submit(*engine, "b", acquire(i)).token);
    submit(*engine, "b", release(i));
  }
  engine = nullptr;
  std::filesystem::remove(file().string() + "-shm");
  copy_from(copy, file());
  now_ = base::Time{1s};
  engine = open_after_boot("tuesday");
  EXPECT_GT(submit(*engine, "b", acquire(200)).token, highest + core::kTokenStride - 1);
}

TEST_F(SqliteDurability, ABusyDatabaseIsUnavailableAndNothingIsApplied) {
  const auto engine = open_engine(url() + "?busy_timeout=50ms", 1, [this] { return now_; });
  submit(*engine, "x", acquire(1));
  {
    RawSqlite other{file()};
    other.run("BEGIN IMMEDIATE");
    const auto refused = submit(*engine, "x", release(1));
    ASSERT_EQ(refused.status, Status::failed);
    EXPECT_EQ(refused.error->code, ErrorCode::unavailable);
    EXPECT_THAT(refused.error->text, HasSubstr("busy_timeout"));
    EXPECT_EQ(refused.error->native, 5);
    // Readers do not wait for writers.
    EXPECT_EQ(submit(*engine, "x", poll(1)).status, Status::granted);
    EXPECT_EQ(engine->list("")->size(), 1U);
    other.run("ROLLBACK");
  }
  EXPECT_EQ(submit(*engine, "x", poll(1)).status, Status::granted);
  EXPECT_EQ(submit(*engine, "x", release(1)).status, Status::released);
}

TEST_F(SqliteDurability, ADeletedDatabaseIsReplacedAndOldGrantsAreGone) {
  const auto engine = open();
  const auto before = submit(*engine, "x", acquire(1));
  for (const char* suffix : {"", "-wal", "-shm"}) {
    std::filesystem::remove(file().string() + suffix);
  }
  EXPECT_EQ(submit(*engine, "x", renew(1)).status, Status::not_held);
  now_ += 1s;
  const auto after = submit(*engine, "x", acquire(2));
  EXPECT_EQ(after.status, Status::granted);
  EXPECT_GT(after.token, before.token);
  const auto newcomer = open(2);
  EXPECT_EQ(submit(*newcomer, "x", try_acquire(3)).status, Status::busy);
}

TEST_F(SqliteDurability, AClockCenturiesAheadDoesNotUseUpTheTokens) {
  now_ = base::Time{std::chrono::hours{24 * 365 * 145}};
  const auto engine = open();
  std::uint64_t last = 0;
  for (std::uint32_t i = 1; i < 10; ++i) {
    const auto granted = submit(*engine, "x", acquire(i));
    ASSERT_EQ(granted.status, Status::granted);
    EXPECT_GT(granted.token, last);
    last = granted.token;
    submit(*engine, "x", release(i));
    engine->tidy();
  }
}

// A file system of its own for a child, gone with it.
int on_small_disk(const std::filesystem::path& place, const std::function<int()>& body) {
  if (unshare(CLONE_NEWNS) != 0 ||
      mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount("tmpfs", place.c_str(), "tmpfs", 0, "size=256k") != 0) {
    return 77;
  }
  return body();
}

TEST_F(SqliteDurability, AFullDiskGrantsNothing) {
  ChildProcess child{[&] {
    return on_small_disk(dir_.path(), [&] {
      const auto engine = open();
      EXPECT_EQ(submit(*engine, "before", acquire(1)).status, Status::granted);
      const std::filesystem::path filler = dir_ / "filler";
      {
        std::ofstream out{filler};
        const std::string page(4096, 'x');
        while (out << page << std::flush) {
        }
      }
      std::vector<core::Command> batch;
      for (std::uint32_t i = 0; i < 400; ++i) {
        batch.push_back({"lock number " + std::to_string(i), acquire(100 + i)});
      }
      const auto outcomes = submit(*engine, batch);
      for (const core::Outcome& outcome : outcomes) {
        EXPECT_EQ(outcome.status, Status::failed);
        EXPECT_TRUE(outcome.error && outcome.error->code == ErrorCode::unavailable)
            << *outcome.error;
        EXPECT_THAT(outcome.error->text, HasSubstr("disk is full"));
      }
      EXPECT_EQ(engine->list("")->size(), 1U);  // can be read all the same
      std::filesystem::remove(filler);
      batch.resize(50);
      for (const core::Outcome& outcome : submit(*engine, batch)) {
        EXPECT_EQ(outcome.status, Status::granted);
      }
      EXPECT_EQ(submit(*engine, "before", renew(1)).status, Status::renewed);
      return HasFailure() ? 1 : 0;
    });
  }};
  const int status = child.wait();
  if (status == 77) {
    GTEST_SKIP() << "needs the right to mount a small disk (run as root)";
  }
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace holdfast
