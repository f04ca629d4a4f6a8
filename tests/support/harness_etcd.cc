#include "support/cut_line.h"
#include "support/server.h"

namespace holdfast::test {
namespace {

// A prefix of its own in the shared server; its keys end with their leases.
class EtcdHarness : public Harness {
 public:
  std::string url() const override { return url_at(line_ ? std::to_string(line_->port()) : port_); }
  std::string observer_url() const override { return url_at(port_); }
  std::string impatient_url(const std::string& timeout) const override {
    return url() + "?timeout=" + timeout;
  }
  std::unique_ptr<Outage> begin_outage() override { return std::make_unique<CutLine>(*line_); }

 private:
  std::string url_at(const std::string& port) const {
    return "etcd://127.0.0.1:" + port + "/" + name_prefix();
  }

  const std::string port_ = shared_server_port("etcd");
  const std::unique_ptr<FaultProxy> line_ = line_to_cut(port_);
};

}  // namespace

HarnessEntry etcd_harness() {
  return {.engine = "etcd",
          .strategy = "",
          .claims = {.values = true, .upgrade = true, .transfer = true},
          .make = []() -> std::unique_ptr<Harness> { return std::make_unique<EtcdHarness>(); },
          .missing = [] { return missing_program("etcd"); }};
}

}  // namespace holdfast::test
