#include <memory>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "support/harness.h"
#include "support/raw_mysql.h"
#include "support/server.h"

namespace holdfast::test {

namespace {

// The server refuses writes of those who are not its administrators.
class ReadOnly : public Outage {
 public:
  explicit ReadOnly(const std::string& port) : server_{port} {
    server_.ask("SET GLOBAL read_only=1");
  }
  ~ReadOnly() override { server_.ask("SET GLOBAL read_only=0"); }

 private:
  RawMysql server_;
};

class MysqlHarness : public Harness {
 public:
  explicit MysqlHarness(std::string strategy) : strategy_{std::move(strategy)} {
    if (needs_own_server()) {
      own_ = std::make_unique<PrivateServer>("mariadb");
    }
    port_ = own_ ? std::to_string(own_->port()) : shared_server_port("mariadb");
    prefix_ = "t_" + base::Id::random().hex().substr(0, 16) + "_";
  }
  ~MysqlHarness() override {
    if (!own_) {
      RawMysql server{port_};
      const auto tables = server.ask("SHOW TABLES LIKE '" + prefix_ + "%'");
      for (const auto& row : tables) {
        server.ask("DROP TABLE `" + row.front() + "`");
      }
    }
  }

  std::string url() const override {
    const std::string url = "mysql://app@127.0.0.1:" + port_ + "/holdfast?prefix=" + prefix_;
    // Each classic has a table of its own, and calls it by another name.
    return strategy_ == "lease" || strategy_ == "advisory"
               ? url + "&strategy=" + strategy_
               : url + "&strategy=" + strategy_ + "&table=" + prefix_ + "classic";
  }
  std::string impatient_url(const std::string& timeout) const override {
    return url() + "&timeout=" + timeout;
  }
  std::unique_ptr<Outage> begin_outage() override { return std::make_unique<ReadOnly>(port_); }

 private:
  const std::string strategy_;
  std::unique_ptr<PrivateServer> own_;
  std::string port_;
  std::string prefix_;
};

}  // namespace

namespace {

// What all classics with a lease have in common.
constexpr Claims kClassic{
    .token = false, .fair = false, .shared = false, .permits = false, .event = false};

template <typename Make>
HarnessEntry classic(std::string_view strategy, Make make, const Claims& claims = kClassic) {
  return {.engine = "mysql", .strategy = strategy, .claims = claims, .make = make, .missing = [] {
            return missing_program("mariadbd");
          }};
}

}  // namespace

HarnessEntry mysql_shedlock_harness() {
  return classic("shedlock", []() -> std::unique_ptr<Harness> {
    return std::make_unique<MysqlHarness>("shedlock");
  });
}

HarnessEntry mysql_insert_harness() {
  Claims claims = kClassic;
  claims.token = true;
  return classic(
      "insert",
      []() -> std::unique_ptr<Harness> { return std::make_unique<MysqlHarness>("insert"); },
      claims);
}

HarnessEntry mysql_timestamp_harness() {
  return classic("timestamp", []() -> std::unique_ptr<Harness> {
    return std::make_unique<MysqlHarness>("timestamp");
  });
}

HarnessEntry mysql_slots_harness() {
  return classic("slots", []() -> std::unique_ptr<Harness> {
    return std::make_unique<MysqlHarness>("slots");
  });
}

HarnessEntry mysql_status_harness() {
  return classic("status", []() -> std::unique_ptr<Harness> {
    return std::make_unique<MysqlHarness>("status");
  });
}

namespace {

// The session is the lease: each lock has a connection.
class MysqlSessionHarness : public MysqlHarness {
 public:
  using MysqlHarness::MysqlHarness;

  std::string url() const override {
    return MysqlHarness::url() + "&max_sessions=" + std::to_string(kSessions);
  }
  std::size_t most_at_once() const override { return kSessions; }

 private:
  static constexpr std::size_t kSessions = 50;
};

template <typename Make>
HarnessEntry by_session(std::string_view strategy, Make make) {
  Claims claims = kClassic;
  claims.event = true;
  claims.lease = false;
  claims.survives = false;
  claims.outage = false;
  return classic(strategy, make, claims);
}

}  // namespace

HarnessEntry mysql_row_harness() {
  return by_session("row", []() -> std::unique_ptr<Harness> {
    return std::make_unique<MysqlSessionHarness>("row");
  });
}

HarnessEntry mysql_upsert_harness() {
  return by_session("upsert", []() -> std::unique_ptr<Harness> {
    return std::make_unique<MysqlSessionHarness>("upsert");
  });
}

HarnessEntry mysql_advisory_harness() {
  return by_session("advisory", []() -> std::unique_ptr<Harness> {
    return std::make_unique<MysqlSessionHarness>("advisory");
  });
}

HarnessEntry mysql_lease_harness() {
  return {
      .engine = "mysql",
      .strategy = "lease",
      .claims = {.values = true, .upgrade = true, .transfer = true},
      .make = []() -> std::unique_ptr<Harness> { return std::make_unique<MysqlHarness>("lease"); },
      .missing = [] { return missing_program("mariadbd"); }};
}

}  // namespace holdfast::test
