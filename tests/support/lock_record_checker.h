#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/lock_record.h"

namespace holdfast::test {

// Applies operations to a lock record and checks each step against the
// contract, told in other words than the record's own code.
class LockRecordChecker {
 public:
  // Empty, or what the step broke.
  std::string step(const core::Operation& operation, base::Time now, std::uint64_t token_floor);

  const core::LockRecord& record() const noexcept { return record_; }

 private:
  std::string check_state(base::Time now) const;
  std::string check_outcome(const core::Operation& operation, const core::Outcome& outcome,
                            base::Time now) const;
  std::string check_order(const core::LockRecord& before, const core::Operation& operation,
                          base::Time now) const;
  std::string check_tokens(const core::LockRecord& before, const std::vector<core::Wake>& wakes,
                           base::Time now) const;
  std::string check_wakes(const core::LockRecord& before, const core::Operation& operation,
                          const std::vector<core::Wake>& wakes) const;
  std::string check_repetition(const core::Operation& operation, const core::Outcome& outcome,
                               base::Time now, std::uint64_t token_floor) const;

  core::LockRecord record_;
  bool overbooked_ = false;  // by a resize: more is out than the total
};

}  // namespace holdfast::test
