#include <sqlite3.h>

#include "support/harness.h"
#include "support/temp_dir.h"
#include "support/worker_process.h"

namespace holdfast::test {

namespace {

// Another process holds the file's only write lock. Not this one: opening and
// closing the file here would drop the locks of the engine's own handle.
class WriteLock : public Outage {
 public:
  explicit WriteLock(const std::string& url) : worker_{url} { worker_.expect_ok("block"); }
  ~WriteLock() override { worker_.kill(); }

 private:
  WorkerProcess worker_;
};

class SqliteHarness : public Harness {
 public:
  std::string url() const override { return "sqlite:" + (dir_ / "locks.db").string(); }
  std::string impatient_url(const std::string& timeout) const override {
    return url() + "?busy_timeout=" + timeout;
  }
  std::size_t cache_bytes() const override {
    return static_cast<std::size_t>(sqlite3_memory_used());
  }
  std::unique_ptr<Outage> begin_outage() override { return std::make_unique<WriteLock>(url()); }

 private:
  TempDir dir_;
};

}  // namespace

HarnessEntry sqlite_harness() {
  return {.engine = "sqlite",
          .strategy = "",
          .claims = {.values = true, .upgrade = true, .transfer = true},
          .make = []() -> std::unique_ptr<Harness> { return std::make_unique<SqliteHarness>(); }};
}

}  // namespace holdfast::test
