// Who is at the other end, and who we are: TLS, certificates, users.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <holdfast/holdfast.h>

#include <future>
#include <memory>
#include <string>
#include <vector>

#include "support/engine_driver.h"
#include "support/eventually.h"
#include "support/fault_proxy.h"
#include "support/needs.h"
#include "support/process.h"
#include "support/server.h"

namespace holdfast {
namespace {

using namespace test;
using core::Status;
using ::testing::HasSubstr;

class EtcdSecurity : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* program : {"etcd", "etcdctl", "openssl"}) {
      HOLDFAST_SKIP_IF_MISSING(missing_program(program));
    }
  }
  void start(std::vector<std::string> options = {}) {
    server_ = std::make_unique<PrivateServer>("etcd", std::move(options));
  }
  std::string url(const std::string& options = "", const std::string& before = "127.0.0.1") const {
    return "etcd://" + before + ":" + std::to_string(server_->port()) + "/t?timeout=" + timeout_ +
           options;
  }
  std::string file(const std::string& fact) const { return server_->fact(fact); }

  static Result<std::unique_ptr<engine::Engine>> try_open(const std::string& url) {
    return engine::open(*engine::Url::parse(url), {.session = id(1), .party = {}, .now = nullptr});
  }
  static Error error_of(const std::string& url) {
    const auto opened = try_open(url);
    EXPECT_FALSE(opened) << url;
    return opened ? Error{} : opened.error();
  }
  // It goes on trying until the time-out, and says what the last attempt came to.
  static void expect_unavailable(const std::string& url, const std::string& why) {
    Error error;
    EXPECT_TRUE(eventually([&] {
      error = error_of(url);
      return error.text.find(why) != std::string::npos;
    })) << error;
    EXPECT_EQ(error.code, ErrorCode::unavailable);
  }
  static void expect_service(const std::string& url) {
    const auto engine = try_open(url);
    ASSERT_TRUE(engine) << engine.error();
    EXPECT_EQ(submit(**engine, "x", acquire(1)).status, Status::granted);
    EXPECT_EQ(submit(**engine, "x", release(1)).status, Status::released);
  }

  // As the administrator, once there is one.
  void etcdctl(const std::vector<std::string>& words, const std::string& user = "") const {
    std::vector<std::string> all{"env", "ETCDCTL_API=3", "etcdctl",
                                 "--endpoints=http://127.0.0.1:" + std::to_string(server_->port())};
    if (!user.empty()) all.push_back("--user=" + user);
    all.insert(all.end(), words.begin(), words.end());
    Process run = Process::start(all);
    const auto status = run.wait();
    EXPECT_EQ(status, 0) << run.out() << run.err();
  }
  // "app" may use what is below t/, "guest" nothing.
  void ask_for_users() const {
    etcdctl({"user", "add", "root:admin"});
    etcdctl({"user", "add", "app:s3cret"});
    etcdctl({"user", "add", "guest:guest"});
    etcdctl({"user", "grant-role", "root", "root"});
    etcdctl({"role", "add", "locks"});
    etcdctl({"role", "grant-permission", "locks", "readwrite", "--prefix", "t/"});
    etcdctl({"user", "grant-role", "app", "locks"});
    etcdctl({"auth", "enable"});
  }

  std::string timeout_ = "20s";  // a busy machine takes seconds for a login
  std::unique_ptr<PrivateServer> server_;
};

TEST_F(EtcdSecurity, TlsIsVerified) {
  start({"tls=1"});
  expect_service(url("&ca=" + file("ca_crt")));
  expect_service(url("&tls=true&insecure=true"));

  for (const std::string& bad : {std::string{"&tls=true"}, "&ca=" + file("other_crt")}) {
    const Error stranger = error_of(url(bad));
    EXPECT_EQ(stranger.code, ErrorCode::unauthorized) << stranger;
    EXPECT_THAT(stranger.text, HasSubstr("not trusted"));
  }
  timeout_ = "2s";
  expect_unavailable(url(), "write tls=true");
  EXPECT_EQ(error_of(url("&ca=/nowhere")).code, ErrorCode::invalid_argument);
  EXPECT_EQ(error_of(url("&tls=true&cert=/nowhere")).code, ErrorCode::invalid_argument);
}

TEST_F(EtcdSecurity, TheCertificateMustBeForThatHost) {
  start({"tls=DNS:localhost"});
  expect_service(url("&ca=" + file("ca_crt"), "localhost"));
  const Error other = error_of(url("&ca=" + file("ca_crt")));
  EXPECT_EQ(other.code, ErrorCode::unauthorized) << other;
  EXPECT_THAT(other.text, HasSubstr("for another host"));
}

TEST_F(EtcdSecurity, AClientShowsItsCertificate) {
  start({"tls=1", "client_cert=1"});
  const std::string trusting = "&ca=" + file("ca_crt");
  expect_service(url(trusting + "&cert=" + file("client_crt") + "&key=" + file("client_key")));
  const Error nobody = error_of(url(trusting));
  EXPECT_EQ(nobody.code, ErrorCode::unauthorized) << nobody;
  EXPECT_THAT(nobody.text, HasSubstr("certificate of ours"));
  EXPECT_EQ(error_of(url(trusting + "&cert=" + file("client_crt") + "&key=" + file("ca_crt"))).code,
            ErrorCode::invalid_argument);
}

TEST_F(EtcdSecurity, AServerWithoutTlsIsNotMistakenForOneWithIt) {
  start();
  timeout_ = "2s";
  expect_unavailable(url("&tls=true&insecure=true"), "does not speak TLS");
}

// Many bytes both ways, waiters and a broken line: as without TLS.
TEST_F(EtcdSecurity, LocksWorkThroughTlsAndABrokenLine) {
  start({"tls=1"});
  const auto proxy = proxy_to(server_->port());
  const std::string through =
      "etcd://127.0.0.1:" + std::to_string(proxy->port()) + "/t?timeout=2s&ca=" + file("ca_crt");
  auto one = Client::open(through).value();
  auto other = Client::open(through).value();
  std::vector<Lease> many;
  for (int i = 0; i < 300; ++i) {
    many.push_back(one.acquire(std::string(200, 'n') + std::to_string(i)).value());
  }
  EXPECT_EQ(other.list("").value().size(), 300U);
  many.clear();
  auto first = one.acquire("x");
  ASSERT_TRUE(first) << first.error();
  auto waiting = std::async(std::launch::async, [&] { return other.acquire("x"); });
  EXPECT_TRUE(eventually([&] { return one.show("x").value().queue.size() == 1; }));
  proxy->reset_all();
  EXPECT_TRUE(first->release());
  const auto second = waiting.get();
  ASSERT_TRUE(second) << second.error();
  EXPECT_GT(second->token(), first->token());
}

TEST_F(EtcdSecurity, UsersAreAskedForTheirPassword) {
  start();
  ask_for_users();
  expect_service(url("", "app:s3cret@127.0.0.1"));
  for (const char* who : {"app:wrong@127.0.0.1", "nobody:s3cret@127.0.0.1"}) {
    const Error refused = error_of(url("", who));
    EXPECT_EQ(refused.code, ErrorCode::unauthorized) << refused;
    EXPECT_THAT(refused.text, ::testing::Not(HasSubstr("s3cret")));
    EXPECT_THAT(refused.text, ::testing::Not(HasSubstr("wrong")));
  }
  for (const char* who : {"127.0.0.1", "guest:guest@127.0.0.1"}) {
    const auto engine = try_open(url("", who));
    ASSERT_TRUE(engine) << engine.error();
    const auto outcome = submit(**engine, "x", acquire(1));
    ASSERT_TRUE(outcome.error) << who;
    EXPECT_EQ(outcome.error->code, ErrorCode::unauthorized) << *outcome.error;
  }
}

// What travels together is asked of others' locks, too, and each is refused as if it were alone.
TEST_F(EtcdSecurity, RolesBoundWhatTravelsTogether) {
  start();
  ask_for_users();
  for (const char* who : {"guest:guest@127.0.0.1", "127.0.0.1"}) {
    const auto engine = try_open(url("", who));
    ASSERT_TRUE(engine) << engine.error();
    for (int time = 0; time < 2; ++time) {  // at the first they need a lease, one after the other
      for (const auto& outcome : submit(**engine, {{"x", acquire(1)}, {"y", acquire(2)}})) {
        ASSERT_TRUE(outcome.error) << who;
        EXPECT_EQ(outcome.error->code, ErrorCode::unauthorized) << *outcome.error;
      }
    }
  }
  const auto app = open_engine(url("", "app:s3cret@127.0.0.1"), 2);
  for (const auto& outcome : submit(*app, {{"x", acquire(1)}, {"y", acquire(2)}})) {
    EXPECT_EQ(outcome.status, Status::granted);
  }
  for (const auto& outcome : submit(*app, {{"x", release(1)}, {"y", release(2)}})) {
    EXPECT_EQ(outcome.status, Status::released);
  }
}

// A server forgets logins that are not used for a while.
TEST_F(EtcdSecurity, AForgottenLoginIsRepeated) {
  start({"--auth-token-ttl=1"});
  ask_for_users();
  const auto holder = open_engine(url("", "app:s3cret@127.0.0.1"), 1);
  const auto waiter = open_engine(url("", "app:s3cret@127.0.0.1"), 2);
  for (std::uint32_t round = 1; round < 3; ++round) {
    std::this_thread::sleep_for(2500ms);  // nothing says when it was forgotten
    const auto granted = submit(*holder, "x", acquire(round));
    ASSERT_EQ(granted.status, Status::granted) << granted.error->text;
    ASSERT_EQ(submit(*waiter, "x", acquire(100 + round)).status, Status::queued);
    ASSERT_EQ(submit(*holder, "x", release(round)).status, Status::released);
    EXPECT_FALSE(wait_for_ring(*waiter).empty()) << "watches need a login, too";
    ASSERT_EQ(submit(*waiter, "x", release(100 + round)).status, Status::released);
  }
}

// They are enabled while we are connected: the login follows by itself.
TEST_F(EtcdSecurity, UsersMayComeLater) {
  start();
  const auto engine = open_engine(url("", "app:s3cret@127.0.0.1"));
  ASSERT_EQ(submit(*engine, "x", acquire(1)).status, Status::granted);
  ask_for_users();
  EXPECT_EQ(submit(*engine, "x", renew(1)).status, Status::renewed);
  EXPECT_EQ(submit(*engine, "x", release(1)).status, Status::released);
}

TEST(EtcdOptions, AnotherMachineNeedsTlsOrALoudWord) {
  const auto code_of = [](const std::string& text) {
    const auto opened =
        engine::open(*engine::Url::parse(text), {.session = id(1), .party = {}, .now = nullptr});
    return opened ? ErrorCode::busy : opened.error().code;
  };
  EXPECT_EQ(code_of("etcd://etcd.invalid/t?tls=false&timeout=1s"), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of("etcd://etcd.invalid/t?timeout=1s"), ErrorCode::unavailable);
  EXPECT_EQ(code_of("etcd://etcd.invalid/t?tls=false&insecure=true&timeout=1s"),
            ErrorCode::unavailable);
}

}  // namespace
}  // namespace holdfast
