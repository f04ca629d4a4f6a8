#include "unit/local_queue_checker.h"

#include <algorithm>
#include <sstream>
#include <type_traits>
#include <variant>

namespace holdfast::test {

using core::ClaimId;
using core::LocalQueue;
using core::TenancyId;
using core::Terms;

core::TenancyId CheckedQueue::next_tenancy_ = 1;

// --- events

ClaimId CheckedQueue::join(const Terms& terms) {
  const ClaimId id = next_claim_++;
  tell("join", id);
  claims_[id].terms = terms;
  joining_ = id;
  LocalQueue::Steps steps;
  queue_.join(id, terms, now_, steps);
  follow(steps);
  joining_ = 0;
  return id;
}

void CheckedQueue::leave(ClaimId claim) {
  tell("leave", claim);
  ClaimView& view = claims_.at(claim);
  const bool in_line = view.fate == Fate::waiting;
  if (in_line) {
    view.fate = Fate::left;
  }
  LocalQueue::Steps steps;
  if (queue_.leave(claim, now_, steps) != in_line) {
    complain("leave() does not know who is in line");
  }
  follow(steps);
}

void CheckedQueue::grant(TenancyId tenancy, core::Duration trusted_for) {
  tell("grant", tenancy);
  TenancyView& view = tenancies_.at(tenancy);
  view.held = true;
  view.granted_at = now_;
  view.trusted_until = now_ + trusted_for;
  LocalQueue::Steps steps;
  queue_.granted(tenancy, view.trusted_until, now_, steps);
  follow(steps, tenancy);
  if (view.users.empty()) {
    complain("a grant that admits nobody");
  }
}

void CheckedQueue::deny(TenancyId tenancy) {
  tell("deny", tenancy);
  LocalQueue::Steps steps;
  const auto told = queue_.denied(tenancy, now_, steps);
  if (!told || claims_.at(*told).fate != Fate::waiting) {
    complain("a denial that reaches nobody who waits");
  } else {
    claims_.at(*told).fate = Fate::denied;
  }
  end(tenancy);
  follow(steps);
}

void CheckedQueue::let_go(ClaimId claim) {
  tell("let go", claim);
  ClaimView& view = claims_.at(claim);
  view.fate = Fate::let_go;
  std::erase(tenancies_.at(view.tenancy).users, claim);
  LocalQueue::Steps steps;
  queue_.let_go(claim, now_, steps);
  follow(steps);
}

void CheckedQueue::close(TenancyId tenancy) {
  tell("close", tenancy);
  tenancies_.at(tenancy).closed = true;
  LocalQueue::Steps steps;
  queue_.close(tenancy, now_, steps);
  follow(steps);
}

void CheckedQueue::gone(TenancyId tenancy) {
  tell("gone", tenancy);
  tenancies_.at(tenancy).closed = true;
  tenancies_.at(tenancy).gone = true;
  LocalQueue::Steps steps;
  queue_.gone(tenancy, now_, steps);
  follow(steps);
}

void CheckedQueue::renew(TenancyId tenancy, core::Duration trusted_for) {
  tell("renew", tenancy);
  core::Time& until = tenancies_.at(tenancy).trusted_until;
  until = std::max(until, now_ + trusted_for);
  queue_.renewed(tenancy, until);
  check_state();
}

// The owner of the queue keeps an alarm: it calls when the head's hope ends.
void CheckedQueue::pass(core::Duration time) {
  tell("time passes", static_cast<std::uint64_t>(time.count()));
  now_ += time;
  LocalQueue::Steps steps;
  if (queue_.hopes_until() <= now_) {
    queue_.stop_hoping(now_, steps);
  }
  follow(steps);
}

void CheckedQueue::pass_unnoticed(core::Duration time) {
  tell("time passes unnoticed", static_cast<std::uint64_t>(time.count()));
  now_ += time;
}

void CheckedQueue::go_home() {
  while (!admitted().empty() || !waiting().empty()) {
    for (const ClaimId claim : waiting()) {
      if (fate(claim) == Fate::waiting) {
        leave(claim);
      }
    }
    for (const ClaimId claim : admitted()) {
      let_go(claim);
    }
    if (!complaints_.empty()) {
      return;
    }
  }
  if (!queue_.idle()) {
    complain("everybody went home and the queue is not idle");
  }
  for (const auto& [id, tenancy] : tenancies_) {
    if (!tenancy.ended && !tenancy.gone) {
      complain("tenancy " + std::to_string(id) + " was never given back");
    }
  }
}

// --- steps

void CheckedQueue::follow(const LocalQueue::Steps& steps, TenancyId just_granted) {
  for (const LocalQueue::Step& step : steps) {
    std::visit(
        [&](const auto& what) {
          if constexpr (std::is_same_v<std::decay_t<decltype(what)>, LocalQueue::Admit>) {
            on(what, just_granted);
          } else {
            on(what);
          }
        },
        step);
  }
  check_state();
}

void CheckedQueue::on(const LocalQueue::Stand& step) {
  if (!tenancies_.empty() && tenancies_.rbegin()->first >= step.tenancy) {
    complain("a tenancy's id is used twice");
  }
  TenancyView view;
  view.terms = step.terms;
  const bool strict = step.terms.hand_over == 0;
  if (strict) {
    view.strictly_for = joining_;
    if (joining_ == 0 || !claims_.at(joining_).strict() || step.after) {
      complain("a strict claim stands for itself, when it joins, and takes nobody's place");
    }
  } else {
    if (!head() || !(claims_.at(*head()).terms.shape == step.terms.shape)) {
      complain("a request that is not the head's");
    }
    for (const TenancyId id : asked()) {
      if (tenancies_.at(id).strictly_for == 0) {
        complain("a second request while one stands");
      }
    }
  }
  if (step.after) {
    ++requeues_;
    end(*step.after);
  }
  tenancies_.emplace(step.tenancy, view);
}

void CheckedQueue::on(const LocalQueue::GiveBack& step) {
  end(step.tenancy);
}

void CheckedQueue::end(TenancyId id) {
  const auto it = tenancies_.find(id);
  if (it == tenancies_.end() || it->second.ended || it->second.gone) {
    complain("given back twice, or never asked for");
    return;
  }
  if (!it->second.users.empty()) {
    complain("given back under its user");
  }
  it->second.ended = true;
}

void CheckedQueue::on(const LocalQueue::Admit& step, TenancyId just_granted) {
  ClaimView& claim = claims_.at(step.claim);
  TenancyView& tenancy = tenancies_.at(step.tenancy);
  if (claim.fate != Fate::waiting) {
    complain("admitted though it does not wait");
  }
  if (!tenancy.held || tenancy.ended) {
    complain("admitted to a tenancy that is not held");
  }
  if (tenancy.strictly_for != 0 ? tenancy.strictly_for != step.claim : step.claim != head()) {
    complain("admitted out of turn");
  }
  if (tenancy.terms.shape.mode != Mode::shared && !tenancy.users.empty()) {
    complain("two users of one tenancy that is for one");
  }
  if (tenancy.last_offset || step.tenancy != just_granted) {
    check_hand_over(step.claim, tenancy, step.offset);
  } else if (step.offset != 0) {
    complain("the first user gets the store's own token");
  }
  tenancy.last_offset = step.offset;
  tenancy.users.push_back(step.claim);
  claim.fate = Fate::admitted;
  claim.tenancy = step.tenancy;
  claim.offset = step.offset;
}

void CheckedQueue::check_hand_over(ClaimId id, const TenancyView& tenancy, std::uint32_t offset) {
  const Terms& terms = claims_.at(id).terms;
  if (!could_take(tenancy, terms)) {
    complain("a hand-over that may not be");
  }
  if (!tenancy.last_offset || offset != *tenancy.last_offset + 1) {
    complain("tokens of hand-overs rise by one");
  }
  if (offset > terms.hand_over || offset >= core::kTokenStride) {
    complain("more hand-overs than allowed");
  }
}

bool CheckedQueue::could_take(const TenancyView& tenancy, const Terms& terms) const {
  return tenancy.strictly_for == 0 && tenancy.held && !tenancy.closed && !tenancy.ended &&
         terms.hand_over > 0 && tenancy.terms.passes_to(terms) &&
         tenancy.last_offset.value_or(0) < terms.hand_over &&
         now_ < tenancy.trusted_until - terms.grace && now_ < tenancy.granted_at + kHandOverTime;
}

void CheckedQueue::on(const LocalQueue::TurnAway& step) {
  ClaimView& claim = claims_.at(step.claim);
  if (claim.fate != Fate::waiting || claim.terms.queue) {
    complain("turned away though it would wait, or does not wait any more");
  }
  const bool others = head() && *head() != step.claim;
  const bool taken = std::ranges::any_of(tenancies_, [](const auto& entry) {
    const TenancyView& tenancy = entry.second;
    return tenancy.held && !tenancy.ended && !tenancy.closed &&
           tenancy.terms.shape.mode == Mode::exclusive;
  });
  if (!others && !taken) {
    complain("turned away without asking the store, though nobody here has the lock");
  }
  claim.fate = Fate::turned_away;
}

// --- state

std::optional<ClaimId> CheckedQueue::head() const {
  for (const auto& [id, claim] : claims_) {
    if (claim.fate == Fate::waiting && !claim.strict()) {
      return id;
    }
  }
  return std::nullopt;
}

void CheckedQueue::check_state() {
  const auto line = std::ranges::count_if(claims_, [](const auto& entry) {
    return entry.second.fate == Fate::waiting && !entry.second.strict();
  });
  if (queue_.waiting() != static_cast<std::size_t>(line)) {
    complain("waiting() is wrong");
  }
  bool busy = line > 0;
  std::optional<TenancyId> first_asked;
  for (auto& [id, tenancy] : tenancies_) {
    if (tenancy.gone && tenancy.users.empty()) {
      tenancy.ended = true;
    }
    if (tenancy.ended) {
      continue;
    }
    busy = true;
    if (queue_.users(id) != tenancy.users) {
      complain("users() is wrong");
    }
    const auto stands_for = queue_.stands_for(id);
    const auto expected = tenancy.strictly_for != 0 ? tenancy.strictly_for : head();
    if (tenancy.held ? stands_for.has_value() : stands_for != expected) {
      complain("stands_for() is wrong");
    }
    if (tenancy.held && tenancy.users.empty()) {
      complain("a lock that is held for nobody");
    }
    if (!tenancy.held && !first_asked) {
      first_asked = id;
    }
  }
  if (queue_.first_waiting() != first_asked) {
    complain("first_waiting() is wrong");
  }
  if (queue_.idle() == busy) {
    complain("idle() is wrong");
  }
  check_head();
}

// Nobody waits for what cannot come: the head stands in the store's queue, or a
// lock of ours can still pass to it.
void CheckedQueue::check_head() {
  const auto first = head();
  const auto stands = std::ranges::find_if(tenancies_, [](const auto& entry) {
    return !entry.second.held && !entry.second.ended && entry.second.strictly_for == 0;
  });
  if (!first) {
    if (stands != tenancies_.end()) {
      complain("a request stands for nobody");
    }
    return;
  }
  const Terms& terms = claims_.at(*first).terms;
  if (stands != tenancies_.end()) {
    const Terms& asked = stands->second.terms;
    if (!asked.passes_to(terms) || asked.queue != terms.queue || asked.barge != terms.barge) {
      complain("the request that stands is not what the head wants");
    }
    return;
  }
  const bool hope = std::ranges::any_of(tenancies_, [&](const auto& entry) {
    return entry.second.terms.shape.mode == Mode::exclusive && could_take(entry.second, terms);
  });
  if (!hope || !terms.queue) {
    complain("the head waits for nothing");
  }
  if (queue_.hopes_until() == base::kNever || queue_.hopes_until() <= now_) {
    complain("nobody will wake the head when its hope ends");
  }
}

std::vector<ClaimId> CheckedQueue::waiting() const {
  std::vector<ClaimId> ids;
  for (const auto& [id, claim] : claims_) {
    if (claim.fate == Fate::waiting) {
      ids.push_back(id);
    }
  }
  return ids;
}

std::vector<ClaimId> CheckedQueue::admitted() const {
  std::vector<ClaimId> ids;
  for (const auto& [id, claim] : claims_) {
    if (claim.fate == Fate::admitted) {
      ids.push_back(id);
    }
  }
  return ids;
}

std::vector<TenancyId> CheckedQueue::asked() const {
  std::vector<TenancyId> ids;
  for (const auto& [id, tenancy] : tenancies_) {
    if (!tenancy.held && !tenancy.ended) {
      ids.push_back(id);
    }
  }
  return ids;
}

std::vector<TenancyId> CheckedQueue::held() const {
  std::vector<TenancyId> ids;
  for (const auto& [id, tenancy] : tenancies_) {
    if (tenancy.held && !tenancy.ended && !tenancy.gone) {
      ids.push_back(id);
    }
  }
  return ids;
}

void CheckedQueue::tell(const char* event, std::uint64_t subject) {
  story_.emplace_back(event, subject);
}

void CheckedQueue::complain(const std::string& what) {
  complaints_.push_back(what);
}

std::string CheckedQueue::story() const {
  std::ostringstream out;
  for (const auto& [event, subject] : story_) {
    out << event << ' ' << subject << "; ";
  }
  if (!complaints_.empty()) {
    out << "=> " << complaints_.front();
  }
  return out.str();
}

}  // namespace holdfast::test
