#include "core/local_queue.h"

#include <algorithm>
#include <iterator>

namespace holdfast::core {
namespace {

bool excludes_itself(const Terms& terms) {
  return terms.shape.mode == Mode::exclusive;
}

// May a tenancy that was asked for one claim serve the other?
bool stands_equally(const Terms& asked, const Terms& wanted) {
  return asked.passes_to(wanted) && asked.queue == wanted.queue && asked.barge == wanted.barge;
}

}  // namespace

bool LocalQueue::Users::contain(ClaimId claim) const {
  return first_ == claim || std::ranges::find(others_, claim) != others_.end();
}

void LocalQueue::Users::add(ClaimId claim) {
  if (first_ == 0) {
    first_ = claim;
    return;
  }
  auto last = others_.before_begin();
  while (std::next(last) != others_.end()) {
    ++last;
  }
  others_.insert_after(last, claim);
}

void LocalQueue::Users::remove(ClaimId claim) {
  if (first_ != claim) {
    others_.remove(claim);
  } else if (others_.empty()) {
    first_ = 0;
  } else {
    first_ = others_.front();
    others_.pop_front();
  }
}

std::vector<ClaimId> LocalQueue::Users::all() const {
  std::vector<ClaimId> all(others_.begin(), others_.end());
  if (first_ != 0) {
    all.insert(all.begin(), first_);
  }
  return all;
}

LocalQueue::Tenancy* LocalQueue::find(TenancyId id) {
  const auto it = std::ranges::find(tenancies_, id, &Tenancy::id);
  return it == tenancies_.end() ? nullptr : &*it;
}

const LocalQueue::Tenancy* LocalQueue::find(TenancyId id) const {
  const auto it = std::ranges::find(tenancies_, id, &Tenancy::id);
  return it == tenancies_.end() ? nullptr : &*it;
}

void LocalQueue::erase(TenancyId id) {
  std::erase_if(tenancies_, [id](const Tenancy& tenancy) { return tenancy.id == id; });
}

LocalQueue::Tenancy* LocalQueue::standing() {
  const auto it = std::ranges::find_if(tenancies_, &Tenancy::stands_for_line);
  return it == tenancies_.end() ? nullptr : &*it;
}

Time LocalQueue::Tenancy::passes_until(const Terms& next) const noexcept {
  const bool may = held && !closed && !strict && passed < next.hand_over && terms.passes_to(next);
  return may ? std::min(granted_at + kHandOverTime, trusted_until - next.grace) : Time::min();
}

// A tenancy that can take one more user with these terms, without the store.
LocalQueue::Tenancy* LocalQueue::open_for(const Terms& terms, Time now) {
  const auto it = std::ranges::find_if(tenancies_, [&](const Tenancy& tenancy) {
    const bool room = tenancy.users.empty() || terms.shape.mode == Mode::shared;
    return room && now < tenancy.passes_until(terms);
  });
  return it == tenancies_.end() ? nullptr : &*it;
}

// Is it worth waiting for a hand-over? Not once the bound is reached: then the
// line must stand in the store's queue like everybody else.
Time LocalQueue::passes_until(const Terms& next) const {
  Time until = Time::min();
  for (const Tenancy& tenancy : tenancies_) {
    if (excludes_itself(tenancy.terms)) {
      until = std::max(until, tenancy.passes_until(next));
    }
  }
  return until;
}

Time LocalQueue::hopes_until() const {
  const bool hoping = !line_.empty() && std::ranges::none_of(tenancies_, &Tenancy::stands_for_line);
  return hoping ? passes_until(line_.front().terms) : base::kNever;
}

// A tenancy that may be lost does not count: the store may have freed the lock.
bool LocalQueue::taken_by_us() const {
  return std::ranges::any_of(tenancies_, [](const Tenancy& tenancy) {
    return tenancy.held && !tenancy.closed && excludes_itself(tenancy.terms);
  });
}

LocalQueue::Tenancy& LocalQueue::stand(const Claim& claim, bool strict,
                                       std::optional<TenancyId> after, Steps& steps) {
  Tenancy tenancy{.id = (*next_tenancy_)++, .terms = claim.terms, .users = {}};
  tenancy.stands_for = claim.id;
  tenancy.strict = strict;
  steps.emplace_back(Stand{tenancy.id, claim.terms, after});
  return tenancies_.emplace_back(std::move(tenancy));
}

void LocalQueue::admit(Tenancy& tenancy, ClaimId claim, Steps& steps) {
  tenancy.users.add(claim);
  steps.emplace_back(Admit{claim, tenancy.id, tenancy.passed});
}

void LocalQueue::admit_from_line(Time now, Steps& steps) {
  while (!line_.empty()) {
    Tenancy* open = open_for(line_.front().terms, now);
    if (open == nullptr) {
      return;
    }
    ++open->passed;
    admit(*open, line_.front().id, steps);
    line_.pop_front();
  }
}

// Brings the line into a state where its head either was admitted, waits for a
// hand-over that can still happen, or stands in the store's queue.
void LocalQueue::serve(Time now, Steps& steps) {
  for (;;) {
    admit_from_line(now, steps);
    Tenancy* standing_now = standing();
    if (line_.empty()) {
      if (standing_now != nullptr) {
        steps.emplace_back(GiveBack{standing_now->id});
        erase(standing_now->id);
      }
      return;
    }
    const Claim& head = line_.front();
    if (standing_now != nullptr) {
      if (standing_now->stands_for == head.id) {
        return;
      }
      // A try stands for its own claim alone: its "busy" is nobody else's.
      if (head.terms.queue && stands_equally(standing_now->terms, head.terms)) {
        standing_now->stands_for = head.id;
        return;
      }
      steps.emplace_back(GiveBack{standing_now->id});
      erase(standing_now->id);
    }
    if (!head.terms.queue && taken_by_us()) {
      steps.emplace_back(TurnAway{head.id});
      line_.pop_front();
      continue;
    }
    if (now >= passes_until(head.terms)) {
      stand(head, false, std::nullopt, steps);
    }
    return;
  }
}

void LocalQueue::join(ClaimId claim, const Terms& terms, Time now, Steps& steps) {
  if (terms.hand_over == 0) {
    stand({claim, terms}, true, std::nullopt, steps);
    return;
  }
  // A try does not line up: with others in front it would be waiting.
  if (!terms.queue && !line_.empty()) {
    steps.emplace_back(TurnAway{claim});
    return;
  }
  line_.push_back({claim, terms});
  serve(now, steps);
}

bool LocalQueue::leave(ClaimId claim, Time now, Steps& steps) {
  const auto strict = std::ranges::find_if(tenancies_, [claim](const Tenancy& tenancy) {
    return tenancy.strict && !tenancy.held && tenancy.stands_for == claim;
  });
  if (strict != tenancies_.end()) {
    steps.emplace_back(GiveBack{strict->id});
    tenancies_.erase(strict);
    return true;
  }
  const auto it = std::ranges::find(line_, claim, &Claim::id);
  if (it == line_.end()) {
    return false;
  }
  line_.erase(it);
  serve(now, steps);
  return true;
}

void LocalQueue::granted(TenancyId id, Time trusted_until, Time now, Steps& steps) {
  Tenancy* tenancy = find(id);
  if (tenancy == nullptr) {
    return;
  }
  tenancy->held = true;
  tenancy->granted_at = now;
  tenancy->trusted_until = trusted_until;
  admit(*tenancy, tenancy->stands_for, steps);
  if (!tenancy->strict) {
    std::erase_if(line_, [&](const Claim& claim) { return claim.id == tenancy->stands_for; });
  }
  serve(now, steps);
}

void LocalQueue::renewed(TenancyId id, Time trusted_until) {
  if (Tenancy* tenancy = find(id); tenancy != nullptr) {
    tenancy->trusted_until = trusted_until;
  }
}

std::optional<ClaimId> LocalQueue::denied(TenancyId id, Time now, Steps& steps) {
  const Tenancy* tenancy = find(id);
  if (tenancy == nullptr) {
    return std::nullopt;
  }
  const ClaimId claim = tenancy->stands_for;
  erase(id);
  std::erase_if(line_, [claim](const Claim& waiting) { return waiting.id == claim; });
  serve(now, steps);
  return claim;
}

void LocalQueue::let_go(ClaimId claim, Time now, Steps& steps) {
  const auto it = std::ranges::find_if(
      tenancies_, [claim](const Tenancy& tenancy) { return tenancy.users.contain(claim); });
  if (it == tenancies_.end()) {
    return;
  }
  it->users.remove(claim);
  admit_from_line(now, steps);
  if (!it->users.empty()) {
    serve(now, steps);
    return;
  }
  const TenancyId id = it->id;
  const bool tell_store = !it->gone;
  tenancies_.erase(it);
  if (!tell_store) {
    serve(now, steps);
    return;
  }
  const bool head_needs_store = !line_.empty() && line_.front().terms.queue &&
                                standing() == nullptr && now >= passes_until(line_.front().terms);
  if (head_needs_store) {
    stand(line_.front(), false, id, steps);
  } else {
    steps.emplace_back(GiveBack{id});
    serve(now, steps);
  }
}

void LocalQueue::reshape(TenancyId id, const Shape& shape, Time now, Steps& steps) {
  if (Tenancy* tenancy = find(id); tenancy != nullptr) {
    tenancy->terms.shape = shape;
    serve(now, steps);
  }
}

void LocalQueue::close(TenancyId id, Time now, Steps& steps) {
  if (Tenancy* tenancy = find(id); tenancy != nullptr) {
    tenancy->closed = true;
    serve(now, steps);
  }
}

void LocalQueue::gone(TenancyId id, Time now, Steps& steps) {
  Tenancy* tenancy = find(id);
  if (tenancy == nullptr) {
    return;
  }
  tenancy->closed = true;
  tenancy->gone = true;
  if (tenancy->users.empty()) {
    erase(id);
  }
  serve(now, steps);
}

std::vector<ClaimId> LocalQueue::users(TenancyId id) const {
  const Tenancy* tenancy = find(id);
  return tenancy == nullptr ? std::vector<ClaimId>{} : tenancy->users.all();
}

std::optional<ClaimId> LocalQueue::stands_for(TenancyId id) const {
  const Tenancy* tenancy = find(id);
  return tenancy == nullptr || tenancy->held ? std::nullopt : std::optional{tenancy->stands_for};
}

bool LocalQueue::is_full() const {
  if (line_.size() + tenancies_.size() <= kMaxWaiters) {
    return false;  // the rule, and no need to count
  }
  const auto standing = std::ranges::count(tenancies_, false, &Tenancy::held);
  return line_.size() + static_cast<std::size_t>(standing) >= kMaxWaiters;
}

std::vector<ClaimId> LocalQueue::in_line() const {
  std::vector<ClaimId> claims;
  for (const Claim& claim : line_) {
    claims.push_back(claim.id);
  }
  for (const Tenancy& tenancy : tenancies_) {
    if (tenancy.strict && !tenancy.held) {
      claims.push_back(tenancy.stands_for);
    }
  }
  return claims;
}

std::optional<TenancyId> LocalQueue::first_waiting() const {
  const auto it = std::ranges::find(tenancies_, false, &Tenancy::held);
  return it == tenancies_.end() ? std::nullopt : std::optional{it->id};
}

}  // namespace holdfast::core
