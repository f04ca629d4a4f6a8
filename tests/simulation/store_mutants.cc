#include "simulation/store_mutants.h"

#include <algorithm>
#include <variant>

namespace holdfast::sim {
namespace {

using core::Acquire;
using core::Holder;
using core::LockRecord;
using core::Operation;
using core::Outcome;
using core::Status;
using core::Waiter;

LockRecord::Parts parts_of(const LockRecord& record) {
  return {record.limit(), record.last_token(), record.holders(), record.queue()};
}

template <typename Change>
void change(LockRecord& record, Change how) {
  LockRecord::Parts parts = parts_of(record);
  how(parts);
  record = LockRecord::from_parts(std::move(parts));
}

template <typename Change>
void change_holders(LockRecord& record, Change how) {
  change(record, [&](LockRecord::Parts& parts) { std::ranges::for_each(parts.holders, how); });
}

bool holds(const LockRecord& record, const core::RequestId& id) {
  return std::ranges::find(record.holders(), id, &Holder::id) != record.holders().end();
}

bool waits(const LockRecord& record, const core::RequestId& id) {
  return std::ranges::find(record.queue(), id, &Waiter::id) != record.queue().end();
}

void put_last_first(LockRecord& record, std::size_t waited) {
  if (record.queue().size() > waited) {
    change(record, [](LockRecord::Parts& parts) {
      std::rotate(parts.queue.begin(), std::prev(parts.queue.end()), parts.queue.end());
    });
  }
}

// Everybody who was in the queue goes back into it.
void undo_promotions(LockRecord& record, const LockRecord& was) {
  change(record, [&](LockRecord::Parts& parts) {
    for (const Waiter& waiter : was.queue()) {
      if (std::erase_if(parts.holders, [&](const auto& it) { return it.id == waiter.id; }) > 0) {
        parts.queue.push_front(waiter);
      }
    }
    parts.limit = was.limit();
  });
}

void truncate_readers(LockRecord& record) {
  const bool readers =
      !record.holders().empty() && record.holders().front().shape.mode == Mode::shared;
  if (readers) {
    const base::Time first = std::ranges::min(record.holders(), {}, &Holder::expires).expires;
    change_holders(record, [&](Holder& holder) { holder.expires = first; });
  }
}

}  // namespace

void MutatedRecord::before(Record& record, Operation& operation, Record::Context& context) const {
  auto* acquire = std::get_if<Acquire>(&operation);
  auto* poll = std::get_if<core::Poll>(&operation);
  switch (mutant_) {
    case Mutant::expiry_ignored:
      change_holders(record, [&](Holder& holder) {
        holder.expires = std::max(holder.expires, context.now + base::Duration{1});
      });
      break;
    case Mutant::waiters_immortal:
      change(record, [&](Record::Parts& parts) {
        for (Waiter& waiter : parts.queue) {
          waiter.expires = std::max(waiter.expires, context.now + base::Duration{1});
        }
      });
      break;
    case Mutant::token_forgotten:
      context.token_floor = 0;
      break;
    case Mutant::token_not_raised:
      if (record.last_token() >= core::kTokenStride) {
        context.token_floor = 0;
        change(record, [](Record::Parts& parts) { parts.last_token -= core::kTokenStride; });
      }
      break;
    case Mutant::token_by_one:
      context.token_floor = record.last_token() == 0 ? context.token_floor : 0;
      break;
    case Mutant::small_ones_first:
      change(record, [](Record::Parts& parts) {
        std::ranges::stable_sort(parts.queue, {},
                                 [](const Waiter& waiter) { return waiter.shape.permits; });
      });
      break;
    case Mutant::revoked_renewed:
      if (std::holds_alternative<core::Renew>(operation)) {
        change_holders(record, [](Holder& holder) { holder.revoked = false; });
      }
      break;
    case Mutant::reader_overtakes:
      if (acquire != nullptr && acquire->shape.mode == Mode::shared) {
        acquire->barge = true;
      }
      break;
    case Mutant::permits_as_one:
      if (acquire != nullptr) {
        acquire->shape.permits = 1;
      }
      break;
    case Mutant::heartbeat_ignored:
      if (poll != nullptr) {
        poll->heartbeat = false;
      }
      break;
    default:
      break;
  }
}

void MutatedRecord::after(Record& record, const Record& was, const Operation& operation,
                          const Record::Context& context, Outcome& outcome, Wakes& wakes) const {
  const auto* acquire = std::get_if<Acquire>(&operation);
  const auto* renew = std::get_if<core::Renew>(&operation);
  const auto* poll = std::get_if<core::Poll>(&operation);
  const bool release = std::holds_alternative<core::Release>(operation);
  switch (mutant_) {
    case Mutant::token_forgotten:
      change(record, [](Record::Parts& parts) { parts.last_token = 0; });
      break;
    case Mutant::token_not_raised:
      if (record.last_token() + core::kTokenStride == was.last_token()) {
        change(record, [&](Record::Parts& parts) { parts.last_token = was.last_token(); });
      }
      break;
    case Mutant::token_by_one:
      if (record.last_token() != was.last_token()) {
        change(record, [](Record::Parts& parts) { parts.last_token -= core::kTokenStride - 1; });
      }
      break;
    case Mutant::queue_jumped:
      put_last_first(record, was.queue().size());
      break;
    case Mutant::push_cut_short:
    case Mutant::pushed_too_long:
      change_holders(record, [&](Holder& holder) {
        if (waits(was, holder.id)) {
          holder.expires =
              context.now + (mutant_ == Mutant::push_cut_short ? holder.ttl / 4 : holder.ttl);
        }
      });
      break;
    case Mutant::full_ttl_repeated:
      if (outcome.status == Status::granted && acquire != nullptr) {
        outcome.lease_for = acquire->ttl;
      }
      break;
    case Mutant::never_promotes:
      undo_promotions(record, was);
      break;
    case Mutant::expires_early:
      change_holders(record, [&](Holder& holder) {
        const bool fresh = !holds(was, holder.id) || (renew != nullptr && renew->id == holder.id);
        holder.expires = fresh ? context.now + (holder.expires - context.now) / 2 : holder.expires;
      });
      break;
    case Mutant::renewal_ignored:
      if (renew != nullptr && outcome.status == Status::renewed) {
        record = was;
      }
      break;
    case Mutant::poll_prolongs:
      if (poll != nullptr) {
        change_holders(record, [&](Holder& holder) {
          holder.expires = holder.id == poll->id ? context.now + holder.ttl : holder.expires;
        });
      }
      break;
    case Mutant::wakes_lost:
      wakes.clear();
      break;
    case Mutant::wakes_astray:
      for (core::Wake& wake : wakes) {
        wake.token += wake.token == 0 ? 0 : core::kTokenStride;
      }
      break;
    case Mutant::busy_when_free:
      if (acquire != nullptr && !acquire->queue && outcome.status == Status::granted) {
        record = was;
        outcome = {.status = Status::busy};
      }
      break;
    case Mutant::release_says_yes:
      outcome.status = release ? Status::released : outcome.status;
      break;
    case Mutant::release_says_no:
      outcome.status = release ? Status::not_held : outcome.status;
      break;
    case Mutant::lease_stretched:
      outcome.lease_for += outcome.lease_for / 2;
      break;
    case Mutant::readers_truncated:
      truncate_readers(record);
      break;
    case Mutant::revoke_ignored:
      if (std::holds_alternative<core::Revoke>(operation)) {
        record = was;
        wakes.clear();
      }
      break;
    case Mutant::upgrade_keeps_token:
    case Mutant::upgraders_both_wait:
    case Mutant::downgrade_ignored:
    case Mutant::transfer_keeps_token:
    case Mutant::transferred_twice:
      after_change(record, was, operation, outcome);
      break;
    default:
      break;
  }
}

// Of leases that change or pass on.
void MutatedRecord::after_change(Record& record, const Record& was, const Operation& operation,
                                 Outcome& outcome) const {
  const auto* upgrade = std::get_if<core::Upgrade>(&operation);
  const auto* downgrade = std::get_if<core::Downgrade>(&operation);
  const auto* transfer = std::get_if<core::Transfer>(&operation);
  const auto before = [&](const core::RequestId& id) {
    return *std::ranges::find(was.holders(), id, &Holder::id);
  };
  if (mutant_ == Mutant::upgrade_keeps_token && upgrade != nullptr && holds(was, upgrade->id) &&
      outcome.status == Status::granted) {
    outcome.token = before(upgrade->id).token;
    change_holders(record, [&](Holder& holder) {
      holder.token = holder.id == upgrade->id ? outcome.token : holder.token;
    });
  }
  if (mutant_ == Mutant::upgraders_both_wait && upgrade != nullptr && upgrade->queue &&
      outcome.status == Status::busy) {
    outcome = {.status = Status::queued};
    change_holders(record, [&](Holder& holder) {
      holder.upgrading = holder.upgrading || holder.id == upgrade->id;
    });
  }
  if (mutant_ == Mutant::downgrade_ignored && downgrade != nullptr) {
    record = was;
  }
  if (transfer != nullptr && holds(was, transfer->id) && outcome.status == Status::granted) {
    const Holder old = before(transfer->id);
    if (mutant_ == Mutant::transfer_keeps_token) {
      outcome.token = old.token;
      change_holders(record, [&](Holder& holder) {
        holder.token = holder.id == transfer->next.id ? old.token : holder.token;
      });
    } else if (mutant_ == Mutant::transferred_twice) {
      change(record, [&](Record::Parts& parts) { parts.holders.push_back(old); });
    }
  }
}

bool MutatedRecord::overlooks(const Holder& holder, const Record& record,
                              const Operation& operation) const {
  const auto* acquire = std::get_if<Acquire>(&operation);
  const bool newcomer = acquire != nullptr && !holds(record, acquire->id);
  switch (mutant_) {
    case Mutant::overbooked:
      return newcomer && holder.shape.mode != Mode::exclusive &&
             &holder == &record.holders().front();
    case Mutant::writer_beside_readers:
      return newcomer && acquire->shape.mode == Mode::exclusive &&
             holder.shape.mode == Mode::shared;
    case Mutant::reader_beside_writer:
      return newcomer && acquire->shape.mode == Mode::shared &&
             holder.shape.mode == Mode::exclusive;
    case Mutant::revoked_not_counted:
      return newcomer && holder.revoked;
    case Mutant::upgraded_beside_readers: {
      const auto* upgrade = std::get_if<core::Upgrade>(&operation);
      return upgrade != nullptr && holds(record, upgrade->id) && holder.id != upgrade->id;
    }
    default:
      return false;
  }
}

Outcome MutatedRecord::apply_blindly(Record& record, const Operation& operation,
                                     const Record::Context& context, Wakes& wakes) const {
  std::vector<Holder> hidden;
  for (const Holder& holder : record.holders()) {
    if (holder.expires > context.now && overlooks(holder, record, operation)) {
      hidden.push_back(holder);
    }
  }
  if (hidden.empty()) {
    return record.apply(operation, context, wakes);
  }
  change(record, [&](Record::Parts& parts) {
    std::erase_if(parts.holders, [&](const Holder& holder) {
      return std::ranges::find(hidden, holder.id, &Holder::id) != hidden.end();
    });
  });
  const Outcome outcome = record.apply(operation, context, wakes);
  change(record, [&](Record::Parts& parts) {
    parts.holders.insert(parts.holders.begin(), hidden.begin(), hidden.end());
    parts.limit = hidden.front().shape.limit;
  });
  return outcome;
}

Outcome MutatedRecord::release_anyone(Record& record, const Operation& operation,
                                      const Record::Context& context, Wakes& wakes) const {
  const Outcome outcome = record.apply(operation, context, wakes);
  const bool release = std::holds_alternative<core::Release>(operation);
  if (release && outcome.status == Status::not_held && !record.holders().empty()) {
    return record.apply(core::Release{record.holders().front().id}, context, wakes);
  }
  return outcome;
}

Outcome MutatedRecord::renew_anyone(Record& record, const Operation& operation,
                                    const Record::Context& context, Wakes& wakes) const {
  const Outcome outcome = record.apply(operation, context, wakes);
  const bool renew = std::holds_alternative<core::Renew>(operation);
  if (renew && outcome.status == Status::not_held && !record.holders().empty()) {
    return record.apply(core::Renew{record.holders().front().id}, context, wakes);
  }
  return outcome;
}

Outcome MutatedRecord::requeue(Record& record, const core::Requeue& requeue,
                               const Record::Context& context, Wakes& wakes) const {
  if (mutant_ == Mutant::requeue_keeps) {
    Outcome outcome = record.apply(requeue.next, context, wakes);
    outcome.gave_back = true;
    return outcome;
  }
  const std::deque<Waiter> queue = record.queue();
  change(record, [](Record::Parts& parts) { parts.queue.clear(); });
  const Outcome outcome = record.apply(requeue, context, wakes);
  change(record, [&](Record::Parts& parts) {
    parts.queue.insert(parts.queue.begin(), queue.begin(), queue.end());
    parts.limit = requeue.next.shape.limit;
  });
  return outcome;
}

Outcome MutatedRecord::revive(const std::string& name, Record& record, const Operation& operation,
                              const Record::Context& context, Wakes& wakes) {
  std::vector<Holder>& dead = dead_[name];
  for (const Holder& holder : record.holders()) {
    if (holder.expires <= context.now) {
      dead.push_back(holder);
    }
  }
  const Outcome outcome = record.apply(operation, context, wakes);
  const auto* renew = std::get_if<core::Renew>(&operation);
  if (renew == nullptr || outcome.status != Status::not_held) {
    return outcome;
  }
  const auto it = std::ranges::find(dead, renew->id, &Holder::id);
  if (it == dead.end()) {
    return outcome;
  }
  change(record, [&](Record::Parts& parts) {
    it->expires = context.now + it->ttl;
    parts.holders.push_back(*it);
  });
  return {.status = Status::renewed, .token = it->token, .lease_for = it->ttl};
}

Outcome MutatedRecord::apply(const std::string& name, Record& record, const Operation& operation,
                             Record::Context context, Wakes& wakes) {
  const Record was = record;
  Operation asked = operation;
  const auto* acquire = std::get_if<Acquire>(&operation);
  const auto* again = std::get_if<core::Requeue>(&operation);
  if (mutant_ == Mutant::release_by_anyone) {
    return release_anyone(record, operation, context, wakes);
  }
  if (mutant_ == Mutant::renewal_by_stranger) {
    return renew_anyone(record, operation, context, wakes);
  }
  if (mutant_ == Mutant::renewal_revives) {
    return revive(name, record, operation, context, wakes);
  }
  if (again != nullptr && (mutant_ == Mutant::requeue_first || mutant_ == Mutant::requeue_keeps)) {
    return requeue(record, *again, context, wakes);
  }
  if (mutant_ == Mutant::acquire_anew && acquire != nullptr && holds(record, acquire->id)) {
    record.apply(core::Release{acquire->id}, context, wakes);
  }
  before(record, asked, context);
  Outcome outcome = apply_blindly(record, asked, context, wakes);
  after(record, was, asked, context, outcome, wakes);
  return outcome;
}

}  // namespace holdfast::sim
