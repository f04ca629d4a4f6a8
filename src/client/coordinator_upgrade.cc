// Leases that change: readers become writers and back, grants pass to other
// processes.

#include <utility>
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

Error lost() {
  return {ErrorCode::lease_lost, "the lease was lost before its mode could change", {}};
}

}  // namespace

void Coordinator::upgrade(ClaimId id, bool queue, std::shared_ptr<AnswerReceiver> receiver,
                          Time now) {
  const auto it = claims_.find(id);
  if (it != claims_.end()) {
    lose_if_stale(id, now);
  }
  if (it == claims_.end() || it->second.lease->loss() ||
      find_tenancy(it->second.tenancy) == nullptr) {
    answer(receiver, tl::unexpected{lost()});
    return;
  }
  const Claim& claim = it->second;
  // What got lost on the way may still arrive, and undo what we do now.
  if (find_tenancy(claim.tenancy)->doubtful) {
    answer(receiver, fail(ErrorCode::unavailable,
                          "the store did not answer when this lease was to change before; release "
                          "it and acquire it anew"));
    return;
  }
  if (claim.shape.mode == Mode::exclusive) {
    answer(receiver, 0);
    return;
  }
  if (claim.shape.mode == Mode::permits || claim.depth > 1) {
    answer(receiver, fail(ErrorCode::invalid_argument,
                          claim.depth > 1 ? "a lease that is nested keeps its mode"
                                          : "permits have no mode that could be upgraded"));
    return;
  }
  const bool alone = claim.line->queue.users(claim.tenancy).size() == 1;
  if (upgrades_.contains(claim.tenancy) || (!alone && !queue)) {
    answer(receiver, fail(ErrorCode::busy, "another thread of this process reads, too"));
    return;
  }
  Upgrade wanted;
  wanted.claim = id;
  wanted.receiver = std::move(receiver);
  wanted.queue = queue;
  upgrades_.emplace(claim.tenancy, std::move(wanted));
  reshape(claim.tenancy, Mode::exclusive, now);  // no more local readers
  ask_upgrade_if_alone(it->second.tenancy);
}

// Other threads may read under the same grant: the store does not know them.
void Coordinator::ask_upgrade_if_alone(TenancyId id) {
  const auto upgrade = upgrades_.find(id);
  const Tenancy* tenancy = find_tenancy(id);
  if (upgrade != upgrades_.end() && !upgrade->second.asked && tenancy != nullptr &&
      !tenancy->undoing && tenancy->line->queue.users(id).size() == 1) {
    ask_upgrade(id, upgrade->second);
  }
}

void Coordinator::ask_upgrade(TenancyId id, Upgrade& upgrade) {
  if (std::exchange(upgrade.on_its_way, true)) {
    upgrade.rung = true;  // the answer on its way may be older than the reason to ask
    return;
  }
  upgrade.asked = true;
  Tenancy& tenancy = tenancies_.at(id);
  tenancy.reshaping = true;
  core::Upgrade command;
  command.id = tenancy.request;
  command.queue = upgrade.queue;
  outbox_.push({.command = {*tenancy.line->name, command}, .tenancy = id});
}

void Coordinator::on_upgrade(const Errand& errand, const Outcome& outcome, Time now) {
  Tenancy* tenancy = find_tenancy(errand.tenancy);
  const auto upgrade = upgrades_.find(errand.tenancy);
  if (tenancy == nullptr || upgrade == upgrades_.end() ||
      tenancy->request != std::get<core::Upgrade>(errand.command.operation).id) {
    return;  // given up meanwhile: a Downgrade or a Release is behind it in the same lane
  }
  upgrade->second.on_its_way = false;
  const bool again = std::exchange(upgrade->second.rung, false);
  switch (outcome.status) {
    case Status::granted:
      extend(errand.tenancy, *tenancy, errand.sent, outcome.lease_for, now);
      finish_upgrade(errand.tenancy, outcome.token, now);
      break;
    case Status::queued:
      next_look_ = std::min(next_look_, now + config_.backstop_poll);
      if (again) {
        ask_upgrade(errand.tenancy, upgrade->second);
      }
      break;
    case Status::busy:
      tenancy->reshaping = false;
      fail_upgrade(
          errand.tenancy,
          {ErrorCode::busy,
           upgrade->second.queue ? "another reader waits to become the writer" : "others read, too",
           {}},
          now);
      break;
    case Status::not_held:
      on_gone(errand.tenancy, now);
      break;
    case Status::revoked: {
      const ClaimId claim = upgrade->second.claim;
      fail_upgrade(errand.tenancy, lost(), now);
      lose(claim, LossReason::revoked, now);
      break;
    }
    default: {
      const Error error = outcome.error.value_or(
          Error{ErrorCode::unavailable, "the store did not change the lock's mode", {}});
      tenancy->doubtful = tenancy->doubtful || error.code == ErrorCode::outcome_unknown;
      fail_upgrade(errand.tenancy, error, now);
      push_downgrade(errand.tenancy, *tenancy, nullptr, now);
    }
  }
}

void Coordinator::finish_upgrade(TenancyId id, std::uint64_t token, Time now) {
  auto upgrade = upgrades_.extract(id);
  Tenancy& tenancy = tenancies_.at(id);
  tenancy.reshaping = false;
  claims_.at(upgrade.mapped().claim).shape.mode = Mode::exclusive;
  tenancy.terms.shape.mode = Mode::exclusive;
  set_token(id, tenancy, token);
  reshape(id, Mode::exclusive, now);
  answer(upgrade.mapped().receiver, 0);
}

void Coordinator::fail_upgrade(TenancyId id, Error why, Time now) {
  auto upgrade = upgrades_.extract(id);
  reshape(id, Mode::shared, now);
  answer(upgrade.mapped().receiver, tl::unexpected{std::move(why)});
}

bool Coordinator::upgrades(TenancyId id, ClaimId claim) const {
  const auto upgrade = upgrades_.find(id);
  return upgrade != upgrades_.end() && upgrade->second.claim == claim;
}

void Coordinator::end_upgrade_of_lost(TenancyId id) {
  if (auto upgrade = upgrades_.extract(id)) {
    answer(upgrade.mapped().receiver, tl::unexpected{lost()});
  }
}

void Coordinator::cancel_upgrade(ClaimId id, ErrorCode why, Time now) {
  const auto it = claims_.find(id);
  const auto upgrade = it == claims_.end() ? upgrades_.end() : upgrades_.find(it->second.tenancy);
  if (upgrade == upgrades_.end() || upgrade->second.claim != id) {
    return;
  }
  const TenancyId tenancy = upgrade->first;
  const bool asked = upgrade->second.asked;
  fail_upgrade(tenancy,
               {why,
                why == ErrorCode::cancelled ? "the wait was cancelled; the lock is held as before"
                                            : "others read for longer than the wait",
                {}},
               now);
  if (asked) {
    push_downgrade(tenancy, tenancies_.at(tenancy), nullptr, now);
  }
}

void Coordinator::downgrade(ClaimId id, std::shared_ptr<AnswerReceiver> receiver, Time now) {
  const auto it = claims_.find(id);
  if (it != claims_.end()) {
    lose_if_stale(id, now);
  }
  Tenancy* tenancy = it == claims_.end() ? nullptr : find_tenancy(it->second.tenancy);
  if (tenancy == nullptr || it->second.lease->loss()) {
    answer(receiver, tl::unexpected{lost()});
  } else if (it->second.shape.mode == Mode::shared) {
    answer(receiver, 0);
  } else if (it->second.shape.mode == Mode::permits || it->second.depth > 1) {
    answer(receiver, fail(ErrorCode::invalid_argument,
                          it->second.depth > 1 ? "a lease that is nested keeps its mode"
                                               : "permits have no mode that could be downgraded"));
  } else {
    push_downgrade(it->second.tenancy, *tenancy, std::move(receiver), now);
  }
}

void Coordinator::push_downgrade(TenancyId id, Tenancy& tenancy,
                                 std::shared_ptr<AnswerReceiver> receiver, Time now) {
  tenancy.reshaping = true;
  tenancy.undoing = true;
  outbox_.push({.command = {*tenancy.line->name, core::Downgrade{tenancy.request}},
                .tenancy = id,
                .receiver = std::move(receiver),
                .since = now});
}

void Coordinator::on_downgrade(Errand& errand, const Outcome& outcome, Time now) {
  Tenancy* tenancy = find_tenancy(errand.tenancy);
  if (tenancy == nullptr ||
      tenancy->request != std::get<core::Downgrade>(errand.command.operation).id) {
    answer(errand.receiver, tl::unexpected{lost()});
    return;
  }
  const std::vector<ClaimId> users = tenancy->line->queue.users(errand.tenancy);
  switch (outcome.status) {
    case Status::granted:
      tenancy->undoing = false;
      tenancy->reshaping = upgrades_.contains(errand.tenancy);  // another one, since then
      if (outcome.token != 0 && outcome.token != tenancy->token) {
        set_token(errand.tenancy, *tenancy, outcome.token);
      }
      if (!tenancy->reshaping) {
        for (const ClaimId user : users) {
          claims_.at(user).shape.mode = Mode::shared;
        }
        tenancy->terms.shape.mode = Mode::shared;
        reshape(errand.tenancy, Mode::shared, now);
      }
      answer(errand.receiver, 0);
      ask_upgrade_if_alone(errand.tenancy);
      break;
    case Status::not_held:
      answer(errand.receiver, tl::unexpected{lost()});
      on_gone(errand.tenancy, now);
      break;
    case Status::revoked:
      answer(errand.receiver, tl::unexpected{lost()});
      for (const ClaimId user : users) {
        lose(user, LossReason::revoked, now);
      }
      break;
    default: {
      const Error error = outcome.error.value_or(
          Error{ErrorCode::unavailable, "the store did not change the lock's mode", {}});
      errand.unsure = errand.unsure || error.code == ErrorCode::outcome_unknown;
      tenancy->doubtful = tenancy->doubtful || errand.unsure;
      if (errand.receiver != nullptr && now - errand.since >= config_.patience) {
        answer(std::exchange(errand.receiver, nullptr),
               fail(errand.unsure ? ErrorCode::outcome_unknown : error.code, error.text,
                    error.native));
        if (!errand.unsure) {  // the writer, as its caller was told
          tenancy->undoing = tenancy->reshaping = false;
          break;
        }
      }
      // Until it is known, the lock is ours in one mode or the other.
      retry(std::move(errand), now);
    }
  }
}

bool Coordinator::takes_token(TenancyId id, Tenancy& tenancy, const Outcome& outcome, Time now) {
  // Up to our deadline the store has kept it, so it is the same grant still.
  if (!(tenancy.reshaping || tenancy.doubtful) || now >= tenancy.deadline ||
      outcome.token < tenancy.token) {
    return false;
  }
  if (const auto upgrade = upgrades_.find(id);
      upgrade != upgrades_.end() && upgrade->second.asked) {
    finish_upgrade(id, outcome.token, now);
    return true;
  }
  set_token(id, tenancy, outcome.token);
  if (!tenancy.undoing && tenancy.terms.shape.mode == Mode::shared) {
    push_downgrade(id, tenancy, nullptr, now);  // an Upgrade that came late
  }
  return true;
}

// Each user keeps its place in the block: readers of one grant have tokens of
// their own.
void Coordinator::set_token(TenancyId id, Tenancy& tenancy, std::uint64_t token) {
  for (const ClaimId user : tenancy.line->queue.users(id)) {
    if (config_.tokens) {
      LeaseState& lease = *claims_.at(user).lease;
      lease.set_token(token + (lease.token().value_or(tenancy.token) - tenancy.token));
    }
  }
  tenancy.token = token;
}

void Coordinator::reshape(TenancyId id, Mode mode, Time now) {
  const Tenancy* tenancy = find_tenancy(id);
  if (tenancy == nullptr) {
    return;
  }
  Line& line = *tenancy->line;
  core::Shape shape;
  shape.mode = mode;
  LocalQueue::Steps steps;
  line.queue.reshape(id, shape, now, steps);
  carry_out(line, steps, now);
}

Result<Coordinator::GivenAway> Coordinator::may_give_away(ClaimId id, Time now) {
  const auto it = claims_.find(id);
  if (it != claims_.end()) {
    lose_if_stale(id, now);
  }
  Tenancy* tenancy = it == claims_.end() ? nullptr : find_tenancy(it->second.tenancy);
  if (tenancy == nullptr || it->second.lease->loss()) {
    return fail(ErrorCode::lease_lost, "the lease was lost before it could be handed over");
  }
  const TenancyId held = it->second.tenancy;
  if (it->second.depth > 1 || it->second.line->queue.users(held).size() > 1 || tenancy->reshaping) {
    return fail(ErrorCode::busy, "other threads of this process use the same grant");
  }
  return GivenAway{tenancy->request, it->second.shape};
}

Result<Coordinator::GivenAway> Coordinator::give_away(ClaimId id, Time now) {
  auto given = may_give_away(id, now);
  if (!given) {
    return given;
  }
  const TenancyId held = claims_.at(id).tenancy;
  Line& line = *claims_.at(id).line;
  forget_tenancy(held);
  LocalQueue::Steps steps;
  line.queue.gone(held, now, steps);
  forget_claim(id);
  line.queue.let_go(id, now, steps);
  carry_out(line, steps, now);
  return given;
}

}  // namespace holdfast::client
