#include <algorithm>
#include <cstdlib>
#include <string>
#include <type_traits>
#include <variant>

#include "client/coordinator.h"

namespace holdfast::client {

using core::ClaimId;
using core::LocalQueue;
using core::Outcome;
using core::Status;
using core::TenancyId;
using core::Time;

namespace {

constexpr Duration kShortestRetry = std::chrono::milliseconds{5};
constexpr Duration kLongestRetry = std::chrono::seconds{1};
// A grant that is stale on arrival this often comes from a store too slow for
// its ttl.
constexpr std::uint8_t kMaxArrivals = 4;

// Left for one renewal before the warning of loss: nobody enters with less.
Duration time_to_renew(Duration ttl) {
  return ttl / 20;
}

Duration retry_after(Duration ttl) {
  return std::clamp(ttl / 15, kShortestRetry, kLongestRetry);
}

Error refusal(const core::Shape& shape, std::uint32_t limit) {
  if (limit == 0) {
    return {ErrorCode::invalid_argument,
            "the name is in use as a mutex, not as a semaphore; choose another name",
            {}};
  }
  if (shape.limit == 0) {
    return {
        ErrorCode::invalid_argument,
        "the name is in use as a semaphore of " + std::to_string(limit) + "; choose another name",
        {}};
  }
  return {ErrorCode::invalid_argument,
          "the semaphore is in use with a total of " + std::to_string(limit) + ", not " +
              std::to_string(shape.limit) + "; use that total, or resize it first",
          {}};
}

Error not_to_be_adopted() {
  return {ErrorCode::lease_lost,
          "there is nothing to take over: the code was used already, or its lease has run out",
          {}};
}

Error failure(const Outcome& outcome) {
  return outcome.error.value_or(
      Error{ErrorCode::unavailable, "the store gave an answer that does not fit the question", {}});
}

}  // namespace

void Coordinator::finish_batch(std::size_t lane, const engine::Outcomes& outcomes, Time now) {
  std::vector<Errand> errands = outbox_.finish(lane);
  if (outcomes.size() != errands.size()) {
    std::abort();  // the engine broke its contract: any guess could be a grant
  }
  for (std::size_t i = 0; i < errands.size(); ++i) {
    Errand& errand = errands[i];
    const Outcome& outcome = outcomes[i];
    std::visit(
        [&](const auto& operation) {
          using Operation = std::decay_t<decltype(operation)>;
          if constexpr (std::is_same_v<Operation, core::Acquire> ||
                        std::is_same_v<Operation, core::Requeue> ||
                        std::is_same_v<Operation, core::Transfer>) {
            on_acquire(errand, outcome, now);
          } else if constexpr (std::is_same_v<Operation, core::Renew>) {
            on_renew(errand, outcome, now);
          } else if constexpr (std::is_same_v<Operation, core::Poll>) {
            on_poll(errand, outcome, now);
          } else if constexpr (std::is_same_v<Operation, core::Release>) {
            on_release(errand, outcome, now);
          } else if constexpr (std::is_same_v<Operation, core::Upgrade>) {
            on_upgrade(errand, outcome, now);
          } else if constexpr (std::is_same_v<Operation, core::Downgrade>) {
            on_downgrade(errand, outcome, now);
          } else {
            on_asked(errand, outcome);
          }
        },
        errand.command.operation);
  }
}

void Coordinator::on_acquire(Errand& errand, const Outcome& outcome, Time now) {
  const bool requeue = std::holds_alternative<core::Requeue>(errand.command.operation);
  if (outcome.status == Status::failed) {
    on_acquire_failed(errand, failure(outcome), now);
    return;
  }
  if (requeue) {
    --releases_;
    answer_release(errand, outcome.gave_back);
  }
  Tenancy* tenancy = find_tenancy(errand.tenancy);
  if (tenancy == nullptr) {
    return;  // withdrawn meanwhile: its release is behind it in the same lane
  }
  tenancy->repeated = errand.unsure;
  if (tenancy->adopted && outcome.status != Status::granted) {
    deny(errand.tenancy, not_to_be_adopted(), now);
    return;
  }
  switch (outcome.status) {
    case Status::granted:
      on_granted(errand.tenancy, outcome.token, errand.sent, outcome.lease_for, now);
      break;
    case Status::queued:
      on_queued(errand.tenancy, *tenancy, errand.sent, outcome.look_again);
      break;
    case Status::busy:
      deny(errand.tenancy, {ErrorCode::busy, "somebody else holds the lock", {}}, now);
      break;
    case Status::refused:
      deny(errand.tenancy, refusal(tenancy->terms.shape, outcome.count), now);
      break;
    default:
      // Revoked before we learned that it was ours: let it go and line up anew.
      push_release(*tenancy->line->name, tenancy->request, tenancy->terms.ttl, now, nullptr);
      stand_again(errand.tenancy, *tenancy, now);
  }
}

void Coordinator::on_acquire_failed(Errand& errand, const Error& error, Time now) {
  Tenancy* tenancy = find_tenancy(errand.tenancy);
  if (error.code == ErrorCode::outcome_unknown && tenancy != nullptr) {
    if (errand.give_up == base::kNever) {
      errand.give_up = errand.sent + config_.patience;
    }
    errand.unsure = true;
    if (now < errand.give_up) {
      retry(std::move(errand), now);
      return;
    }
  } else if (errand.unsure && tenancy != nullptr && now < errand.give_up) {
    retry(std::move(errand), now);
    return;
  }
  const TenancyId id = errand.tenancy;
  const bool unsure = errand.unsure;
  if (std::holds_alternative<core::Requeue>(errand.command.operation)) {
    release_after_all(std::move(errand), now);
  }
  if (tenancy == nullptr) {
    return;
  }
  if (unsure) {
    push_release(*tenancy->line->name, tenancy->request, tenancy->terms.ttl, now, nullptr);
    deny(id,
         {ErrorCode::outcome_unknown,
          "the store did not answer; if it granted the lock, it frees itself after its ttl (" +
              error.text + ")",
          error.native},
         now);
  } else {
    deny(id, error, now);
  }
}

void Coordinator::on_granted(TenancyId id, std::uint64_t token, Time sent, Duration lease_for,
                             Time now) {
  Tenancy& tenancy = tenancies_.at(id);
  if (tenancy.phase == Phase::held) {
    return;
  }
  queued_.erase(id);
  keeper_.stop_refreshing(id);
  tenancy.token = token;
  tenancy.deadline = core::LeaseKeeper::deadline(sent, lease_for);
  const std::optional<ClaimId> first = tenancy.line->queue.stands_for(id);
  const Duration grace = first ? claims_.at(*first).grace : Duration{};
  const Duration margin = time_to_renew(tenancy.terms.ttl);
  if (tenancy.deadline - grace - margin <= now) {
    if (++tenancy.arrivals > kMaxArrivals) {
      push_release(*tenancy.line->name, tenancy.request, tenancy.terms.ttl, now, nullptr);
      deny(id,
           {ErrorCode::unavailable,
            "the store answers too slowly for this ttl; choose a longer one",
            {}},
           now);
      return;
    }
    tenancy.phase = Phase::arriving;
    push_renew(id, tenancy);
    return;
  }
  tenancy.phase = Phase::held;
  if (std::exchange(tenancy.rung, false)) {
    push_poll(id, tenancy, false);  // rung again since: perhaps revoked
  }
  Line& line = *tenancy.line;
  schedule_renewal(id, tenancy, sent, lease_for);
  LocalQueue::Steps steps;
  line.queue.granted(id, tenancy.deadline - margin, now, steps);
  carry_out(line, steps, now);
}

void Coordinator::schedule_renewal(TenancyId id, const Tenancy& tenancy, Time sent,
                                   Duration lease_for) {
  const Duration ttl = tenancy.terms.ttl;
  const bool pushed = lease_for <= tenancy.terms.window();  // first short, to be prolonged at once
  if (tenancy.terms.renew || pushed) {
    keeper_.refresh_after(id, sent + lease_for - ttl, tenancy.terms.refresh_interval());
  }
}

void Coordinator::on_queued(TenancyId id, Tenancy& tenancy, Time sent, Duration look_again) {
  tenancy.phase = Phase::queued;
  tenancy.heartbeat = sent;
  queued_.insert(id);
  next_look_ = std::min(next_look_, sent + config_.backstop_poll);
  const Duration heartbeat = tenancy.terms.refresh_interval();
  // Something ahead of us ends before the next heartbeat: look then. The
  // millisecond is for clocks that round.
  if (look_again > Duration::zero() && look_again < heartbeat) {
    keeper_.refresh_at(id, sent + look_again + std::chrono::milliseconds{1});
  } else {
    keeper_.refresh_after(id, sent, heartbeat);
  }
  // The answer may be older than a ring or a look.
  if (std::exchange(tenancy.rung, false) || sent <= changed_at_) {
    push_poll(id, tenancy, false);
  }
}

void Coordinator::on_poll(const Errand& errand, const Outcome& outcome, Time now) {
  Tenancy* tenancy = find_tenancy(errand.tenancy);
  const auto& poll = std::get<core::Poll>(errand.command.operation);
  if (tenancy == nullptr || tenancy->request != poll.id) {
    return;
  }
  tenancy->polling = false;
  if (tenancy->phase == Phase::held) {
    if (std::exchange(tenancy->rung, false)) {
      push_poll(errand.tenancy, *tenancy, false);
    }
    if (outcome.status == Status::not_held ||
        (is_another_grant(*tenancy, outcome) &&
         !takes_token(errand.tenancy, *tenancy, outcome, now))) {
      on_gone(errand.tenancy, now);
    } else if (outcome.status == Status::revoked) {
      const std::vector<ClaimId> users = tenancy->line->queue.users(errand.tenancy);
      std::ranges::for_each(users, [&](ClaimId user) { lose(user, LossReason::revoked, now); });
    }
    return;
  }
  if (tenancy->phase != Phase::queued) {
    return;
  }
  switch (outcome.status) {
    case Status::granted:
      on_granted(errand.tenancy, outcome.token, errand.sent, outcome.lease_for, now);
      break;
    case Status::queued:
      if (poll.heartbeat) {
        on_queued(errand.tenancy, *tenancy, errand.sent, outcome.look_again);
      } else if (std::exchange(tenancy->rung, false)) {
        push_poll(errand.tenancy, *tenancy, false);
      }
      break;
    case Status::failed:
      keeper_.refresh_at(errand.tenancy, now + retry_after(tenancy->terms.ttl));
      break;
    case Status::revoked:
      push_release(*tenancy->line->name, tenancy->request, tenancy->terms.ttl, now, nullptr);
      stand_again(errand.tenancy, *tenancy, now);
      break;
    default:
      stand_again(errand.tenancy, *tenancy,
                  now);  // our place was given up: heartbeats came too late
  }
}

void Coordinator::stand_again(TenancyId id, Tenancy& tenancy, Time now) {
  if (tenancy.adopted) {
    deny(id, not_to_be_adopted(), now);
    return;
  }
  requests_.erase(tenancy.request);
  queued_.erase(id);
  keeper_.stop_refreshing(id);
  tenancy.request = config_.new_id();
  tenancy.phase = Phase::asked;
  tenancy.polling = false;
  tenancy.rung = false;
  tenancy.renewing = false;
  requests_.emplace(tenancy.request, id);
  outbox_.push({.command = {*tenancy.line->name, acquire_command(tenancy)}, .tenancy = id});
}

void Coordinator::on_renew(const Errand& errand, const Outcome& outcome, Time now) {
  Tenancy* tenancy = find_tenancy(errand.tenancy);
  if (tenancy == nullptr ||
      tenancy->request != std::get<core::Renew>(errand.command.operation).id) {
    return;
  }
  tenancy->renewing = false;
  if (tenancy->phase == Phase::arriving) {
    on_arriving(errand, *tenancy, outcome, now);
    return;
  }
  if (is_another_grant(*tenancy, outcome) && !takes_token(errand.tenancy, *tenancy, outcome, now)) {
    on_gone(errand.tenancy, now);
    return;
  }
  switch (outcome.status) {
    case Status::renewed:
      extend(errand.tenancy, *tenancy, errand.sent, outcome.lease_for, now);
      break;
    case Status::revoked: {
      const std::vector<ClaimId> users = tenancy->line->queue.users(errand.tenancy);
      std::ranges::for_each(users, [&](ClaimId user) { lose(user, LossReason::revoked, now); });
      break;
    }
    case Status::failed:
      keeper_.refresh_at(errand.tenancy, now + retry_after(tenancy->terms.ttl));
      break;
    default:
      on_gone(errand.tenancy, now);
  }
}

void Coordinator::on_arriving(const Errand& errand, Tenancy& tenancy, const Outcome& outcome,
                              Time now) {
  if (outcome.status == Status::renewed) {
    on_granted(errand.tenancy, outcome.token, errand.sent, outcome.lease_for, now);
    return;
  }
  const bool failed = outcome.status == Status::failed;
  const bool out_of_patience = errand.since != Time{} && now - errand.since >= config_.patience;
  if (failed && (tenancy.terms.queue || !out_of_patience)) {
    tenancy.renewing = true;
    retry(errand, now);
    return;
  }
  push_release(*tenancy.line->name, tenancy.request, tenancy.terms.ttl, now, nullptr);
  if (failed) {
    deny(errand.tenancy,
         {ErrorCode::outcome_unknown,
          "the store granted the lock and then did not answer; it frees itself after its ttl",
          {}},
         now);
  } else {
    stand_again(errand.tenancy, tenancy, now);
  }
}

void Coordinator::extend(TenancyId id, Tenancy& tenancy, Time sent, Duration lease_for, Time now) {
  tenancy.deadline = std::max(tenancy.deadline, core::LeaseKeeper::deadline(sent, lease_for));
  tenancy.line->queue.renewed(id, tenancy.deadline - time_to_renew(tenancy.terms.ttl));
  bool again = false;
  for (const ClaimId user : tenancy.line->queue.users(id)) {
    Claim& claim = claims_.at(user);
    if (!renewable(claim, now)) {
      continue;
    }
    again = true;
    // One that may be unwell does not live on by another's renewal.
    if (!claim.asked) {
      claim.lease->set_deadline(tenancy.deadline);
      keeper_.warn(user, tenancy.deadline, claim.grace);
    }
  }
  if (again && tenancy.terms.renew) {
    schedule_renewal(id, tenancy, sent, lease_for);
  }
}

// An acquire that was sent twice may arrive the second time when the grant has
// come and gone, and be granted anew: that is not what our callers hold.
bool Coordinator::is_another_grant(const Tenancy& tenancy, const Outcome& outcome) {
  return outcome.token != 0 && outcome.token != tenancy.token;
}

void Coordinator::on_gone(TenancyId id, Time now) {
  const Tenancy& tenancy = tenancies_.at(id);
  Line& line = *tenancy.line;
  if (tenancy.repeated) {
    push_release(*line.name, tenancy.request, tenancy.terms.ttl, now, nullptr);
  }
  const std::vector<ClaimId> users = line.queue.users(id);
  for (const ClaimId user : users) {
    lose(user, LossReason::expired, now);
  }
  forget_tenancy(id);
  LocalQueue::Steps steps;
  line.queue.gone(id, now, steps);
  carry_out(line, steps, now);
}

void Coordinator::deny(TenancyId id, Error why, Time now) {
  Line& line = *tenancies_.at(id).line;
  forget_tenancy(id);
  LocalQueue::Steps steps;
  const std::optional<ClaimId> claim = line.queue.denied(id, now, steps);
  if (claim) {
    turn_away(*claim, std::move(why));
  }
  carry_out(line, steps, now);
}

void Coordinator::on_release(Errand& errand, const Outcome& outcome, Time now) {
  if (outcome.status == Status::failed) {
    const Error error = failure(outcome);
    errand.unsure = errand.unsure || error.code == ErrorCode::outcome_unknown;
    const bool over = now >= errand.give_up;
    if (over || now - errand.since >= config_.patience) {
      answer(
          std::exchange(errand.receiver, nullptr),
          fail(errand.unsure ? ErrorCode::outcome_unknown : ErrorCode::unavailable,
               "no answer to the release; the lock frees itself after its ttl (" + error.text + ")",
               error.native));
    }
    if (over) {
      --releases_;
    } else {
      retry(std::move(errand), now);
    }
    return;
  }
  --releases_;
  answer_release(errand, outcome.status != Status::not_held);
}

void Coordinator::answer_release(const Errand& errand, bool gave_back) {
  // Unsure: perhaps the first send did it. But what was over before was lost.
  const bool perhaps = errand.unsure && !(errand.receiver != nullptr && errand.receiver->late);
  if (gave_back || perhaps) {
    answer(errand.receiver, 0);
  } else {
    answer(errand.receiver, fail(ErrorCode::lease_lost, "the lock was not ours any more"));
  }
}

void Coordinator::on_asked(const Errand& errand, const Outcome& outcome) {
  switch (outcome.status) {
    case Status::done:
      answer(errand.receiver, outcome.count);
      break;
    case Status::refused:
      answer(errand.receiver, tl::unexpected{refusal({}, outcome.count)});
      break;
    case Status::not_held:
      answer(errand.receiver,
             fail(ErrorCode::invalid_argument, "nobody holds or awaits a lock of this name"));
      break;
    default:
      answer(errand.receiver, tl::unexpected{failure(outcome)});
  }
}

// Less and less often: a store in trouble must not be hammered.
void Coordinator::retry(Errand errand, Time now) {
  if (errand.since == Time{}) {
    errand.since = errand.sent;
  }
  const Duration pause = std::clamp((now - errand.since) / 4, kShortestRetry * 10, kLongestRetry);
  outbox_.push_later(std::move(errand), now + pause);
}

bool Coordinator::stands_in_queue(ClaimId id) const {
  const auto claim = claims_.find(id);
  if (claim == claims_.end() || claim->second.receiver == nullptr) {
    return false;
  }
  const LocalQueue& queue = claim->second.line->queue;
  const std::optional<TenancyId> tenancy = queue.first_waiting();
  return tenancy && queued_.contains(*tenancy) && queue.stands_for(*tenancy) == id;
}

void Coordinator::rang(std::span<const engine::Ring> rings, Time now) {
  for (const engine::Ring& ring : rings) {
    const auto known = requests_.find(ring.id);
    if (known == requests_.end()) {
      continue;
    }
    const TenancyId id = known->second;
    Tenancy& tenancy = tenancies_.at(id);
    if (tenancy.phase == Phase::queued && ring.token != 0 && !tenancy.repeated) {
      on_granted(id, ring.token, tenancy.heartbeat, tenancy.terms.window(), now);
    } else if (tenancy.phase == Phase::asked || tenancy.phase == Phase::arriving) {
      tenancy.rung = true;  // the answer on its way may be older than the ring
    } else if (const auto upgrade = upgrades_.find(id);
               upgrade != upgrades_.end() && upgrade->second.asked && ring.token != 0) {
      ask_upgrade(id, upgrade->second);
    } else {
      push_poll(id, tenancy, false);
    }
  }
}

}  // namespace holdfast::client
