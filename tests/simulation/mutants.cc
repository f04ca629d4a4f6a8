#include "simulation/mutants.h"

#include <algorithm>
#include <array>
#include <variant>

namespace holdfast::sim {
namespace {

using core::LockRecord;
using core::Outcome;
using core::Status;

constexpr std::array kAll{
    MutantInfo{Mutant::release_by_anyone, "release_by_anyone", "S2"},
    MutantInfo{Mutant::expiry_ignored, "expiry_ignored", "L4"},
    MutantInfo{Mutant::token_forgotten, "token_forgotten", "S1"},
    MutantInfo{Mutant::queue_jumped, "queue_jumped", "L2"},
    MutantInfo{Mutant::renewal_revives, "renewal_revives", "S6"},
    MutantInfo{Mutant::push_cut_short, "push_cut_short", "S6"},
    MutantInfo{Mutant::full_ttl_repeated, "full_ttl_repeated", "S6"},
    MutantInfo{Mutant::overbooked, "overbooked", "S2"},
    MutantInfo{Mutant::never_promotes, "never_promotes", "L1"},
    MutantInfo{Mutant::validity_from_reply, "validity_from_reply", "S6"},
};

LockRecord::Parts parts_of(const LockRecord& record) {
  return {record.limit(), record.last_token(), record.holders(), record.queue()};
}

bool holds(const LockRecord& record, const core::RequestId& id) {
  return std::ranges::find(record.holders(), id, &core::Holder::id) != record.holders().end();
}

template <typename Change>
void change(LockRecord& record, Change how) {
  LockRecord::Parts parts = parts_of(record);
  how(parts);
  record = LockRecord::from_parts(std::move(parts));
}

void put_last_first(LockRecord& record, std::size_t waited) {
  if (record.queue().size() > waited) {
    change(record, [](LockRecord::Parts& parts) {
      std::rotate(parts.queue.begin(), std::prev(parts.queue.end()), parts.queue.end());
    });
  }
}

void cut_pushed_short(LockRecord& record, const LockRecord& before,
                      const LockRecord::Context& context) {
  change(record, [&](LockRecord::Parts& parts) {
    for (core::Holder& holder : parts.holders) {
      const bool waited =
          std::ranges::find(before.queue(), holder.id, &core::Waiter::id) != before.queue().end();
      if (waited) {
        holder.expires = context.now + holder.ttl / 4;
      }
    }
  });
}

// Everybody who was in the queue goes back into it.
void undo_promotions(LockRecord& record, const LockRecord& before) {
  change(record, [&](LockRecord::Parts& parts) {
    for (const core::Waiter& waiter : before.queue()) {
      if (std::erase_if(parts.holders, [&](const auto& it) { return it.id == waiter.id; }) > 0) {
        parts.queue.push_front(waiter);
      }
    }
    parts.limit = before.limit();
  });
}

}  // namespace

std::span<const MutantInfo> all_mutants() {
  return kAll;
}

Outcome MutatedRecord::release_anyone(LockRecord& record, const core::Operation& operation,
                                      const LockRecord::Context& context,
                                      std::vector<core::Wake>& wakes) const {
  const Outcome outcome = record.apply(operation, context, wakes);
  const bool release = std::holds_alternative<core::Release>(operation);
  if (release && outcome.status == Status::not_held && !record.holders().empty()) {
    return record.apply(core::Release{record.holders().front().id}, context, wakes);
  }
  return outcome;
}

Outcome MutatedRecord::revive(const std::string& name, LockRecord& record,
                              const core::Operation& operation, const LockRecord::Context& context,
                              std::vector<core::Wake>& wakes) {
  std::vector<core::Holder>& dead = dead_[name];
  for (const core::Holder& holder : record.holders()) {
    if (holder.expires <= context.now) {
      dead.push_back(holder);
    }
  }
  const Outcome outcome = record.apply(operation, context, wakes);
  const auto* renew = std::get_if<core::Renew>(&operation);
  if (renew == nullptr || outcome.status != Status::not_held) {
    return outcome;
  }
  const auto it = std::ranges::find(dead, renew->id, &core::Holder::id);
  if (it == dead.end()) {
    return outcome;
  }
  change(record, [&](LockRecord::Parts& parts) {
    it->expires = context.now + it->ttl;
    parts.holders.push_back(*it);
  });
  return {.status = Status::renewed, .token = it->token, .lease_for = it->ttl};
}

Outcome MutatedRecord::apply(const std::string& name, LockRecord& record,
                             const core::Operation& operation, LockRecord::Context context,
                             std::vector<core::Wake>& wakes) {
  const LockRecord before = record;
  const auto* acquire = std::get_if<core::Acquire>(&operation);
  switch (mutant_) {
    case Mutant::release_by_anyone:
      return release_anyone(record, operation, context, wakes);
    case Mutant::expiry_ignored:
      change(record, [&](LockRecord::Parts& parts) {
        for (core::Holder& holder : parts.holders) {
          holder.expires = std::max(holder.expires, context.now + base::Duration{1});
        }
      });
      return record.apply(operation, context, wakes);
    case Mutant::token_forgotten: {
      context.token_floor = 0;
      const Outcome outcome = record.apply(operation, context, wakes);
      change(record, [](LockRecord::Parts& parts) { parts.last_token = 0; });
      return outcome;
    }
    case Mutant::queue_jumped: {
      const Outcome outcome = record.apply(operation, context, wakes);
      put_last_first(record, before.queue().size());
      return outcome;
    }
    case Mutant::renewal_revives:
      return revive(name, record, operation, context, wakes);
    case Mutant::push_cut_short: {
      Outcome outcome = record.apply(operation, context, wakes);
      cut_pushed_short(record, before, context);
      return outcome;
    }
    case Mutant::full_ttl_repeated: {
      Outcome outcome = record.apply(operation, context, wakes);
      if (outcome.status == Status::granted && acquire != nullptr) {
        outcome.lease_for = acquire->ttl;
      }
      return outcome;
    }
    case Mutant::overbooked: {
      const bool hide = acquire != nullptr && !holds(record, acquire->id) &&
                        !record.holders().empty() &&
                        record.holders().front().shape.mode != Mode::exclusive;
      if (!hide) {
        return record.apply(operation, context, wakes);
      }
      const core::Holder hidden = record.holders().front();
      change(record, [](auto& parts) { parts.holders.erase(parts.holders.begin()); });
      const Outcome outcome = record.apply(operation, context, wakes);
      change(record, [&](auto& parts) {
        parts.holders.insert(parts.holders.begin(), hidden);
        parts.limit = hidden.shape.limit;
      });
      return outcome;
    }
    case Mutant::never_promotes: {
      const Outcome outcome = record.apply(operation, context, wakes);
      undo_promotions(record, before);
      return outcome;
    }
    default:
      return record.apply(operation, context, wakes);
  }
}

}  // namespace holdfast::sim
