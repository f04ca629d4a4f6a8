#pragma once

#include <holdfast/several.h>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "client/service.h"

namespace holdfast::client {

// What takes many locks at once; the only one that may look into Client and
// Lease for that.
class Several {
 public:
  static Result<LeaseSet> acquire_all(const std::vector<WantAt>& wants,
                                      const AcquireOptions& options);
  static Result<std::vector<Lease>> claim_any(Service& service,
                                              const std::vector<std::string>& names,
                                              std::size_t at_most, const AcquireOptions& options);

  static Result<void> release(std::span<Lease> leases);
  // In one piece, where ~Lease would let go one by one.
  static void let_go(std::span<Lease> leases) noexcept;

 private:
  static std::vector<LeaseHandle*> handles(std::span<Lease> leases);
};

}  // namespace holdfast::client
