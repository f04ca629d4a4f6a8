// Servers that are restarted, full, read-only, or configured otherwise than
// we would.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <holdfast/client.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "support/engine_driver.h"
#include "support/eventually.h"
#include "support/given_time.h"
#include "support/mysql_store.h"
#include "support/needs.h"
#include "support/temp_dir.h"

namespace holdfast {
namespace {

using namespace test;
using core::Outcome;
using core::Status;

class MysqlServer : public ::testing::Test {
 protected:
  void SetUp() override { HOLDFAST_SKIP_IF_MISSING(missing_program("mariadbd")); }
  void start(std::vector<std::string> options = {}) {
    store_ = std::make_unique<MysqlStore>(std::move(options));
  }
  static std::string said(const Outcome& outcome) {
    return outcome.error ? outcome.error->text : "no error";
  }
  // All that is done differently for plain locks, queues, and the rest.
  void try_everything(std::uint32_t first, const std::string& option = "") {
    const auto a = open_engine(store_->url() + option, 1);
    const auto b = open_engine(store_->url() + option, 2);
    const std::string name = "every " + std::to_string(first);
    const auto expect = [&](engine::Engine& engine, const core::Operation& what, Status status) {
      const Outcome outcome = submit(engine, name, what);
      EXPECT_EQ(outcome.status, status) << said(outcome);
      return outcome;
    };
    const auto before = expect(*a, acquire(first), Status::granted);
    EXPECT_LE(before.lease_for, 30s);
    EXPECT_GT(before.lease_for, 25s);
    expect(*b, acquire(first + 1), Status::queued);
    expect(*a, renew(first), Status::renewed);
    expect(*a, release(first), Status::released);
    const auto after = expect(*b, poll(first + 1), Status::granted);
    EXPECT_GT(after.token, before.token);
    expect(*b, release(first + 1), Status::released);
    const auto outcomes = submit(*a, {{"m1", try_acquire(first + 2)},
                                      {"m2", try_acquire(first + 3)},
                                      {"m3", try_acquire(first + 4, kShared)},
                                      {"m4", try_acquire(first + 5, permits(1, 3))}});
    for (const Outcome& outcome : outcomes) {
      EXPECT_EQ(outcome.status, Status::granted) << said(outcome);
    }
    const auto shown = b->show("m4");
    ASSERT_TRUE(shown) << shown.error();
    ASSERT_EQ(shown->holders.size(), 1U);
    EXPECT_GT(shown->holders[0].expires_in, 25s);
    EXPECT_LT(shown->holders[0].held_for, 20s);
    for (const auto& gone : submit(*a, {{"m1", release(first + 2)},
                                        {"m2", release(first + 3)},
                                        {"m3", release(first + 4)},
                                        {"m4", release(first + 5)}})) {
      EXPECT_EQ(gone.status, Status::released) << said(gone);
    }
    a->tidy();
    EXPECT_TRUE(a->list(""));
  }

  std::unique_ptr<MysqlStore> store_;
};

TEST_F(MysqlServer, ItsDefaultsDoNotMatter) {
  start({"--autocommit=0", "--transaction-isolation=REPEATABLE-READ", "--default-time-zone=+05:30",
         "--sql-mode=ANSI,NO_BACKSLASH_ESCAPES,ONLY_FULL_GROUP_BY,TRADITIONAL,PIPES_AS_CONCAT",
         "--character-set-server=latin1", "--lower-case-table-names=1", "--wait-timeout=1",
         "--innodb-rollback-on-timeout=1", "--completion-type=1"});
  try_everything(1);
  try_everything(51, "&returning=false");  // transactions, as MySQL needs them
  store_->root().ask("SET GLOBAL sql_mode=''");
  store_->root().ask("SET GLOBAL time_zone='-11:00'");
  store_->root().ask("SET GLOBAL TRANSACTION ISOLATION LEVEL SERIALIZABLE");
  try_everything(101);
  // A dialect that MariaDB alone has.
  store_->root().ask(store_->is_mariadb() ? "SET GLOBAL sql_mode='ORACLE'"
                                          : "SET GLOBAL sql_mode='ANSI'");
  try_everything(201);

  // Idle for longer than the server allows: nobody notices.
  const auto engine = open_engine(store_->url());
  ASSERT_EQ(submit(*engine, "idle", acquire(301)).status, Status::granted);
  std::this_thread::sleep_for(1500ms);
  const Outcome renewed = submit(*engine, "idle", renew(301));
  EXPECT_EQ(renewed.status, Status::renewed) << said(renewed);
}

TEST_F(MysqlServer, AKillKeepsTheGrantAndItsToken) {
  start();
  const auto engine = open_engine(store_->url() + "&timeout=2s");
  const auto lasting = [](std::uint32_t number) {
    core::Acquire made = acquire(number);
    made.ttl = made.window = 1h;  // however long the server takes to come back
    return made;
  };
  const Outcome before = submit(*engine, "x", lasting(1));
  ASSERT_EQ(before.status, Status::granted) << said(before);
  ASSERT_EQ(submit(*engine, "x", lasting(2)).status, Status::queued);
  store_->server().kill();
  const Outcome down = submit(*engine, "y", acquire(3));
  ASSERT_TRUE(down.error);
  EXPECT_EQ(down.error->code, ErrorCode::unavailable) << down.error->text;
  store_->server().start();
  store_->forget_root();
  Outcome after;
  EXPECT_TRUE(eventually([&] {
    after = submit(*engine, "x", lasting(1));
    return after.status == Status::granted;
  })) << said(after);
  EXPECT_EQ(after.token, before.token);
  EXPECT_EQ(submit(*engine, "x", release(1)).status, Status::released);
  const Outcome next = submit(*engine, "x", poll(2));
  EXPECT_EQ(next.status, Status::granted);
  EXPECT_GT(next.token, before.token);
}

TEST_F(MysqlServer, ReadOnlyIsSaidInPlainWords) {
  start();
  const auto engine = open_engine(store_->url() + "&timeout=2s");
  ASSERT_TRUE(engine->init());
  ASSERT_EQ(submit(*engine, "x", acquire(1)).status, Status::granted);
  store_->root().ask("SET GLOBAL read_only=1");
  const auto asked = [&] {
    return std::stoull(store_->root().ask("SHOW GLOBAL STATUS LIKE 'Questions'").front()[1]);
  };
  const auto before = asked();
  const Outcome outcome = submit(*engine, "y", acquire(2));
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->code, ErrorCode::unavailable);
  EXPECT_THAT(outcome.error->text, ::testing::HasSubstr("read-only"));
  EXPECT_LT(asked() - before, 60U) << "it tried again in a hurry";
  store_->root().ask("SET GLOBAL read_only=0");
  EXPECT_EQ(submit(*engine, "x", renew(1)).status, Status::renewed);
}

// All connections are taken by others: those who hold go on holding.
TEST_F(MysqlServer, AFullServerEndsNoLease) {
  start({"--max-connections=12"});
  given_time([&](int scale) {
    auto client = Client::open(store_->url());
    ASSERT_TRUE(client) << client.error();
    std::vector<Lease> leases;
    for (int i = 0; i < 50; ++i) {
      auto lease = client->acquire("lock " + std::to_string(i), {.ttl = scale * 2s});
      ASSERT_TRUE(lease) << lease.error();
      leases.push_back(*std::move(lease));
    }
    store_->root();  // has a place of its own
    std::vector<std::unique_ptr<RawMysql>> others;
    EXPECT_ANY_THROW(while (others.size() < 100) {
      others.push_back(std::make_unique<RawMysql>(store_->port_text(), "app"));
    });
    ASSERT_LT(others.size(), 13U);
    EXPECT_TRUE(throughout(scale * 5s, [&] {
      return std::all_of(leases.begin(), leases.end(),
                         [](const Lease& lease) { return lease.is_alive(); });
    }));
    for (Lease& lease : leases) {
      const auto released = lease.release();
      EXPECT_TRUE(released) << released.error();
    }
  });
}

// --- TLS

// An authority, and a server's certificate that it signed.
void make_certificates(const std::filesystem::path& dir) {
  const std::string commands =
      "cd '" + dir.string() +
      "' && exec >openssl.log 2>&1 && "
      "for ca in ca other; do openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 "
      "-nodes -days 2 -subj /CN=$ca "
      "-keyout $ca.key -out $ca.pem; done && "
      "openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=localhost "
      "-keyout server.key -out server.csr "
      "&& printf 'subjectAltName=DNS:localhost,IP:127.0.0.1' >ext && "
      "openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 "
      "-extfile ext -out server.pem && chmod -R a+rX . && chmod a+r server.key";
  ASSERT_EQ(std::system(commands.c_str()), 0);  // NOLINT(cert-env33-c,concurrency-mt-unsafe)
}

TEST_F(MysqlServer, TlsIsVerified) {
  HOLDFAST_SKIP_IF_MISSING(missing_program("openssl"));
  const TempDir dir;
  make_certificates(dir.path());
  start({"--ssl-ca=" + (dir / "ca.pem").string(), "--ssl-cert=" + (dir / "server.pem").string(),
         "--ssl-key=" + (dir / "server.key").string(), "--require-secure-transport=1"});
  const std::string url = "mysql://app@localhost:" + store_->port_text() + "/holdfast?prefix=tls_";
  const auto outcome_of = [](const std::string& with) {
    return submit(*open_engine(with), "x", acquire(1));
  };
  const Outcome good = outcome_of(url + "&tls=true&ca=" + (dir / "ca.pem").string());
  EXPECT_EQ(good.status, Status::granted) << said(good);
  for (const std::string& bad : {url + "&tls=true&ca=" + (dir / "other.pem").string(),
                                 url + "&tls=true", url + "&tls=false"}) {
    const Outcome refused = outcome_of(bad + "&timeout=300ms");
    ASSERT_TRUE(refused.error) << bad;
    EXPECT_NE(refused.error->code, ErrorCode::outcome_unknown) << refused.error->text;
  }
  const Outcome unverified = outcome_of(url + "&tls=true&insecure=true");
  EXPECT_EQ(unverified.status, Status::granted) << said(unverified);
}

}  // namespace
}  // namespace holdfast
