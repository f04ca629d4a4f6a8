#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/lock_record.h"

namespace holdfast::sim {

// Stores that are wrong in one way each. The simulation must notice every one
// of them: a net that catches nothing is no net.
enum class Mutant : std::uint8_t {
  none,
  release_by_anyone,    // no owner check
  expiry_ignored,       // a dead holder holds for ever
  token_forgotten,      // tokens start again
  queue_jumped,         // the last to come is the first to be served
  renewal_revives,      // an expired lease comes back to life
  push_cut_short,       // a pushed grant lasts less than the window
  full_ttl_repeated,    // a grant asked about again seems as long as a new one
  overbooked,           // shared and permit holders are not all counted
  never_promotes,       // who waits is granted only when it asks anew
  validity_from_reply,  // lease_for counts from when the answer arrives
};

struct MutantInfo {
  Mutant mutant;
  const char* name;
  const char* property;  // the check that must notice it
};
std::span<const MutantInfo> all_mutants();

// LockRecord::apply, but for what the mutant does wrong.
class MutatedRecord {
 public:
  explicit MutatedRecord(Mutant mutant) : mutant_{mutant} {}
  core::Outcome apply(const std::string& name, core::LockRecord& record,
                      const core::Operation& operation, core::LockRecord::Context context,
                      std::vector<core::Wake>& wakes);

 private:
  core::Outcome release_anyone(core::LockRecord& record, const core::Operation& operation,
                               const core::LockRecord::Context& context,
                               std::vector<core::Wake>& wakes) const;
  core::Outcome revive(const std::string& name, core::LockRecord& record,
                       const core::Operation& operation, const core::LockRecord::Context& context,
                       std::vector<core::Wake>& wakes);

  Mutant mutant_;
  std::map<std::string, std::vector<core::Holder>> dead_;
};

}  // namespace holdfast::sim
