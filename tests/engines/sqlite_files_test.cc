// Where a database may be, and what happens to files that are none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "engines/sqlite/sqlite_files.h"
#include "support/child_process.h"
#include "support/needs.h"
#include "support/server.h"
#include "support/sqlite_fixture.h"

namespace holdfast {
namespace {

using namespace test;
using core::Status;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
namespace fs = std::filesystem;

class SqliteFiles : public SqliteTest {
 protected:
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator{dir_.path()}) {
      names.push_back(entry.path().filename());
    }
    return names;
  }
  void write(const std::string& bytes) const { std::ofstream{file()} << bytes; }
  std::string read() const {
    std::ifstream in{file()};
    return {std::istreambuf_iterator<char>{in}, {}};
  }
};

TEST(SqliteOptionsTest, TakeAFileAndKnownOptions) {
  const auto from = [](const char* text) {
    return engines::SqliteOptions::from(*engine::Url::parse(text));
  };
  const auto plain = from("sqlite:/a/b.db");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->path, "/a/b.db");
  EXPECT_EQ(plain->busy_timeout, 5s);
  EXPECT_FALSE(plain->allow_fuse);
  const auto full = from("sqlite:b.db?busy_timeout=250ms&allow_fuse");
  ASSERT_TRUE(full);
  EXPECT_EQ(full->path, "b.db");
  EXPECT_EQ(full->busy_timeout, 250ms);
  EXPECT_TRUE(full->allow_fuse);
  for (const char* text :
       {"sqlite:", "sqlite:/a/", "sqlite://host/a.db", "sqlite://a.db",
        "sqlite::memory:", "sqlite:/a%00b", "sqlite:/a?colour=red", "sqlite:/a?busy_timeout=5",
        "sqlite:/a?busy_timeout=-1s", "sqlite:/a?busy_timeout=99999999999999h",
        "sqlite:/a?allow_fuse=maybe"}) {
    const auto wrong = from(text);
    ASSERT_FALSE(wrong) << text;
    EXPECT_EQ(wrong.error().code, ErrorCode::invalid_argument);
  }
  EXPECT_THAT(from("sqlite:/a?colour=red").error().text, HasSubstr("busy_timeout, allow_fuse"));
}

TEST(SqliteFileSystems, WithoutReliableLocksAreKnown) {
  using engines::unsafe_file_system;
  for (const std::uint64_t type :
       {0x6969UL, 0x517BUL, 0xFF534D42UL, 0xFE534D42UL, 0x5346414FUL, 0x00C36400UL, 0x0BD00BD0UL,
        0x01161970UL, 0x7461636FUL, 0x47504653UL, 0x01021997UL, 0x786F4256UL}) {
    EXPECT_TRUE(unsafe_file_system(type, false)) << type;
    EXPECT_TRUE(unsafe_file_system(type, true)) << type;
  }
  for (const std::uint64_t type :
       {0xEF53UL, 0x58465342UL, 0x9123683EUL, 0x01021994UL, 0x794C7630UL, 0x2FC12FC1UL, 0UL}) {
    EXPECT_FALSE(unsafe_file_system(type, false)) << type;
  }
  EXPECT_TRUE(unsafe_file_system(0x65735546, false));
  EXPECT_FALSE(unsafe_file_system(0x65735546, true));
}

TEST_F(SqliteFiles, FuseIsRefusedUnlessAllowed) {
  HOLDFAST_SKIP_IF_MISSING(missing_program("bindfs"));
  if (access("/dev/fuse", R_OK | W_OK) != 0) {
    GTEST_SKIP() << "needs /dev/fuse";
  }
  const fs::path source = dir_ / "source";
  const fs::path mount = dir_ / "mount";
  fs::create_directory(source);
  fs::create_directory(mount);
  ASSERT_EQ(system(("bindfs " + source.string() + ' ' + mount.string()).c_str()), 0);
  const std::string url = "sqlite:" + (mount / "locks.db").string();
  const Error error = error_of(url);
  EXPECT_EQ(error.code, ErrorCode::unsupported);
  EXPECT_THAT(error.text, HasSubstr("allow_fuse=true"));
  EXPECT_TRUE(fs::is_empty(source));
  {
    const auto allowed = open_engine(url + "?allow_fuse=true");
    ASSERT_TRUE(allowed);
    EXPECT_EQ(submit(*allowed, "x", acquire(1)).status, Status::granted);
  }
  EXPECT_EQ(system(("umount " + mount.string()).c_str()), 0);
}

TEST_F(SqliteFiles, ANewDatabaseIsItsOwnersAlone) {
  const auto engine = open();
  submit(*engine, "x", acquire(1));
  for (const auto& entry : fs::recursive_directory_iterator{dir_.path()}) {
    EXPECT_EQ(entry.status().permissions() & (fs::perms::group_all | fs::perms::others_all),
              fs::perms::none)
        << entry.path();
  }
}

TEST_F(SqliteFiles, WhoeverMayUseTheDatabaseMayRing) {
  write("");
  fs::permissions(file(), fs::perms{0660});
  const auto engine = open();
  const fs::path bells = file().string() + "-bells";
  EXPECT_EQ(fs::status(bells).permissions(), fs::perms{0770});
  EXPECT_EQ(fs::status(bells / id(1).hex()).permissions(), fs::perms{0660});
}

TEST_F(SqliteFiles, BellsThatOthersMayTouchAreNotTrusted) {
  const fs::path bells = file().string() + "-bells";
  fs::create_directory(bells);
  fs::permissions(bells, fs::perms{0777});
  EXPECT_EQ(open()->doorbell_fd(), -1);
  fs::permissions(bells, fs::perms{0700});
  EXPECT_GE(open()->doorbell_fd(), 0);
}

TEST_F(SqliteFiles, NothingButTheDatabaseIsLeftBehind) {
  {
    const auto a = open(1);
    const auto b = open(2);
    submit(*a, "x", acquire(1));
    submit(*b, "x", acquire(2));
    EXPECT_EQ(files().size(), 4U);  // -wal, -shm, -bells
    submit(*b, "x", release(2));
    submit(*a, "x", release(1));
    a->tidy();
    EXPECT_EQ(RawSqlite{file()}.number("SELECT count(*) FROM locks"), 0);
  }
  EXPECT_THAT(files(), UnorderedElementsAre("locks.db"));
  EXPECT_EQ(RawSqlite{file()}.number("SELECT count(*) FROM sessions"), 0);
}

TEST_F(SqliteFiles, WhoeverOnlyLooksIsNotRecorded) {
  const auto engine = open();
  EXPECT_TRUE(engine->list(""));
  EXPECT_EQ(submit(*engine, "x", poll(1)).status, Status::not_held);
  EXPECT_EQ(RawSqlite{file()}.number("SELECT count(*) FROM sessions"), 0);
}

TEST_F(SqliteFiles, LinksAndRelativePathsMeanTheSameStore) {
  const auto direct = open(1);
  submit(*direct, "x", acquire(1));
  fs::create_directory(dir_ / "elsewhere");
  fs::create_symlink(file(), dir_ / "elsewhere" / "link.db");
  const auto linked =
      open_engine("sqlite:" + (dir_ / "elsewhere/link.db").string(), 2, [this] { return now_; });
  EXPECT_EQ(submit(*linked, "x", acquire(2)).status, Status::queued);
  submit(*direct, "x", release(1));
  EXPECT_EQ(wait_for_ring(*linked).size(), 1U);

  const fs::path before = fs::current_path();
  fs::current_path(dir_ / "elsewhere");
  const auto relative = open_engine("sqlite:../locks.db", 3, [this] { return now_; });
  fs::current_path(before);
  EXPECT_EQ(submit(*relative, "x", try_acquire(3)).status, Status::busy);
}

TEST_F(SqliteFiles, PathsLongerThanASocketAddressWork) {
  fs::path deep = dir_.path();
  while (deep.string().size() < 300) {
    deep /= std::string(60, 'd');
  }
  fs::create_directories(deep);
  const std::string url = "sqlite:" + (deep / "locks.db").string();
  const auto a = open_engine(url, 1);
  const auto b = open_engine(url, 2);
  submit(*a, "x", acquire(1));
  submit(*b, "x", acquire(2));
  submit(*a, "x", release(1));
  EXPECT_EQ(wait_for_ring(*b).size(), 1U);

  while (deep.string().size() < 600) {
    deep /= std::string(60, 'd');
  }
  fs::create_directories(deep);
  const Error error = error_of("sqlite:" + (deep / "locks.db").string());
  EXPECT_EQ(error.code, ErrorCode::invalid_argument);
  EXPECT_THAT(error.text, HasSubstr("too long"));
  EXPECT_TRUE(fs::is_empty(deep));
}

TEST_F(SqliteFiles, ForeignFilesAreLeftAsTheyAre) {
  for (const std::string& bytes :
       {std::string{"#!/bin/sh\n"}, std::string(5000, 'x'),
        "SQLite format 3" + std::string{"\0", 1} + std::string(2000, '\xff')}) {
    write(bytes);
    const Error error = error_of(url());
    EXPECT_EQ(error.code, ErrorCode::invalid_argument) << error;
    EXPECT_THAT(error.text, HasSubstr("not a holdfast database"));
    EXPECT_EQ(read(), bytes);
    EXPECT_THAT(files(), UnorderedElementsAre("locks.db"));
  }
}

TEST_F(SqliteFiles, OtherApplicationsDatabasesAreLeftAsTheyAre) {
  for (const char* mode : {"DELETE", "WAL"}) {
    fs::remove(file());
    RawSqlite{file()}.run(std::string{"PRAGMA journal_mode = "} + mode +
                          "; CREATE TABLE precious (x); INSERT INTO precious VALUES (1)");
    const std::string before = read();
    const Error error = error_of(url());
    EXPECT_EQ(error.code, ErrorCode::invalid_argument) << error;
    EXPECT_THAT(error.text, HasSubstr("another application"));
    EXPECT_EQ(read(), before);
    EXPECT_THAT(files(), UnorderedElementsAre("locks.db"));
  }
}

TEST_F(SqliteFiles, AForeignLogIsNotMovedIntoItsDatabase) {
  ChildProcess crashed{[&] {
    RawSqlite database{file()};
    database.run("PRAGMA journal_mode = WAL; CREATE TABLE precious (x)");
    raise(SIGKILL);
    return 0;
  }};
  crashed.wait();
  const std::string before = read();
  EXPECT_EQ(error_of(url()).code, ErrorCode::invalid_argument);
  EXPECT_EQ(read(), before);
  EXPECT_TRUE(fs::exists(file().string() + "-wal"));
}

TEST_F(SqliteFiles, AnotherVersionIsNamed) {
  open();
  RawSqlite{file()}.run("PRAGMA user_version = 7");
  const Error error = error_of(url());
  EXPECT_EQ(error.code, ErrorCode::unsupported);
  EXPECT_THAT(error.text, HasSubstr("version 7"));
}

TEST_F(SqliteFiles, TheInitScriptMakesADatabase) {
  const std::string script = *open_engine("sqlite:" + (dir_ / "other.db").string())->init_script();
  RawSqlite{file()}.run(script);
  const auto engine = open();
  EXPECT_EQ(submit(*engine, "x", acquire(1)).status, Status::granted);
}

TEST_F(SqliteFiles, AnEmptyFileBecomesADatabase) {
  write("");
  const auto engine = open();
  EXPECT_EQ(submit(*engine, "x", acquire(1)).status, Status::granted);
}

TEST_F(SqliteFiles, DamageIsReportedWithWhatToDo) {
  {
    const auto engine = open();
    for (std::uint32_t i = 1; i < 200; ++i) {
      submit(*engine, "lock number " + std::to_string(i), acquire(i));
    }
  }
  const auto size = fs::file_size(file());
  std::fstream out{file(), std::ios::in | std::ios::out | std::ios::binary};
  out.seekp(4096);
  out << std::string(size - 4096, 'z');
  out.close();
  const auto parsed = engine::Url::parse(url());
  const auto engine = engine::open(*parsed, {.session = id(1), .party = {}});
  Error error;
  if (engine) {
    const auto outcome = submit(**engine, "lock number 7", acquire(7));
    ASSERT_EQ(outcome.status, Status::failed);
    error = *outcome.error;
  } else {
    error = engine.error();
  }
  EXPECT_EQ(error.code, ErrorCode::unavailable) << error;
  EXPECT_THAT(error.text, HasSubstr("move the file away"));
  EXPECT_TRUE(error.native);
}

TEST_F(SqliteFiles, ADamagedLockSpoilsOnlyItself) {
  const auto engine = open();
  submit(*engine, {{"good", acquire(1)}, {"bad", acquire(2)}});
  RawSqlite{file()}.run("UPDATE locks SET record = x'0102' WHERE name = CAST('bad' AS BLOB)");
  const auto outcomes = submit(*engine, {{"bad", renew(2)}, {"good", renew(1)}});
  EXPECT_EQ(outcomes[0].status, Status::failed);
  EXPECT_EQ(outcomes[0].error->code, ErrorCode::unavailable);
  EXPECT_EQ(outcomes[1].status, Status::renewed);
  engine->tidy();
  EXPECT_EQ(engine->list("")->size(), 1U);
}

TEST_F(SqliteFiles, BadPlacesAreRefusedAndLeaveNothingBehind) {
  const Error missing = error_of("sqlite:" + (dir_ / "no/such/locks.db").string());
  EXPECT_EQ(missing.code, ErrorCode::invalid_argument);
  EXPECT_THAT(missing.text, HasSubstr("there is no directory"));
  const Error directory = error_of("sqlite:" + dir_.path().string());
  EXPECT_EQ(directory.code, ErrorCode::invalid_argument);
  EXPECT_EQ(error_of("sqlite:/dev/null").code, ErrorCode::invalid_argument);
  EXPECT_EQ(error_of("sqlite:/proc/locks.db").code, ErrorCode::unavailable);
  EXPECT_THAT(files(), IsEmpty());
}

// root may write everywhere: ask as somebody else.
TEST_F(SqliteFiles, WithoutPermissionItSaysSo) {
  open();
  fs::create_directory(dir_ / "closed");
  fs::permissions(dir_ / "closed", fs::perms{0500});
  fs::permissions(file(), fs::perms{0444});
  fs::permissions(dir_.path(), fs::perms{0555});
  ChildProcess stranger{[&] {
    if (geteuid() == 0 && setuid(65534) != 0) {
      return 1;
    }
    const Error readonly = error_of(url());
    EXPECT_TRUE(readonly.code == ErrorCode::unauthorized) << readonly;
    EXPECT_THAT(readonly.text, HasSubstr("permission"));
    const Error no_room = error_of("sqlite:" + (dir_ / "new.db").string());
    EXPECT_EQ(no_room.code, ErrorCode::unauthorized) << no_room;
    const Error closed = error_of("sqlite:" + (dir_ / "closed/new.db").string());
    EXPECT_EQ(closed.code, ErrorCode::unauthorized) << closed;
    return HasFailure() ? 2 : 0;
  }};
  EXPECT_EQ(stranger.wait(), 0);
  fs::permissions(dir_.path(), fs::perms{0700});
  fs::permissions(dir_ / "closed", fs::perms{0700});
}

TEST_F(SqliteFiles, WithoutADoorbellItStillWorks) {
  std::ofstream{file().string() + "-bells"} << "in the way";
  const auto a = open(1);
  EXPECT_EQ(a->doorbell_fd(), -1);
  EXPECT_THAT(a->answer_doorbell(), IsEmpty());
  submit(*a, "x", acquire(1));
  submit(*a, "x", acquire(2));
  submit(*a, "x", release(1));
  EXPECT_EQ(submit(*a, "x", poll(2)).status, Status::granted);
  const auto findings = a->doctor();
  EXPECT_TRUE(std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.topic == "doorbell" && finding.level == Finding::Level::problem;
  }));
}

}  // namespace
}  // namespace holdfast
