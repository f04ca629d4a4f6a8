#include "support/cut_line.h"
#include "support/quorum_servers.h"
#include "support/server.h"

namespace holdfast::test {
namespace {

// A root of its own in the shared server; it vanishes with its last node. The
// time-out is what every lease lasts.
class ZookeeperHarness : public Harness {
 public:
  explicit ZookeeperHarness(std::string_view more = "") : more_{more} {}

  std::string url() const override { return url_at(line_ ? std::to_string(line_->port()) : port_); }
  std::string observer_url() const override { return url_at(port_); }
  std::string torture_url() const override { return url_at(port_, "1s"); }
  std::unique_ptr<Outage> begin_outage() override { return std::make_unique<CutLine>(*line_); }
  Duration shortest_ttl() const override { return std::chrono::seconds{3}; }
  Duration renewable_ttl() const override { return std::chrono::seconds{3}; }

 private:
  std::string url_at(const std::string& port, const std::string& session = "3s") const {
    return "zookeeper://127.0.0.1:" + port + "/" + name_prefix() + "?session_timeout=" + session +
           "&tick=200ms" + more_;
  }

  std::string more_;
  const std::string port_ = shared_server_port("zookeeper");
  const std::unique_ptr<FaultProxy> line_ = line_to_cut(port_);
};

std::optional<std::string> missing() {
  return missing_quorum("zookeeper");
}

}  // namespace

HarnessEntry zookeeper_harness() {
  return {.engine = "zookeeper",
          .strategy = "",
          .claims = {.lease = false, .values = true},
          .make = []() -> std::unique_ptr<Harness> { return std::make_unique<ZookeeperHarness>(); },
          .missing = &missing};
}

HarnessEntry zookeeper_simple_harness() {
  return {.engine = "zookeeper",
          .strategy = "simple",
          .claims = {.fair = false, .shared = false, .permits = false, .lease = false},
          .make = []() -> std::unique_ptr<Harness> {
            return std::make_unique<ZookeeperHarness>("&strategy=simple");
          },
          .missing = &missing};
}

}  // namespace holdfast::test
