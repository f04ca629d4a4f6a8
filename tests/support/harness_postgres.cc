#include "support/harness.h"
#include "support/postgres_store.h"
#include "support/server.h"

namespace holdfast::test {
namespace {

// Somebody's transaction locks the table; one can still look.
class TableLock : public Outage {
 public:
  TableLock(const PostgresStore& store, const std::string& table) : sql_{store.conninfo()} {
    sql_.run("BEGIN");
    sql_.run("LOCK TABLE " + store.schema() + "." + table + " IN EXCLUSIVE MODE");
  }

 private:
  RawPostgres sql_;
};

class PostgresHarness : public Harness {
 public:
  PostgresHarness(const std::string& strategy, std::string table)
      : table_{std::move(table)}, store_{shared_server_port("postgres"), strategy} {}

  std::string url() const override { return store_.url(); }
  std::string impatient_url(const std::string& timeout) const override {
    return store_.url("timeout=" + timeout);
  }
  std::unique_ptr<Outage> begin_outage() override {
    return std::make_unique<TableLock>(store_, table_);
  }

 private:
  const std::string table_;
  PostgresStore store_;
};

}  // namespace

namespace {

// The session is the lease: each lock has a connection.
class PostgresSessionHarness : public Harness {
 public:
  explicit PostgresSessionHarness(const std::string& strategy)
      : store_{shared_server_port("postgres"), strategy} {}

  std::string url() const override {
    return store_.url("max_sessions=" + std::to_string(kSessions));
  }
  std::size_t most_at_once() const override { return kSessions; }

 private:
  static constexpr std::size_t kSessions = 50;
  PostgresStore store_;
};

constexpr Claims kBySession{.token = false,
                            .fair = false,
                            .shared = false,
                            .permits = false,
                            .lease = false,
                            .survives = false,
                            .outage = false};

}  // namespace

HarnessEntry postgres_row_harness() {
  return {.engine = "postgres",
          .strategy = "row",
          .claims = kBySession,
          .make = []() -> std::unique_ptr<Harness> {
            return std::make_unique<PostgresSessionHarness>("row");
          },
          .missing = missing_postgres};
}

HarnessEntry postgres_advisory_harness() {
  Claims claims = kBySession;
  claims.shared = true;
  return {.engine = "postgres",
          .strategy = "advisory",
          .claims = claims,
          .make = []() -> std::unique_ptr<Harness> {
            return std::make_unique<PostgresSessionHarness>("advisory");
          },
          .missing = missing_postgres};
}

HarnessEntry postgres_lease_harness() {
  return {.engine = "postgres",
          .strategy = "lease",
          .claims = {.values = true, .upgrade = true, .transfer = true},
          .make = []() -> std::unique_ptr<Harness> {
            return std::make_unique<PostgresHarness>("lease", "locks");
          },
          .missing = missing_postgres};
}

HarnessEntry postgres_shedlock_harness() {
  return {
      .engine = "postgres",
      .strategy = "shedlock",
      .claims = {.token = false, .fair = false, .shared = false, .permits = false, .event = false},
      .make = []() -> std::unique_ptr<Harness> {
        return std::make_unique<PostgresHarness>("shedlock", "shedlock");
      },
      .missing = missing_postgres};
}

}  // namespace holdfast::test
