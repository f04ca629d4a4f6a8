#include "simulation/witness.h"

#include <algorithm>

#include "simulation/words.h"

namespace holdfast::sim {
namespace {

std::string describe(const Hold& hold) {
  return hold.call->life->name() + "'s lease of " + hold.name() + " (token " +
         std::to_string(hold.state->token().value_or(0)) + ")";
}

std::string describe(const Call& call) {
  return call.life->name() + "'s call " + std::to_string(call.number) + " for " + call.wish.name;
}

}  // namespace

std::shared_ptr<Call> Witness::calls(const std::shared_ptr<Life>& life, const client::Wish& wish) {
  auto call = std::make_shared<Call>();
  call->life = life;
  call->number = ++next_call_;
  call->wish = wish;
  call->begun = stage_.now();
  waiting_.push_back(call);
  all_calls_.push_back(call);
  lives_[life->session] = life;
  return call;
}

void Witness::delivered(Call& call, const Result<std::shared_ptr<client::LeaseState>>& result) {
  if (std::exchange(call.finished, true)) {
    stage_.violate("S5", describe(call) + " was answered twice");
    return;
  }
  if (result) {
    granted(call, *result);
  } else {
    refused(call, result.error());
  }
  std::erase_if(waiting_, [&](const auto& it) { return it.get() == &call; });
  call.ended = stage_.now();
  last_use_[{call.life->session, call.wish.name}] = stage_.now();
}

void Witness::granted(Call& call, const std::shared_ptr<client::LeaseState>& state) {
  const Time local = call.life->clock.at(stage_.now());
  if (call.cancelled) {
    stage_.violate("S5", describe(call) + " was granted after it was cancelled");
  }
  const bool fresh = stage_.scenario.slow_to_tell == 0 && !state->loss();
  if (state->deadline() <= local && fresh) {
    stage_.violate("S6", describe(call) + " was given a lease that is over");
  }
  if (const auto outer = find(*state)) {
    ++outer->depth;
    return;
  }
  check_local_order(call);
  const auto self =
      std::ranges::find_if(waiting_, [&](const auto& it) { return it.get() == &call; });
  auto hold = std::make_shared<Hold>();
  hold->state = state;
  hold->call = *self;
  hold->delivered = stage_.now();
  hold->alive_until = call.life->clock.truth_of(state->deadline());
  Grant* grant = ledger_.find(call.wish.name, state->token().value_or(0));
  if (grant == nullptr || grant->session != call.life->session) {
    stage_.violate("S3", describe(*hold) + " has a token that the store did not give it");
  } else {
    check_tenancy(*hold, *grant);
  }
  for (const auto& other : all_) {
    if (other->name() == hold->name() && other->state->token() == state->token()) {
      stage_.violate("S3", describe(*hold) + " has the token of " + describe(*other));
    }
  }
  open_.push_back(hold);
  all_.push_back(hold);
}

// What one stay of the process at the lock may do: pass it on a few times, for
// a short time, and never after a loss.
void Witness::check_tenancy(const Hold& hold, Grant& grant) {
  const std::uint64_t token = hold.state->token().value_or(0);
  const std::uint64_t first = ledger_.block_of(hold.name(), token);
  const std::uint64_t passed = token - first;
  grant.delivered = true;
  if (passed == 0) {
    return;
  }
  if (passed > hold.call->wish.terms.hand_over) {
    stage_.violate("L2", describe(hold) + " was passed on too often");
  }
  for (const auto& earlier : all_) {
    const bool same = earlier->name() == hold.name() && earlier->call->life == hold.call->life &&
                      ledger_.find(hold.name(), earlier->state->token().value_or(0)) == &grant;
    if (!same) {
      continue;
    }
    if (earlier->lost) {
      stage_.violate("loss", describe(hold) + " was passed on by a lease that was lost");
    }
    const LocalClock& clock = hold.call->life->clock;
    if (clock.at(stage_.now()) - clock.at(earlier->delivered) >= kHandOverTime &&
        stage_.scenario.slow_to_tell == 0) {
      if (earlier->state->token() == first) {
        stage_.violate("L2", describe(hold) + " was passed on for too long");
      }
    }
  }
}

void Witness::check_local_order(const Call& call) {
  if (!call.in_line()) {
    return;
  }
  for (const auto& other : waiting_) {
    const bool before = other->number < call.number && other->life == call.life &&
                        other->wish.name == call.wish.name && other->in_line();
    if (before && !other->finished) {
      stage_.violate("L2", describe(call) + " overtook " + describe(*other));
    }
  }
}

void Witness::refused(const Call& call, const Error& error) {
  const Time calm_since = call.life->disturbed_until;
  bool justified = false;
  switch (error.code) {
    case ErrorCode::busy:
      justified = !call.wish.terms.queue && !call.wish.adopts;
      break;
    case ErrorCode::lease_lost:
      justified = call.wish.adopts && stage_.now() >= call.code_good_until;
      break;
    case ErrorCode::timed_out:
    case ErrorCode::cancelled:
      justified = call.cancelled == error.code;
      break;
    case ErrorCode::outcome_unknown:
      check_patience(call);
      [[fallthrough]];
    case ErrorCode::unavailable:
      justified = calm_since >= call.begun || !stage_.scenario.quick_for(call.wish.terms.ttl);
      break;
    case ErrorCode::invalid_argument:
      justified = call.may_be_refused;
      break;
    default:
      break;
  }
  if (!justified) {
    stage_.violate("errors", describe(call) + " failed without a reason: " +
                                 std::string{to_string(error.code)} + ", " + error.text);
  }
}

// An unanswered question is repeated for a while before its caller hears of it.
void Witness::check_patience(const Call& call) {
  const LocalClock& clock = call.life->clock;
  // Whoever stood in line before it may have used the patience up.
  const bool alone = std::ranges::none_of(all_calls_, [&](const auto& other) {
    return other->life == call.life && other->wish.name == call.wish.name &&
           other->number < call.number && other->ended > call.begun - stage_.scenario.patience;
  });
  if (alone && clock.at(stage_.now()) - clock.at(call.begun) < stage_.scenario.patience) {
    stage_.violate("errors", describe(call) + " was given up before its patience ran out");
  }
}

std::optional<core::RequestId> Witness::request_of(const client::LeaseState& state) {
  const Grant* grant = ledger_.find(state.name, state.token().value_or(0));
  return grant == nullptr ? std::nullopt : std::optional{grant->id};
}

// What lost() gave up is not renewed; what was on its way then may arrive.
void Witness::renews(const Life& life, const core::RequestId& request) {
  const Hold* last = nullptr;
  for (const auto& hold : all_) {
    if (hold->call->life.get() != &life || request_of(*hold->state) != request) {
      continue;
    }
    const Time over = hold->given ? hold->let_go : hold->lost_at;
    const bool given_up = (hold->lost || hold->given) && life.disturbed_until < over &&
                          over + stage_.scenario.request_timeout < stage_.now();
    if (!given_up) {
      return;
    }
    last = hold.get();
  }
  if (last != nullptr) {
    stage_.violate("loss", describe(*last) + " was renewed after it was given up");
  }
}

// A waiter that lives and can speak keeps its place.
void Witness::evicted(const std::string& name, const core::Waiter& waiter) {
  const auto known = lives_.find(waiter.session);
  if (known == lives_.end() || !stage_.scenario.quick_for(waiter.ttl)) {
    return;
  }
  const Life& life = *known->second;
  const bool quiet = life.disturbed_until > waiter.expires - waiter.window * 2;
  if (life.alive && !life.paused && !quiet) {
    stage_.violate("L2", life.name() + " lost its place in the queue of " + name +
                             " though nothing was wrong");
  }
}

std::shared_ptr<Hold> Witness::find(const client::LeaseState& state) {
  const auto it =
      std::ranges::find_if(open_, [&](const auto& hold) { return hold->state.get() == &state; });
  return it == open_.end() ? nullptr : *it;
}

void Witness::releases(const client::LeaseState& state) {
  const auto hold = find(state);
  if (hold == nullptr || --hold->depth > 0) {
    return;
  }
  hold->ended = std::min(hold->ended, stage_.now());
  hold->let_go = stage_.now();
  last_use_[{hold->call->life->session, hold->name()}] = stage_.now();
  std::erase(open_, hold);
}

void Witness::lost(const client::LeaseState& state) {
  const auto it =
      std::ranges::find_if(all_, [&](const auto& hold) { return hold->state.get() == &state; });
  if (it == all_.end()) {
    stage_.violate("loss", "a lease was lost that nobody was given");
    return;
  }
  Hold& hold = **it;
  if (std::exchange(hold.lost, true)) {
    stage_.violate("loss", describe(hold) + " was lost twice");
  }
  hold.lost_at = stage_.now();
  check_needless_loss(hold);
}

void Witness::check_needless_loss(const Hold& hold) {
  const Life& life = *hold.call->life;
  const client::Wish& wish = hold.call->wish;
  const Time local = life.clock.at(stage_.now());
  const bool held_too_long =
      wish.max_hold && local - life.clock.at(hold.delivered) >= *wish.max_hold;
  const bool calm = life.disturbed_until <= hold.delivered - stage_.scenario.longest_ttl() &&
                    stage_.scenario.quick_for(wish.terms.ttl);
  // Long enough after the last trouble for another try.
  const bool recovered = stage_.now() - life.disturbed_until > wish.terms.ttl / 5 &&
                         hold.delivered + wish.terms.ttl / 2 < stage_.now() &&
                         stage_.scenario.quick_for(wish.terms.ttl);
  if (hold.state->loss() == LossReason::not_renewed && wish.terms.renew && !held_too_long &&
      !hold.call->sick_since && (calm || recovered)) {
    stage_.violate("loss", describe(hold) + " was lost although nothing was wrong");
  }
  const Grant* grant = ledger_.find(hold.name(), hold.state->token().value_or(0));
  const bool forced = grant != nullptr && grant->end == End::forced;
  if (hold.state->loss() == LossReason::expired && !forced && calm && hold.ended > stage_.now() &&
      hold.alive_until > stage_.now()) {
    stage_.violate("loss", describe(hold) + " expired although nothing was wrong");
  }
}

void Witness::answered(const Hold& hold, const Result<std::uint32_t>& result) {
  const Grant* grant = ledger_.find(hold.name(), hold.state->token().value_or(0));
  const bool ended = grant != nullptr && grant->end != End::none && grant->end != End::released;
  const bool was_over =
      ended && grant->ended < hold.ended && !ledger_.granted_again(hold.name(), *grant);
  const bool calm = hold.call->life->disturbed_until <= hold.ended;
  // Who forces a lock does not wait until its holder knows.
  const bool knew = hold.state->deadline() == Time{};
  // Its own clock told it, whatever became of its messages.
  const bool late = hold.alive_until <= hold.let_go;
  if (result && was_over && (calm || late) && (knew || grant->end == End::expired)) {
    stage_.violate("release", describe(hold) + " was over, but its release says all is well");
  }
  if (!result && calm && !ended && hold.alive_until > hold.ended) {
    stage_.violate("release", describe(hold) + " was alive, but its release says: " +
                                  std::string{to_string(result.error().code)});
  }
}

void Witness::crashed(const Life& life) {
  std::erase_if(waiting_, [&](const auto& call) { return call->life.get() == &life; });
  std::erase_if(open_, [&](const auto& hold) {
    if (hold->call->life.get() != &life) {
      return false;
    }
    hold->ended = std::min(hold->ended, stage_.now());
    return true;
  });
}

void Witness::observe(const Life& life, Time next_due, bool ticked) {
  for (const auto& hold : open_) {
    if (hold->call->life.get() == &life) {
      check_belief(*hold, stage_.now());
      check_warning(*hold, next_due, ticked);
      if (hold->state->loss() && !hold->lost && stage_.scenario.slow_to_tell == 0) {
        stage_.violate("loss", describe(*hold) + " is lost, but its user was not told");
      }
    }
  }
}

// S6: the process stops believing before the store lets go.
void Witness::check_belief(Hold& hold, Time now) {
  const Time deadline = hold.state->deadline();
  if (deadline == Time{}) {
    hold.ended = std::min(hold.ended, now);  // it was told
    return;
  }
  hold.alive_until = hold.call->life->clock.truth_of(deadline);
  const Grant* grant = ledger_.find(hold.name(), hold.state->token().value_or(0));
  if (grant != nullptr) {
    check_bounds(hold, *grant);
  }
  if (grant == nullptr || grant->end == End::forced || hold.alive_until <= now) {
    return;
  }
  if (grant->end != End::none) {
    stage_.violate("S6", describe(hold) + " is believed in, but has ended at the store");
  } else if (hold.alive_until > grant->expires) {
    stage_.violate("S6", describe(hold) + " is believed in " +
                             words(hold.alive_until - grant->expires) + " longer than it lasts");
  }
}

// What the user said about renewal is kept.
void Witness::check_bounds(const Hold& hold, const Grant& grant) {
  const client::Wish& wish = hold.call->wish;
  const Duration ttl = wish.terms.ttl;
  const Duration rounding = ttl / 50;  // their clock is not the true time
  if (!wish.terms.renew && hold.alive_until > std::max(grant.granted + ttl, hold.delivered) + ttl) {
    stage_.violate("bounds", describe(hold) + " was renewed against its user's will");
  }
  if (wish.max_hold) {
    const Duration most = *wish.max_hold + *wish.max_hold / 50 + ttl + rounding;
    if (hold.alive_until > std::max(hold.delivered + most, grant.granted + ttl)) {
      stage_.violate("bounds", describe(hold) + " was renewed beyond max_hold");
    }
  }
  if (hold.call->sick_since &&
      hold.alive_until > std::max(*hold.call->sick_since, grant.granted) + ttl + rounding) {
    stage_.violate("bounds", describe(hold) + " was renewed although it is unwell");
  }
}

void Witness::check_warning(const Hold& hold, Time next_due, bool ticked) {
  if (hold.state->loss()) {
    return;
  }
  const Time warn_at = hold.state->deadline() - hold.call->wish.terms.grace;
  if (next_due > warn_at) {
    stage_.violate("loss", describe(hold) + " would not be warned in time");
  }
  if (ticked && warn_at <= hold.call->life->clock.at(stage_.now())) {
    stage_.violate("loss", describe(hold) + " was not warned in time");
  }
}

// S1: a resource that takes no token lower than the highest it has seen.
void Witness::write(const Hold& hold) {
  if (hold.shape().mode != Mode::exclusive) {
    return;
  }
  const std::uint64_t token = hold.state->token().value_or(0);
  const Grant* grant = ledger_.find(hold.name(), token);
  Resource& resource = resources_[hold.name()];
  const bool accepted = token >= resource.highest;
  const bool holds = stage_.now() < std::min(hold.ended, hold.alive_until) &&
                     (grant == nullptr || grant->end != End::forced || grant->ended > stage_.now());
  if (!accepted) {
    if (holds) {
      stage_.violate("S1", describe(hold) + " holds the lock, but its write was refused");
    }
    return;
  }
  resource.highest = token;
  const auto [writer, first] = resource.writers.try_emplace(token, hold.state.get());
  if (!first && writer->second != hold.state.get()) {
    stage_.violate("S1", describe(hold) + " wrote with somebody else's token");
  }
  const std::uint64_t order = grant == nullptr ? 0 : grant->order;
  if (order < resource.order) {
    stage_.violate("S1", describe(hold) + " wrote after its successor");
  }
  resource.order = std::max(resource.order, order);
}

}  // namespace holdfast::sim
