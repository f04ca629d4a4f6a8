#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/lock_record.h"
#include "simulation/mutants.h"

namespace holdfast::sim {

// LockRecord::apply, but for what the mutant does wrong.
class MutatedRecord {
 public:
  explicit MutatedRecord(Mutant mutant) : mutant_{mutant} {}
  core::Outcome apply(const std::string& name, core::LockRecord& record,
                      const core::Operation& operation, core::LockRecord::Context context,
                      std::vector<core::Wake>& wakes);

 private:
  using Record = core::LockRecord;
  using Wakes = std::vector<core::Wake>;

  // What is done to the record or the question before, and to the record or
  // the answer after.
  void before(Record& record, core::Operation& operation, Record::Context& context) const;
  void after(Record& record, const Record& was, const core::Operation& operation,
             const Record::Context& context, core::Outcome& outcome, Wakes& wakes) const;
  void after_change(Record& record, const Record& was, const core::Operation& operation,
                    core::Outcome& outcome) const;
  // Some holders are not seen while the command is applied.
  core::Outcome apply_blindly(Record& record, const core::Operation& operation,
                              const Record::Context& context, Wakes& wakes) const;
  bool overlooks(const core::Holder& holder, const Record& record,
                 const core::Operation& operation) const;
  core::Outcome release_anyone(Record& record, const core::Operation& operation,
                               const Record::Context& context, Wakes& wakes) const;
  core::Outcome renew_anyone(Record& record, const core::Operation& operation,
                             const Record::Context& context, Wakes& wakes) const;
  core::Outcome requeue(Record& record, const core::Requeue& requeue,
                        const Record::Context& context, Wakes& wakes) const;
  core::Outcome revive(const std::string& name, Record& record, const core::Operation& operation,
                       const Record::Context& context, Wakes& wakes);

  Mutant mutant_;
  std::map<std::string, std::vector<core::Holder>> dead_;
};

}  // namespace holdfast::sim
