// Stores that cannot be used: a stable exit status, a message with advice, and
// nothing left behind.

#include <unistd.h>

#include <algorithm>

#include "apps/command.h"

namespace holdfast::test {
namespace {

class BadStore : public CommandTest {
 protected:
  // Every way into the store says the same.
  void expect_refusal(const std::string& url, int status, const std::string& message) {
    const auto before = files();
    for (const Words& words : {Words{"ls", "--url", url}, Words{"show", "x", "--url", url},
                               Words{"doctor", "--url", url}, Words{"init", "--url", url},
                               Words{"release", "x", "--force", "--url", url},
                               Words{"run", "x", "--url", url, "--", "touch", file("ran")}}) {
      const auto called = call(words);
      EXPECT_EQ(called.status, status) << words.front() << ": " << called.err;
      EXPECT_EQ(called.err.find("holdfast: "), 0U) << called.err;
      EXPECT_NE(called.err.find(message), std::string::npos) << words.front() << ": " << called.err;
    }
    EXPECT_EQ(files(), before);
  }

  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator{file("")}) {
      names.push_back(entry.path().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }
};

TEST_F(BadStore, UnknownScheme) {
  expect_refusal("oracle://host/db", 64, "sqlite:");
}

TEST_F(BadStore, MalformedUrl) {
  expect_refusal("just words", 64, "");
  expect_refusal("sqlite:", 64, "");
  expect_refusal("sqlite:" + file("x.db") + "?nonsense=1", 64, "nonsense");
  expect_refusal("sqlite:" + file("x.db") + "%zz", 64, "");
}

TEST_F(BadStore, SecretsAreNotShown) {
  for (const Words& words : {Words{"ls", "--url", "oracle://me:hunter2@host/db"},
                             Words{"doctor", "--url", "sqlite://me:hunter2@host:x/db"}}) {
    const auto called = call(words);
    EXPECT_NE(called.status, 0);
    EXPECT_EQ((called.out + called.err).find("hunter2"), std::string::npos) << called.err;
  }
}

TEST_F(BadStore, MissingDirectory) {
  expect_refusal("sqlite:" + file("no/such/dir/locks.db"), 64, "no/such/dir");
}

TEST_F(BadStore, PathIsADirectory) {
  std::filesystem::create_directory(file("dir"));
  expect_refusal("sqlite:" + file("dir"), 64, "dir is not a");
}

TEST_F(BadStore, UnwritablePath) {
  if (geteuid() == 0) {
    // Root may write anywhere but here.
    expect_refusal("sqlite:/proc/locks.db", 69, "/proc");
    return;
  }
  std::filesystem::create_directory(file("dir"));
  std::filesystem::permissions(
      file("dir"), std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  expect_refusal("sqlite:" + file("dir/locks.db"), 69, "dir");
}

TEST_F(BadStore, CorruptFile) {
  std::ofstream{file("locks.db")} << std::string(8192, 'x');
  expect_refusal(url(), 64, "choose another file");
  EXPECT_EQ(contents("locks.db"), std::string(8192, 'x'));
}

TEST_F(BadStore, ForeignDatabase) {
  Process made =
      Process::start({"sqlite3", file("locks.db"),
                      "CREATE TABLE customers (id INTEGER); INSERT INTO customers VALUES (1);"});
  ASSERT_EQ(made.wait(), 0);
  const std::string before = contents("locks.db");
  expect_refusal(url(), 64, "choose another file");
  EXPECT_EQ(contents("locks.db"), before);
}

}  // namespace
}  // namespace holdfast::test
