#include "engine/credentials.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

#include "support/temp_dir.h"

namespace holdfast::engine {
namespace {

Result<std::string> password(const std::string& text) {
  const auto url = Url::parse(text);
  Query query{*url};
  return password_for(*url, query);
}

TEST(Credentials, APasswordComesFromTheUrlThenTheFileThenTheEnvironment) {
  const test::TempDir dir;
  const std::string file = dir / "secret";
  std::ofstream{file} << "from file\nmore\n";
  chmod(file.c_str(), 0600);
  setenv("HOLDFAST_PASSWORD", "from environment", 1);
  EXPECT_EQ(password("x://u:from%20url@h/?password_file=" + file), "from url");
  EXPECT_EQ(password("x://u@h/?password_file=" + file), "from file");
  EXPECT_EQ(password("x://u@h/"), "from environment");
  unsetenv("HOLDFAST_PASSWORD");
  EXPECT_EQ(password("x://u@h/"), "");
}

TEST(Credentials, AFileThatOthersMayReadIsRefused) {
  const test::TempDir dir;
  const std::string file = dir / "secret";
  std::ofstream{file} << "s3cret\n";
  chmod(file.c_str(), 0640);
  const auto refused = password("x://u@h/?password_file=" + file);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(refused.error().text.find("s3cret"), std::string::npos);
  EXPECT_FALSE(password("x://u@h/?password_file=" + file + "-missing"));
}

TEST(Credentials, LoopbackIsKnownByItsSpelling) {
  EXPECT_TRUE(is_loopback("localhost"));
  EXPECT_TRUE(is_loopback("127.0.0.1"));
  EXPECT_TRUE(is_loopback("::1"));
  EXPECT_FALSE(is_loopback("127.evil.example"));
  EXPECT_FALSE(is_loopback("10.0.0.1"));
  EXPECT_FALSE(is_loopback("db.example"));
}

}  // namespace
}  // namespace holdfast::engine
