#include "support/harness.h"
#include "support/postgres_store.h"

namespace holdfast::test {
namespace {

// Somebody's transaction locks the table; one can still look.
class TableLock : public Outage {
 public:
  explicit TableLock(const PostgresStore& store) : sql_{store.conninfo()} {
    sql_.run("BEGIN");
    sql_.run("LOCK TABLE " + store.schema() + ".locks IN EXCLUSIVE MODE");
  }

 private:
  RawPostgres sql_;
};

class PostgresHarness : public Harness {
 public:
  std::string url() const override { return store_.url(); }
  std::string impatient_url() const override { return store_.url("timeout=100ms"); }
  std::unique_ptr<Outage> begin_outage() override { return std::make_unique<TableLock>(store_); }

 private:
  PostgresStore store_;
};

}  // namespace

HarnessEntry postgres_lease_harness() {
  return {.engine = "postgres",
          .strategy = "lease",
          .claims = {},
          .make = []() -> std::unique_ptr<Harness> { return std::make_unique<PostgresHarness>(); },
          .missing = missing_postgres};
}

}  // namespace holdfast::test
