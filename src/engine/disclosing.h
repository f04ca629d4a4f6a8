#pragma once

#include <holdfast/error.h>

#include "core/commands.h"

namespace holdfast::engine {

// An engine whose store may know a grant by the id of an earlier request of this process.
class Disclosing {
 public:
  virtual ~Disclosing() = default;
  // From now on other processes find the grant under this id. Blocks. lease_lost: there is none.
  virtual Result<void> disclose(core::RequestId id) = 0;

 protected:
  Disclosing() = default;
  Disclosing(const Disclosing&) = default;
  Disclosing& operator=(const Disclosing&) = default;
};

}  // namespace holdfast::engine
