#include "support/harness.h"
#include "support/server.h"

namespace holdfast::test {
namespace {

// A prefix of its own in the shared server; its keys end with their leases.
class EtcdHarness : public Harness {
 public:
  std::string url() const override { return "etcd://127.0.0.1:" + port_ + "/" + name_prefix(); }

 private:
  const std::string port_ = shared_server_port("etcd");
};

}  // namespace

HarnessEntry etcd_harness() {
  return {.engine = "etcd",
          .strategy = "",
          .claims = {.outage = false, .values = true},
          .make = []() -> std::unique_ptr<Harness> { return std::make_unique<EtcdHarness>(); },
          .missing = [] { return missing_program("etcd"); }};
}

}  // namespace holdfast::test
