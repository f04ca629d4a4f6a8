#include "simulation/fake_store.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <ostream>

#include "simulation/words.h"

namespace holdfast::sim {

core::LockRecord::Context FakeStore::context() const {
  const auto micros = std::chrono::floor<std::chrono::microseconds>(stage_.now() - Time{});
  return {.now = stage_.now(),
          .token_floor = std::max(floor_, static_cast<std::uint64_t>(micros.count()))};
}

engine::Outcomes FakeStore::apply(std::span<const core::Command> batch, bool ghost,
                                  std::vector<core::Wake>& wakes) {
  engine::Outcomes outcomes;
  for (const core::Command& command : batch) {
    core::LockRecord& record = records_[command.name];
    const core::LockRecord before = record;
    outcomes.push_back(
        stage_.mutant == Mutant::none
            ? record.apply(command.operation, context(), wakes)
            : mutated_.apply(command.name, record, command.operation, context(), wakes));
    stage_.tell("store", [&](auto& out) {
      out << command.name << ": " << words(command.operation) << " = " << words(outcomes.back())
          << (ghost ? " (ghost)" : "");
    });
    ledger_.note(command.name, before, record, {&command.operation, ghost});
    check_answer(command, record, outcomes.back());
    if (stage_.scenario.forgets_at_once) {
      forget_if_idle(command.name);
    }
  }
  version_ += wakes.empty() ? 0U : 1U;
  return outcomes;
}

// A try fails only where somebody is; what was given back is gone.
void FakeStore::check_answer(const core::Command& command, const core::LockRecord& after,
                             const core::Outcome& outcome) {
  if (outcome.status == core::Status::busy && after.idle()) {
    stage_.violate("errors", command.name + " is free, but was said to be busy");
  }
  const auto* downgrade = std::get_if<core::Downgrade>(&command.operation);
  if (downgrade != nullptr && outcome.status == core::Status::granted &&
      std::ranges::any_of(after.holders(), [&](const core::Holder& holder) {
        return holder.id == downgrade->id && holder.shape.mode != Mode::shared;
      })) {
    stage_.violate("errors", command.name + " was said to be shared, but is not");
  }
  const auto* requeue = std::get_if<core::Requeue>(&command.operation);
  if (requeue != nullptr && outcome.gave_back &&
      std::ranges::find(after.holders(), requeue->id, &core::Holder::id) != after.holders().end()) {
    stage_.violate("release", command.name + " was given back, but is still held");
  }
}

void FakeStore::tidy(std::vector<core::Wake>& wakes) {
  if (stage_.mutant == Mutant::expiry_ignored || stage_.mutant == Mutant::never_promotes) {
    return;
  }
  for (auto entry = records_.begin(); entry != records_.end();) {
    const auto next = std::next(entry);
    const core::LockRecord before = entry->second;
    if (entry->second.settle(context(), wakes)) {
      stage_.tell("store", [&](auto& out) { out << entry->first << ": settled"; });
      ledger_.note(entry->first, before, entry->second, {});
    }
    forget_if_idle(entry->first);
    entry = next;
  }
  version_ += wakes.empty() ? 0U : 1U;
}

void FakeStore::forget_if_idle(const std::string& name) {
  const auto found = records_.find(name);
  if (found->second.idle()) {
    if (stage_.mutant != Mutant::token_forgotten) {
      floor_ = std::max(floor_, found->second.last_token() + 1);
    }
    records_.erase(found);
  }
}

void FakeStore::go_down(Duration time) {
  down_until_ = std::max(down_until_, stage_.now() + time);
  stage_.tell("store", [&](auto& out) { out << "down for " << words(time); });
}

std::string FakeStore::leftovers() const {
  std::string text;
  for (const auto& [name, record] : records_) {
    for (const core::Holder& holder : record.holders()) {
      text += " " + words(holder.id) + " holds " + name;
    }
    for (const core::Waiter& waiter : record.queue()) {
      text += " " + words(waiter.id) + " waits for " + name;
    }
  }
  return text;
}

}  // namespace holdfast::sim
