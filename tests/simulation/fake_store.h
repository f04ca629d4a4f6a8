#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/lock_record.h"
#include "engine/engine.h"
#include "simulation/ledger.h"
#include "simulation/stage.h"
#include "simulation/store_mutants.h"

namespace holdfast::sim {

// A store that keeps its data whatever happens, but is not always there.
class FakeStore {
 public:
  FakeStore(Stage& stage, Ledger& ledger)
      : stage_{stage}, ledger_{ledger}, mutated_{stage.mutant} {}

  engine::Outcomes apply(std::span<const core::Command> batch, bool ghost,
                         std::vector<core::Wake>& wakes);
  // Settles every name and forgets the idle ones.
  void tidy(std::vector<core::Wake>& wakes);

  bool is_down() const noexcept { return stage_.now() < down_until_; }
  void go_down(Duration time);

  // Rises whenever somebody had to be woken.
  std::uint64_t version() const noexcept { return version_; }

  // What is left over, in words; empty if nothing is.
  std::string leftovers() const;

 private:
  core::LockRecord::Context context() const;
  void check_answer(const core::Command& command, const core::LockRecord& after,
                    const core::Outcome& outcome);
  void forget_if_idle(const std::string& name);

  Stage& stage_;
  Ledger& ledger_;
  MutatedRecord mutated_;
  std::map<std::string, core::LockRecord> records_;
  std::uint64_t floor_ = 1;  // above every token of the names that were forgotten
  std::uint64_t version_ = 1;
  Time down_until_ = kStart;
};

}  // namespace holdfast::sim
