// Mistakes are answered with a stable code and a text that says what to write
// instead, and leave nothing behind.
#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "conformance/conformance.h"
#include "support/temp_dir.h"

namespace holdfast::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Matcher;

struct Mistake {
  std::string field;   // what the text must name
  std::string advice;  // what the text must offer
  AcquireOptions options;
};

class BadOptions : public Conformance {
 protected:
  static std::string in_words(Duration duration) {
    const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(duration);
    return std::to_string(milliseconds.count()) + " ms";
  }

  void expect_refused(const std::vector<Mistake>& mistakes) {
    auto client = open();
    for (const Mistake& mistake : mistakes) {
      SCOPED_TRACE(mistake.field + ": " + mistake.advice);
      auto refused = client->acquire(name(), mistake.options);
      ASSERT_THAT(refused, FailsWith(ErrorCode::invalid_argument));
      EXPECT_THAT(refused.error().text, AllOf(HasSubstr(mistake.field), HasSubstr(mistake.advice)));
    }
    EXPECT_TRUE(await_nothing_left());
  }
};
class BadPermits : public BadOptions {};
HOLDFAST_RUN_ON(BadOptions, harnesses());
HOLDFAST_RUN_ON(BadPermits, harnesses_with(&Claims::permits));

TEST_P(BadOptions, TimesThatMakeNoSense) {
  const Capabilities engine = open()->capabilities();
  const std::string shortest = in_words(engine.min_ttl);
  const std::string longest = in_words(engine.max_ttl);
  expect_refused({{"ttl", shortest, {.ttl = 0s}},
                  {"ttl", shortest, {.ttl = -1s}},
                  {"ttl", shortest, {.ttl = 1us}},
                  {"ttl", longest, {.ttl = std::chrono::hours{24 * 365}}},
                  {"ttl", longest, {.ttl = Duration::max()}},
                  {"ttl", shortest, {.ttl = Duration::min()}},
                  {"wait", "zero", {.wait = -1s}},
                  {"max_hold", "empty", {.max_hold = 0s}},
                  {"grace", "half", {.ttl = ttl(1s), .grace = ttl(1s)}},
                  {"grace", "zero", {.ttl = ttl(1s), .grace = -1s}},
                  {"health_timeout",
                   "longer than zero",
                   {.health_check = [] { return true; }, .health_timeout = 0s}},
                  {"hand_over", "63", {.hand_over = kMaxHandOver + 1}}});
}

TEST_P(BadOptions, AMutexSaysSoWhenItIsMade) {
  auto client = open();
  try {
    Mutex mutex{*client, name(), {.ttl = 0s}};
    ADD_FAILURE() << "accepted a ttl of zero";
  } catch (const LockError& error) {
    EXPECT_EQ(error.error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(error.code(), make_error_code(ErrorCode::invalid_argument));
    EXPECT_THAT(error.what(), HasSubstr("ttl"));
  }
}

TEST_P(BadPermits, CountsThatMakeNoSense) {
  constexpr Mode kPermits = Mode::permits;
  expect_refused({{"permits", "at least 1", {.mode = kPermits, .permits = 0, .of = 3}},
                  {"permits", "at least 1", {.mode = kPermits, .permits = 1, .of = 0}},
                  {"permits", "only 3", {.mode = kPermits, .permits = 4, .of = 3}},
                  {"of", "1000000", {.mode = kPermits, .permits = 1, .of = kMaxPermits + 1}},
                  {"permits", "Mode::permits", {.permits = 2}},
                  {"of", "Mode::permits", {.of = 2}}});
}

TEST_P(BadPermits, SemaphoresAndResizesToo) {
  auto client = open();
  EXPECT_THROW((Semaphore{*client, name(), 0}), LockError);
  EXPECT_THROW((Semaphore{*client, name(), kMaxPermits + 1}), LockError);
  Semaphore semaphore{*client, name(), 3};
  EXPECT_THAT(semaphore.try_acquire(0), FailsWith(ErrorCode::invalid_argument));
  EXPECT_THAT(semaphore.try_acquire(4), FailsWith(ErrorCode::invalid_argument));

  auto lease = semaphore.acquire();
  ASSERT_THAT(lease, IsOk());
  EXPECT_THAT(client->resize(name(), 0), FailsWith(ErrorCode::invalid_argument));
  EXPECT_THAT(client->resize(name(), kMaxPermits + 1), FailsWith(ErrorCode::invalid_argument));
  EXPECT_EQ(seen().limit, 3U);

  const std::string plain = harness().fresh_name();
  auto held = client->acquire(plain);
  EXPECT_THAT(client->resize(plain, 2), FailsWith(ErrorCode::invalid_argument));
}

void expect_url_refused(const std::string& url, ErrorCode code, const Matcher<std::string>& text) {
  SCOPED_TRACE(url);
  auto refused = Client::open(url);
  ASSERT_THAT(refused, FailsWith(code));
  EXPECT_THAT(refused.error().text, text);
}

TEST(BadUrl, UnknownSchemesAreAnsweredWithTheKnownOnes) {
  const auto names_known = AllOf(HasSubstr("sqlite:"), HasSubstr("memory:"));
  expect_url_refused("sqlit:/tmp/x.db", ErrorCode::invalid_argument, names_known);
  expect_url_refused("http://localhost/", ErrorCode::invalid_argument, names_known);
}

TEST(BadUrl, MalformedOnesAreAnsweredWithAnExample) {
  for (const char* url : {"", ":", "sqlite", "/tmp/x.db", "://"}) {
    expect_url_refused(url, ErrorCode::invalid_argument, HasSubstr("sqlite:"));
  }
  expect_url_refused("sqlite:/tmp/%zz", ErrorCode::invalid_argument, HasSubstr("%25"));
}

TEST(BadUrl, APasswordIsNeverRepeated) {
  for (const char* url : {"nosuch://me:s3cret@host/db", "memory://me:s3cret@host",
                          "sqlite://me:s3cret@host/x", "sqlite:/nowhere/x.db?password=s3cret"}) {
    auto refused = Client::open(url);
    ASSERT_FALSE(refused) << url;
    EXPECT_THAT(refused.error().text, ::testing::Not(HasSubstr("s3cret")));
  }
}

class BadFile : public ::testing::Test {
 protected:
  std::string url() const { return "sqlite:" + path().string(); }
  std::filesystem::path path() const { return dir_ / "locks.db"; }
  void fill(const std::string& bytes) const { std::ofstream{path(), std::ios::binary} << bytes; }
  std::string bytes() const {
    std::ifstream in{path(), std::ios::binary};
    return {std::istreambuf_iterator<char>{in}, {}};
  }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator{dir_.path()}, {}));
  }

  // Opening or, at the latest, the first use fails, and the file is as it was.
  void expect_refused(const Matcher<std::string>& text) {
    const std::string before = bytes();
    auto client = Client::open(url());
    ASSERT_FALSE(client) << "opened what is no store of ours";
    EXPECT_THAT(client.error().code,
                ::testing::AnyOf(ErrorCode::invalid_argument, ErrorCode::unavailable));
    EXPECT_THAT(client.error().text, AllOf(HasSubstr(path().string()), text));
    EXPECT_EQ(bytes(), before);
    EXPECT_EQ(files(), 1U);
  }

  TempDir dir_;
};

TEST_F(BadFile, AnUnwritablePathIsNamed) {
  for (const std::string directory : {"/proc", "/nonexistent/directory", "/dev/null"}) {
    auto client = Client::open("sqlite:" + directory + "/locks.db");
    ASSERT_FALSE(client) << directory;
    EXPECT_THAT(client.error().text, HasSubstr(directory));
    EXPECT_FALSE(std::filesystem::exists(directory + "/locks.db"));
  }
}

TEST_F(BadFile, ADirectoryIsNoFile) {
  auto client = Client::open("sqlite:" + dir_.path().string());
  ASSERT_FALSE(client);
  EXPECT_THAT(client.error().text, HasSubstr(dir_.path().string()));
  EXPECT_EQ(files(), 0U);
}

TEST_F(BadFile, AFileThatIsNoDatabaseStaysAsItIs) {
  fill("Dear diary, today I wrote a lock library. " + std::string(4096, '.'));
  expect_refused(HasSubstr("not a"));
}

TEST_F(BadFile, SomebodyElsesDatabaseStaysAsItIs) {
  sqlite3* handle = nullptr;
  ASSERT_EQ(::sqlite3_open(path().c_str(), &handle), SQLITE_OK);
  ASSERT_EQ(::sqlite3_exec(handle, "CREATE TABLE orders(id)", nullptr, nullptr, nullptr),
            SQLITE_OK);
  ::sqlite3_close(handle);
  expect_refused(HasSubstr("another"));
}

TEST_F(BadFile, ADamagedStoreIsReportedNotTrusted) {
  {
    auto client = Client::open(url());
    ASSERT_THAT(client, IsOk());
    for (int i = 0; i < 200; ++i) {
      ASSERT_THAT(client->acquire("name " + std::to_string(i), {.ttl = 60s}), IsOk());
    }
  }
  std::filesystem::remove(path().string() + "-wal");
  std::filesystem::remove(path().string() + "-shm");
  std::string damaged = bytes();
  ASSERT_GT(damaged.size(), 4096U);
  for (std::size_t i = 100; i < damaged.size(); ++i) damaged[i] = '\x5A';
  fill(damaged);
  auto client = Client::open(url());
  if (!client) {
    EXPECT_THAT(client.error().text, HasSubstr(path().string()));
    return;
  }
  auto lease = client->try_acquire("name 1");
  ASSERT_THAT(lease, FailsWith(ErrorCode::unavailable));
}

}  // namespace
}  // namespace holdfast::test
