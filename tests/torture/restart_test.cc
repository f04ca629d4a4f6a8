// Stores that are killed and started again under torture: those that keep what
// they confirmed keep every promise; one that forgets is found out.

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "support/needs.h"
#include "support/process.h"
#include "support/server.h"
#include "support/temp_dir.h"

namespace holdfast::test {
namespace {

namespace bj = boost::json;
using namespace std::chrono_literals;

class TortureRestart : public testing::Test {
 protected:
  void need(const char* program) { HOLDFAST_SKIP_IF_MISSING(missing_program(program)); }

  // The properties that are violated while the server is killed `times` times.
  // Leases are long: they would outlast each restart if the server let them.
  std::set<std::string> found(PrivateServer& server, const std::string& url, int times) {
    Process torture = Process::start(
        {HOLDFAST_COMMAND, "torture", "--url", url, "--json", "--faults", "none", "--ttl", "5s",
         "--seconds", std::to_string(times + 3), "--timeline", (dir_ / "timeline.html").string()});
    for (int i = 0; i < times && torture.is_running(); ++i) {
      std::this_thread::sleep_for(1s);  // work for the locks, not a wait for anything
      server.kill();
      server.start();
    }
    const auto status = torture.wait(240s);
    EXPECT_TRUE(status == 0 || status == 1) << torture.out() << torture.err();
    if (status != 1) return {};
    std::set<std::string> properties;
    const bj::value report = bj::parse(torture.out());
    for (const bj::value& violation : report.at("violations").as_array()) {
      properties.emplace(violation.at("property").as_string());
      text_ += std::string{violation.at("events").as_string()};
    }
    return properties;
  }

  TempDir dir_;
  std::string text_;
};

TEST_F(TortureRestart, ARedisThatKeepsItsDataKeepsThePromisesLongRun) {
  need("redis-server");
  PrivateServer redis{"redis", {"durable=1"}};
  const auto violated = found(redis, "redis://127.0.0.1:" + std::to_string(redis.port()), 3);
  EXPECT_TRUE(violated.empty()) << text_;
}

TEST_F(TortureRestart, ARedisThatForgetsIsFoundOutLongRun) {
  need("redis-server");
  PrivateServer redis{"redis"};
  std::set<std::string> violated;
  for (int attempt = 0; attempt < 8 && violated.empty(); ++attempt) {
    violated = found(redis, "redis://127.0.0.1:" + std::to_string(redis.port()), 3);
  }
  EXPECT_TRUE(violated.contains("S6") || violated.contains("S2")) << text_;
}

TEST_F(TortureRestart, AMariadbThatIsKilledKeepsThePromisesLongRun) {
  need("mariadbd");
  PrivateServer mariadb{"mariadb"};
  const auto violated =
      found(mariadb, "mysql://app@127.0.0.1:" + std::to_string(mariadb.port()) + "/holdfast", 3);
  EXPECT_TRUE(violated.empty()) << text_;
}

}  // namespace
}  // namespace holdfast::test
