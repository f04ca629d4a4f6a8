#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "engines/sqlite/sqlite_engine.h"
#include "support/engine_driver.h"
#include "support/raw_sqlite.h"
#include "support/temp_dir.h"

namespace holdfast::test {

// A database in a directory of its own, on the test's clock.
class SqliteTest : public ::testing::Test {
 protected:
  std::filesystem::path file() const { return dir_ / "locks.db"; }
  std::string url() const { return "sqlite:" + file().string(); }

  std::unique_ptr<engine::Engine> open(std::uint32_t session = 1) {
    return open_engine(url(), session, [this] { return now_; });
  }
  // On the machine's clock.
  std::unique_ptr<engine::Engine> open_live(std::uint32_t session = 1) const {
    return open_engine(url(), session);
  }
  // As on a machine that was started another time.
  std::unique_ptr<engine::Engine> open_after_boot(const std::string& boot_id);
  // The error that opening gives; fails the test if there is none.
  static Error error_of(const std::string& url);

  TempDir dir_;
  base::Time now_ = at(0s);
};

}  // namespace holdfast::test
