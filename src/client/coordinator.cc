#include "client/coordinator.h"

#include <algorithm>
#include <type_traits>
#include <variant>

namespace holdfast::client {

using core::ClaimId;
using core::LocalQueue;
using core::TenancyId;
using core::Time;

namespace {

bool gives_back(const LocalQueue::Steps& steps, TenancyId tenancy) {
  return std::ranges::any_of(steps, [tenancy](const LocalQueue::Step& step) {
    const auto* stand = std::get_if<LocalQueue::Stand>(&step);
    const auto* give_back = std::get_if<LocalQueue::GiveBack>(&step);
    return (stand != nullptr && stand->after == tenancy) ||
           (give_back != nullptr && give_back->tenancy == tenancy);
  });
}

}  // namespace

Coordinator::Coordinator(Config config) : config_{std::move(config)}, outbox_{config_.lanes} {
  lines_.max_load_factor(core::kLeanLoad);
  claims_.max_load_factor(core::kLeanLoad);
  tenancies_.max_load_factor(core::kLeanLoad);
  requests_.max_load_factor(core::kLeanLoad);
}

// --- callers

ClaimId Coordinator::acquire(const Wish& wish, std::shared_ptr<GrantReceiver> receiver, Time now) {
  const ClaimId id = next_claim_++;
  if (wish.owner) {
    const auto nested = owners_.find({*wish.owner, wish.name});
    if (nested != owners_.end()) {
      lose_if_stale(nested->second, now);
    }
    if (nested != owners_.end() && !claims_.at(nested->second).lease->loss()) {
      Claim& outer = claims_.at(nested->second);
      if (outer.shape == wish.terms.shape) {
        ++outer.depth;
        effects_.grants.emplace_back(std::move(receiver), outer.lease);
      } else {
        effects_.grants.emplace_back(
            std::move(receiver),
            fail(ErrorCode::invalid_argument,
                 "this owner holds the lock in another mode; release it first"));
      }
      return nested->second;
    }
  }
  Line& line = line_for(wish.name);
  if (line.queue.is_full()) {
    effects_.grants.emplace_back(std::move(receiver),
                                 fail(ErrorCode::busy, std::to_string(kMaxWaiters) +
                                                           " callers of this client wait already"));
    return id;
  }
  Claim& claim = claims_[id];
  claim.line = &line;
  claim.receiver = std::move(receiver);
  claim.shape = wish.terms.shape;
  claim.grace = wish.terms.grace;
  if (wish.max_hold || wish.health || wish.owner) {
    claim.extras = std::make_unique<const Extras>(Extras{wish.max_hold, wish.health, wish.owner});
  }
  LocalQueue::Steps steps;
  core::Terms terms = wish.terms;
  if (wish.adopts) {
    terms.hand_over = 0;  // stands for itself alone
    terms.queue = false;
  }
  line.queue.join(id, terms, now, steps);
  carry_out(line, steps, now);
  if (wish.adopts) {
    Errand errand = *outbox_.take_back(next_tenancy_ - 1);
    tenancies_.at(errand.tenancy).adopted = true;
    errand.command.operation =
        core::Transfer{*wish.adopts, std::get<core::Acquire>(errand.command.operation)};
    outbox_.push(std::move(errand));
  }
  return id;
}

bool Coordinator::cancel(ClaimId id, ErrorCode why, Time now) {
  const auto it = claims_.find(id);
  if (it == claims_.end() || it->second.receiver == nullptr) {
    return false;
  }
  Line& line = *it->second.line;
  turn_away(id, {why, why == ErrorCode::cancelled ? "the wait was cancelled" : why_waits(line),
                 std::nullopt});
  LocalQueue::Steps steps;
  line.queue.leave(id, now, steps);
  carry_out(line, steps, now);
  return true;
}

// Whoever looks for the cause begins with the holder in one case, with the store in the other.
const char* Coordinator::why_waits(const Line& line) {
  const auto first = line.queue.first_waiting();
  const Tenancy* tenancy = first ? find_tenancy(*first) : nullptr;
  return tenancy != nullptr && tenancy->phase == Phase::asked
             ? "the store did not answer within the wait"
             : "the lock was not free within the wait";
}

void Coordinator::release(ClaimId id, std::shared_ptr<AnswerReceiver> receiver, Time now) {
  const auto it = claims_.find(id);
  if (it == claims_.end()) {
    answer(receiver, 0);
    return;
  }
  lose_if_stale(id, now);
  Claim& claim = it->second;
  const TenancyId tenancy = claim.tenancy;
  const bool over = now >= claim.lease->deadline();
  if (receiver != nullptr) {
    receiver->late = over;
  }
  const bool owes_answer = claim.asked && claim.depth == 1;
  Line& line = *claim.line;
  LocalQueue::Steps steps;
  if (upgrades(tenancy, id)) {
    end_upgrade_of_lost(tenancy);
  }
  if (--claim.depth == 0) {
    forget_claim(id);
    line.queue.let_go(id, now, steps);
  }
  // Where the store is not asked, our own clock decides.
  if (over && !gives_back(steps, tenancy)) {
    answer(std::exchange(receiver, nullptr),
           fail(ErrorCode::lease_lost, "the lease was lost before the release"));
  }
  carry_out(line, steps, now, std::move(receiver));
  ask_upgrade_if_alone(tenancy);
  // Nobody is left to answer: do not let the others' renewal wait for it.
  if (owes_answer && find_tenancy(tenancy) != nullptr) {
    keeper_.refresh_at(tenancy, now);
  }
}

void Coordinator::ask(core::Command command, std::shared_ptr<AnswerReceiver> receiver) {
  outbox_.push({.command = std::move(command), .receiver = std::move(receiver)});
}

void Coordinator::healthy(ClaimId id, bool well, Time now) {
  const auto it = claims_.find(id);
  if (it == claims_.end()) {
    return;
  }
  Claim& claim = it->second;
  claim.asked = false;
  if (!well) {
    claim.renew_until = now;
    return;
  }
  Tenancy* tenancy = find_tenancy(claim.tenancy);
  if (tenancy != nullptr && renewable(claim, now)) {
    push_renew(claim.tenancy, *tenancy);
  }
}

// --- time

Time Coordinator::next_due() const noexcept {
  const Time hope = hopes_.empty() ? base::kNever : hopes_.begin()->first.first;
  return std::min({keeper_.next(), outbox_.next_retry(), next_look_, hope});
}

void Coordinator::tick(Time now) {
  outbox_.wake(now);
  core::LeaseKeeper::Duties duties = keeper_.due(now);
  for (const ClaimId claim : duties.warn) {
    lose(claim, LossReason::not_renewed, now);
  }
  for (const TenancyId tenancy : duties.refresh) {
    refresh(tenancy, now);
  }
  while (!hopes_.empty() && hopes_.begin()->first.first <= now) {
    Line& line = *hopes_.begin()->second;
    LocalQueue::Steps steps;
    line.queue.stop_hoping(now, steps);
    carry_out(line, steps, now);
  }
}

void Coordinator::look(Time now, bool store_changed) {
  const bool idle = queued_.empty() && upgrades_.empty();
  next_look_ = idle ? base::kNever : now + config_.backstop_poll;
  if (!store_changed) {
    return;
  }
  changed_at_ = now;
  for (const TenancyId id : queued_) {
    push_poll(id, tenancies_.at(id), false);
  }
  for (auto& [id, upgrade] : upgrades_) {
    if (upgrade.asked) {
      ask_upgrade(id, upgrade);
    }
  }
}

void Coordinator::refresh(TenancyId id, Time now) {
  Tenancy* tenancy = find_tenancy(id);
  if (tenancy == nullptr) {
    return;
  }
  if (tenancy->phase == Phase::queued) {
    push_poll(id, *tenancy, true);
    return;
  }
  if (tenancy->phase != Phase::held) {
    return;
  }
  for (const ClaimId user : tenancy->line->queue.users(id)) {
    Claim& claim = claims_.at(user);
    if (!renewable(claim, now)) {
      continue;
    }
    if (claim.extras == nullptr || claim.extras->health == nullptr) {
      push_renew(id, *tenancy);
    } else if (!std::exchange(claim.asked, true)) {
      effects_.questions.push_back({user, claim.extras->health});
    }
  }
}

bool Coordinator::renewable(const Claim& claim, Time now) const {
  return now < claim.renew_until && !claim.lease->loss();
}

// A watchdog that comes too late must not let a stale lock pass on, nor nest.
void Coordinator::lose_if_stale(ClaimId id, Time now) {
  const Claim& claim = claims_.at(id);
  if (now >= claim.lease->deadline() - claim.grace) {
    lose(id, LossReason::not_renewed, now);
  }
}

void Coordinator::lose(ClaimId id, LossReason reason, Time now) {
  const auto it = claims_.find(id);
  if (it == claims_.end() || it->second.lease == nullptr) {
    return;
  }
  Claim& claim = it->second;
  keeper_.stop_warning(id);
  if (reason == LossReason::expired) {
    claim.lease->set_deadline(Time{});
  }
  if (!claim.lease->set_loss(reason)) {
    return;
  }
  effects_.losses.push_back(claim.lease);
  if (upgrades(claim.tenancy, id)) {
    end_upgrade_of_lost(claim.tenancy);
  }
  Line& line = *claim.line;
  LocalQueue::Steps steps;
  line.queue.close(claim.tenancy, now, steps);
  carry_out(line, steps, now);
}

// --- steps of the local queues

Coordinator::Line& Coordinator::line_for(const std::string& name) {
  const auto [it, added] =
      lines_.try_emplace(name, Line{nullptr, core::LocalQueue{&next_tenancy_}});
  if (added) {
    it->second.name = &it->first;
    it->second.number = next_line_++;
  }
  return it->second;
}

void Coordinator::set_hope(Line& line, Time until) {
  if (until == line.hope) {
    return;
  }
  if (line.hope != base::kNever) {
    hopes_.erase({line.hope, line.number});
  }
  if (until != base::kNever) {
    hopes_.emplace(std::pair{until, line.number}, &line);
  }
  line.hope = until;
}

void Coordinator::forget_line_if_idle(Line& line) {
  if (line.queue.idle()) {
    lines_.erase(lines_.find(*line.name));
  }
}

void Coordinator::carry_out(Line& line, const LocalQueue::Steps& steps, Time now,
                            std::shared_ptr<AnswerReceiver> receiver) {
  for (const LocalQueue::Step& step : steps) {
    std::visit(
        [&](const auto& what) {
          using Step = std::decay_t<decltype(what)>;
          if constexpr (std::is_same_v<Step, LocalQueue::Stand>) {
            stand(line, what, now, what.after ? std::exchange(receiver, nullptr) : nullptr);
          } else if constexpr (std::is_same_v<Step, LocalQueue::GiveBack>) {
            const Tenancy* tenancy = find_tenancy(what.tenancy);
            const bool was_held = tenancy != nullptr && tenancy->phase == Phase::held;
            give_back(line, what.tenancy, now,
                      was_held ? std::exchange(receiver, nullptr) : nullptr);
          } else if constexpr (std::is_same_v<Step, LocalQueue::Admit>) {
            admit(line, what, now);
          } else {
            turn_away(what.claim,
                      {ErrorCode::busy, "another thread of this process holds or awaits it", {}});
          }
        },
        step);
  }
  // Passed on inside the process: nothing to wait for.
  answer(receiver, 0);
  for (const LocalQueue::Step& step : steps) {
    const auto* admitted = std::get_if<LocalQueue::Admit>(&step);
    if (admitted != nullptr && claims_.at(admitted->claim).owner()) {
      nest_those_in_line(admitted->claim, now);
    }
  }
  set_hope(line, line.queue.hopes_until());
  forget_line_if_idle(line);
}

void Coordinator::stand(Line& line, const LocalQueue::Stand& step, Time now,
                        std::shared_ptr<AnswerReceiver> receiver) {
  Tenancy& tenancy = tenancies_[step.tenancy];
  tenancy.request = config_.new_id();
  tenancy.line = &line;
  tenancy.terms = step.terms;
  requests_.emplace(tenancy.request, step.tenancy);
  Errand errand{.command = {*line.name, acquire_command(tenancy)}, .tenancy = step.tenancy};
  Tenancy* before = step.after ? find_tenancy(*step.after) : nullptr;
  if (before != nullptr) {
    errand.command.operation = core::Requeue{before->request, acquire_command(tenancy)};
    errand.receiver = std::move(receiver);
    errand.ttl = before->terms.ttl;
    ++releases_;
    forget_tenancy(*step.after);
  } else {
    answer(receiver, 0);
    // The last of a tenancy's users has it. Often not for long, and then giving
    // back and asking again are one step.
    if (config_.ride > Duration::zero() && line.queue.taken_by_us()) {
      outbox_.push_later(std::move(errand), now + config_.ride);
      return;
    }
  }
  outbox_.push(std::move(errand));
}

// Whoever of us is next in line has not been sent to the store yet: then one
// step does both.
bool Coordinator::stands_unheard(Line& line, core::RequestId given_back, Duration ttl,
                                 std::shared_ptr<AnswerReceiver>& receiver) {
  const auto next = line.queue.first_waiting();
  std::optional<Errand> unsent = next ? outbox_.take_back(*next) : std::nullopt;
  if (!unsent) {
    return false;
  }
  const auto* acquire = std::get_if<core::Acquire>(&unsent->command.operation);
  const bool joins = acquire != nullptr && !unsent->unsure && acquire->queue;
  if (joins) {
    unsent->command.operation = core::Requeue{given_back, core::Acquire{*acquire}};
    unsent->receiver = std::move(receiver);
    unsent->ttl = ttl;
    ++releases_;
  }
  outbox_.push(std::move(*unsent));
  return joins;
}

void Coordinator::give_back(Line& line, TenancyId id, Time now,
                            std::shared_ptr<AnswerReceiver> receiver) {
  Tenancy* tenancy = find_tenancy(id);
  if (tenancy == nullptr) {
    answer(receiver, 0);
    return;
  }
  const core::RequestId request = tenancy->request;
  const Duration ttl = tenancy->terms.ttl;
  const bool asked = tenancy->phase == Phase::asked;
  forget_tenancy(id);
  if (asked) {
    std::optional<Errand> unsent = outbox_.take_back(id);
    const bool heard = !unsent || unsent->unsure;
    if (unsent && std::holds_alternative<core::Requeue>(unsent->command.operation)) {
      release_after_all(std::move(*unsent), now);
    }
    if (!heard) {
      return;
    }
  }
  if (!asked && stands_unheard(line, request, ttl, receiver)) {
    return;
  }
  push_release(*line.name, request, ttl, now, std::move(receiver));
  // Whoever of us stands in the queue may have been granted by this release.
  if (const auto other = line.queue.first_waiting(); other && queued_.contains(*other)) {
    push_poll(*other, tenancies_.at(*other), false);
  }
}

void Coordinator::admit(Line& line, const LocalQueue::Admit& step, Time now) {
  const Tenancy& tenancy = tenancies_.at(step.tenancy);
  Claim& claim = claims_.at(step.claim);
  // Those before it may have wanted no renewal any more.
  if (step.offset > 0 && tenancy.terms.renew && !tenancy.renewing &&
      !keeper_.refreshes(step.tenancy)) {
    keeper_.refresh_at(step.tenancy, now);
  }
  claim.lease = std::make_shared<LeaseState>(*line.name, step.claim,
                                             config_.tokens ? tenancy.token + step.offset : 0);
  claim.lease->set_deadline(tenancy.deadline);
  claim.tenancy = step.tenancy;
  if (claim.extras != nullptr && claim.extras->max_hold) {
    claim.renew_until = now + *claim.extras->max_hold;
  }
  if (const auto owner = claim.owner()) {
    owners_[{*owner, *line.name}] = step.claim;
  }
  keeper_.warn(step.claim, tenancy.deadline, claim.grace);
  effects_.grants.emplace_back(std::move(claim.receiver), claim.lease);
  claim.receiver = nullptr;
}

void Coordinator::nest_those_in_line(ClaimId outer, Time now) {
  Claim& held = claims_.at(outer);
  Line& line = *held.line;
  const auto nests = [&](ClaimId id) {
    const Claim& claim = claims_.at(id);
    return claim.owner() == held.owner() && claim.shape == held.shape;
  };
  // One at a time: whoever leaves may let others in.
  for (auto in_line = line.queue.in_line();; in_line = line.queue.in_line()) {
    const auto next = std::ranges::find_if(in_line, nests);
    if (next == in_line.end()) {
      return;
    }
    ++held.depth;
    effects_.grants.emplace_back(std::move(claims_.at(*next).receiver), held.lease);
    claims_.erase(*next);
    LocalQueue::Steps steps;
    line.queue.leave(*next, now, steps);
    carry_out(line, steps, now);
  }
}

void Coordinator::turn_away(ClaimId id, Error why) {
  const auto it = claims_.find(id);
  if (it == claims_.end() || it->second.receiver == nullptr) {
    return;
  }
  effects_.grants.emplace_back(std::move(it->second.receiver), tl::unexpected{std::move(why)});
  claims_.erase(it);
}

// --- small things

void Coordinator::forget_claim(ClaimId id) {
  const auto it = claims_.find(id);
  keeper_.stop_warning(id);
  if (const auto id_of_owner = it->second.owner()) {
    const auto owner = owners_.find({*id_of_owner, *it->second.line->name});
    if (owner != owners_.end() && owner->second == id) {
      owners_.erase(owner);
    }
  }
  claims_.erase(it);
}

void Coordinator::forget_tenancy(TenancyId id) {
  const auto it = tenancies_.find(id);
  if (it == tenancies_.end()) {
    return;
  }
  end_upgrade_of_lost(id);
  keeper_.stop_refreshing(id);
  requests_.erase(it->second.request);
  queued_.erase(id);
  tenancies_.erase(it);
}

Coordinator::Tenancy* Coordinator::find_tenancy(TenancyId id) {
  const auto it = tenancies_.find(id);
  return it == tenancies_.end() ? nullptr : &it->second;
}

core::Acquire Coordinator::acquire_command(const Tenancy& tenancy) const {
  const core::Terms& terms = tenancy.terms;
  return {.id = tenancy.request,
          .session = config_.session,
          .shape = terms.shape,
          .ttl = terms.ttl,
          .window = terms.window(),
          .queue = terms.queue,
          .barge = terms.barge};
}

void Coordinator::push_release(const std::string& name, core::RequestId request, Duration ttl,
                               Time now, std::shared_ptr<AnswerReceiver> receiver) {
  ++releases_;
  // After its ttl it has ended by itself, whether the store heard us or not.
  outbox_.push({.command = {name, core::Release{request}},
                .receiver = std::move(receiver),
                .since = now,
                .give_up = now + ttl});
}

// A Requeue will not be: what it was to give back still must be.
void Coordinator::release_after_all(Errand requeue, Time now) {
  requeue.command.operation = core::Release{std::get<core::Requeue>(requeue.command.operation).id};
  requeue.tenancy = 0;
  requeue.since = now;
  requeue.give_up = now + requeue.ttl;
  outbox_.push(std::move(requeue));
}

void Coordinator::push_renew(TenancyId id, Tenancy& tenancy) {
  if (std::exchange(tenancy.renewing, true)) {
    return;
  }
  outbox_.push({.command = {*tenancy.line->name, core::Renew{tenancy.request}}, .tenancy = id});
}

void Coordinator::push_poll(TenancyId id, Tenancy& tenancy, bool heartbeat) {
  if (tenancy.polling && !heartbeat) {
    tenancy.rung = true;  // the answer on its way may be older than the reason to look
    return;
  }
  tenancy.polling = true;
  outbox_.push(
      {.command = {*tenancy.line->name, core::Poll{tenancy.request, heartbeat}}, .tenancy = id});
}

void Coordinator::answer(const std::shared_ptr<AnswerReceiver>& receiver,
                         Result<std::uint32_t> result) {
  if (receiver != nullptr) {
    effects_.answers.emplace_back(receiver, std::move(result));
  }
}

}  // namespace holdfast::client
