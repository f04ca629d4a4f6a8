#include "support/lock_record_checker.h"

#include <algorithm>
#include <optional>
#include <set>

#include "core/lock_record_codec.h"

namespace holdfast::test {
namespace {

using namespace core;

template <typename Parties>
auto* find(Parties& parties, const RequestId& id) {
  const auto found =
      std::find_if(parties.begin(), parties.end(), [&](const auto& p) { return p.id == id; });
  return found == parties.end() ? nullptr : &*found;
}

// The request that the outcome is about, if any.
std::optional<RequestId> subject(const Operation& operation) {
  if (const auto* requeue = std::get_if<Requeue>(&operation)) return requeue->next.id;
  if (const auto* acquire = std::get_if<Acquire>(&operation)) return acquire->id;
  if (const auto* renew = std::get_if<Renew>(&operation)) return renew->id;
  if (const auto* poll = std::get_if<Poll>(&operation)) return poll->id;
  if (const auto* release = std::get_if<Release>(&operation)) return release->id;
  if (const auto* upgrade = std::get_if<Upgrade>(&operation)) return upgrade->id;
  if (const auto* downgrade = std::get_if<Downgrade>(&operation)) return downgrade->id;
  if (const auto* transfer = std::get_if<Transfer>(&operation)) return transfer->next.id;
  return std::nullopt;
}

std::uint64_t permits_out(const LockRecord& record) {
  std::uint64_t out = 0;
  for (const Holder& holder : record.holders()) {
    out += holder.shape.permits;
  }
  return out;
}

bool could_join(const LockRecord& record, const Shape& shape) {
  const auto& holders = record.holders();
  if (std::any_of(holders.begin(), holders.end(),
                  [](const Holder& h) { return h.revoked || h.upgrading; })) {
    return false;
  }
  if (record.limit() > 0) {
    return permits_out(record) + shape.permits <= record.limit();
  }
  return std::all_of(holders.begin(), holders.end(), [&](const Holder& h) {
    return h.shape.mode == Mode::shared && shape.mode == Mode::shared;
  });
}

}  // namespace

std::string LockRecordChecker::step(const Operation& operation, Time now,
                                    std::uint64_t token_floor) {
  const LockRecord before = record_;
  std::vector<Wake> wakes;
  const Outcome outcome = record_.apply(operation, {.now = now, .token_floor = token_floor}, wakes);
  if (std::holds_alternative<Resize>(operation) && outcome.status == Status::done) {
    overbooked_ = permits_out(record_) > record_.limit();
  }
  overbooked_ = overbooked_ && permits_out(record_) > record_.limit();
  for (const auto& broken : {check_state(now), check_outcome(operation, outcome, now),
                             check_order(before, operation, now), check_tokens(before, wakes, now),
                             check_wakes(before, operation, wakes),
                             check_repetition(operation, outcome, now, token_floor)}) {
    if (!broken.empty()) {
      return broken;
    }
  }
  return "";
}

std::string LockRecordChecker::check_state(Time now) const {
  const auto& holders = record_.holders();
  std::set<RequestId> ids;
  std::size_t exclusive = 0;
  std::size_t upgrading = 0;
  for (const Holder& holder : holders) {
    ids.insert(holder.id);
    exclusive += holder.shape.mode == Mode::exclusive ? 1 : 0;
    upgrading += holder.upgrading ? 1 : 0;
    if (holder.upgrading && holder.revoked) return "a revoked reader is to be the writer";
    if (holder.upgrading && holder.shape.mode != Mode::shared) return "no reader upgrades";
    if (holder.expires <= now) return "an expired holder is left";
    if (holder.expires > now + holder.ttl) return "a lease is longer than its ttl";
    if (holder.shape.limit != record_.limit()) return "a holder of another total";
  }
  for (const Waiter& waiter : record_.queue()) {
    ids.insert(waiter.id);
    if (waiter.expires <= now) return "an expired waiter is left";
    if (waiter.shape.limit != record_.limit()) return "a waiter of another total";
  }
  if (ids.size() != holders.size() + record_.queue().size()) return "an id is there twice";
  if (exclusive > 0 && holders.size() != 1) return "an exclusive holder is not alone";
  if (upgrading > 1) return "two readers want to be the writer";
  if (upgrading == 1 && holders.size() == 1) return "the last reader waits for nothing";
  if (record_.limit() > 0 && !overbooked_ && permits_out(record_) > record_.limit()) {
    return "more permits are out than there are";
  }
  if (!record_.queue().empty() && could_join(record_, record_.queue().front().shape)) {
    return "the first in line waits for nothing";
  }
  if (record_.idle() && record_.limit() != 0) return "an idle record remembers a total";
  LockRecord settled = record_;
  std::vector<Wake> wakes;
  if (settled.settle({.now = now}, wakes) || settled != record_) return "not settled";
  if (!record_.idle()) {
    settled.settle({.now = record_.next_change() - Duration{1}}, wakes);
    if (settled != record_) return "changed before next_change()";
    if (!settled.settle({.now = record_.next_change()}, wakes)) return "no change at next_change()";
    settled = record_;
    settled.settle({.now = record_.idle_from()}, wakes);
    if (!settled.queue().empty()) return "somebody waits beyond idle_from()";
  }
  std::string bytes;
  encode(record_, bytes);
  const auto decoded = decode(bytes);
  return decoded && *decoded == record_ ? "" : "does not survive its bytes";
}

std::string LockRecordChecker::check_outcome(const Operation& operation, const Outcome& outcome,
                                             Time now) const {
  const auto id = subject(operation);
  const Holder* holder = id ? find(record_.holders(), *id) : nullptr;
  const Waiter* waiter = id ? find(record_.queue(), *id) : nullptr;
  switch (outcome.status) {
    case Status::granted:
    case Status::renewed:
    case Status::revoked:
      if (holder == nullptr) return "said to be held, but is not";
      if (holder->revoked != (outcome.status == Status::revoked)) return "revoked or not?";
      if (outcome.token != holder->token) return "another token than the holder's";
      return outcome.lease_for == holder->expires - now ? "" : "another lease than the holder's";
    case Status::queued:
      if (std::holds_alternative<Upgrade>(operation)) {
        if (holder == nullptr || !holder->upgrading) return "said to upgrade, but does not";
        return outcome.look_again > Duration::zero() ? "" : "nothing to look for again";
      }
      if (waiter == nullptr) return "said to wait, but does not";
      if (outcome.look_again <= Duration::zero()) return "nothing to look for again";
      return waiter == &record_.queue()[outcome.ahead] ? "" : "another place in the line";
    case Status::busy:
    case Status::refused:
    case Status::released:
    case Status::not_held:
      if (holder != nullptr && (std::holds_alternative<Upgrade>(operation) ||
                                std::holds_alternative<Downgrade>(operation))) {
        return outcome.status == Status::not_held ? "said to hold nothing, but does" : "";
      }
      if (holder != nullptr) return "said to hold nothing, but does";
      // A renewal is refused to those who only wait.
      return waiter == nullptr || std::holds_alternative<Renew>(operation) ||
                     std::holds_alternative<Upgrade>(operation) ||
                     std::holds_alternative<Downgrade>(operation) ||
                     std::holds_alternative<Transfer>(operation)
                 ? ""
                 : "said to have nothing, but waits";
    case Status::done:
      return id ? "done with what?" : "";
    case Status::failed:
      return outcome.error ? "" : "failed without a reason";
  }
  return "no such status";
}

// Those who wait stay in line, newcomers go to its end, and whoever leaves it
// for a grant leaves nobody in front who was there and lives.
std::string LockRecordChecker::check_order(const LockRecord& before, const Operation& operation,
                                           Time now) const {
  std::size_t next = 0;
  const auto& queue = record_.queue();
  for (const Waiter& waiter : before.queue()) {
    if (waiter.expires <= now) {
      continue;  // if it is back, then as a newcomer
    }
    if (next < queue.size() && queue[next].id == waiter.id) {
      ++next;
      continue;
    }
    if (next > 0 && find(record_.holders(), waiter.id) != nullptr)
      return "granted in front of somebody who waited longer";
  }
  const std::size_t newcomers = queue.size() - next;
  const bool may_join =
      std::holds_alternative<Acquire>(operation) || std::holds_alternative<Requeue>(operation);
  return newcomers <= (may_join ? 1U : 0U) ? "" : "the line was shuffled";
}

std::string LockRecordChecker::check_tokens(const LockRecord& before,
                                            const std::vector<Wake>& wakes, Time now) const {
  std::set<std::uint64_t> tokens;
  for (const Holder& holder : record_.holders()) {
    const Holder* old = find(before.holders(), holder.id);
    const bool kept = old != nullptr && old->expires > now && old->token == holder.token;
    if (!kept && holder.token <= before.last_token()) return "a token did not rise";
    if (holder.token + kTokenStride - 1 > record_.last_token()) return "a block has no room";
    tokens.insert(holder.token);
  }
  std::uint64_t last = 0;
  for (const std::uint64_t token : tokens) {
    if (last != 0 && token - last < kTokenStride) return "blocks of tokens overlap";
    last = token;
  }
  for (const Wake& wake : wakes) {
    if (wake.token == 0) continue;
    const Holder* holder = find(record_.holders(), wake.id);
    if (holder == nullptr || holder->token != wake.token) return "woken without a grant";
  }
  return record_.last_token() >= before.last_token() ? "" : "the last token fell";
}

std::string LockRecordChecker::check_wakes(const LockRecord& before, const Operation& operation,
                                           const std::vector<Wake>& wakes) const {
  std::set<RequestId> told;
  for (const Wake& wake : wakes) {
    if (wake.id == subject(operation)) return "the caller is woken";
    if (!told.insert(wake.id).second) return "somebody is woken twice";
  }
  for (const Waiter& waiter : before.queue()) {
    const bool granted = find(record_.holders(), waiter.id) != nullptr;
    if (granted && waiter.id != subject(operation) && !told.contains(waiter.id)) {
      return "a grant that nobody hears of";
    }
  }
  for (const Holder& holder : record_.holders()) {
    const Holder* old = find(before.holders(), holder.id);
    const bool became_writer =
        old != nullptr && old->shape.mode == Mode::shared && holder.shape.mode == Mode::exclusive;
    if (became_writer && holder.id != subject(operation) && !told.contains(holder.id)) {
      return "an upgrade that nobody hears of";
    }
    if (holder.revoked && (old == nullptr || !old->revoked) && !told.contains(holder.id)) {
      return "a revocation that nobody hears of";
    }
  }
  return "";
}

std::string LockRecordChecker::check_repetition(const Operation& operation, const Outcome& outcome,
                                                Time now, std::uint64_t token_floor) const {
  if (std::holds_alternative<Revoke>(operation)) {
    return "";  // may find another holder
  }
  LockRecord again = record_;
  std::vector<Wake> wakes;
  const Outcome second = again.apply(operation, {.now = now, .token_floor = token_floor}, wakes);
  const bool same = second.status == outcome.status ||
                    (outcome.status == Status::released && second.status == Status::not_held) ||
                    // A total may follow once the name is idle.
                    outcome.status == Status::refused;
  if (!same || second.token != outcome.token) return "repeated, it answers differently";
  if (!wakes.empty()) return "repeated, it wakes somebody";
  return again == record_ ? "" : "repeated, it changes something";
}

}  // namespace holdfast::test
