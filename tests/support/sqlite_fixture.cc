#include "support/sqlite_fixture.h"

namespace holdfast::test {

std::unique_ptr<engine::Engine> SqliteTest::open_after_boot(const std::string& boot_id) {
  engines::SqliteOptions options;
  options.path = file();
  options.boot_id = boot_id;
  auto opened = engines::SqliteEngine::open(
      options, {.session = id(1), .party = {}, .now = [this] { return now_; }});
  EXPECT_TRUE(opened) << opened.error();
  return opened ? *std::move(opened) : nullptr;
}

Error SqliteTest::error_of(const std::string& url) {
  const auto parsed = engine::Url::parse(url);
  EXPECT_TRUE(parsed);
  auto opened = engine::open(*parsed, {.session = id(1), .party = {}});
  EXPECT_FALSE(opened) << url;
  return opened ? Error{} : opened.error();
}

}  // namespace holdfast::test
