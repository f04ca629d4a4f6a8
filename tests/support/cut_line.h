#pragma once

#include <memory>
#include <string>

#include "support/fault_proxy.h"
#include "support/harness.h"

namespace holdfast::test {

// An outage for servers that cannot be kept from changing otherwise: the line
// to them is cut. One can still look, over another.
class CutLine : public Outage {
 public:
  explicit CutLine(FaultProxy& line) : line_{line} {
    line_.block(Way::to_store);
    line_.block(Way::from_store);
  }
  ~CutLine() override {
    line_.unblock(Way::from_store);
    line_.unblock(Way::to_store);
  }

 private:
  FaultProxy& line_;
};

// Nothing, except for tests about outages.
inline std::unique_ptr<FaultProxy> line_to_cut(const std::string& port) {
  return needs_own_server() ? proxy_to(static_cast<std::uint16_t>(std::stoi(port))) : nullptr;
}

}  // namespace holdfast::test
