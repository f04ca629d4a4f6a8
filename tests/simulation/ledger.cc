#include "simulation/ledger.h"

#include <algorithm>
#include <iterator>
#include <variant>

#include "simulation/words.h"

namespace holdfast::sim {
namespace {

const core::Holder* holder_of(const core::LockRecord& record, const core::RequestId& id) {
  const auto it = std::ranges::find(record.holders(), id, &core::Holder::id);
  return it == record.holders().end() ? nullptr : &*it;
}

const core::Waiter* waiter_of(const core::LockRecord& record, const core::RequestId& id) {
  const auto it = std::ranges::find(record.queue(), id, &core::Waiter::id);
  return it == record.queue().end() ? nullptr : &*it;
}

bool lets_go(const Ledger::Step& step, const core::RequestId& id) {
  if (step.operation == nullptr) {
    return false;
  }
  const auto* release = std::get_if<core::Release>(step.operation);
  const auto* requeue = std::get_if<core::Requeue>(step.operation);
  return (release != nullptr && release->id == id) || (requeue != nullptr && requeue->id == id);
}

bool renews(const Ledger::Step& step, const core::RequestId& id) {
  const auto* renew =
      step.operation == nullptr ? nullptr : std::get_if<core::Renew>(step.operation);
  return renew != nullptr && renew->id == id;
}

bool downgrades(const Ledger::Step& step, const core::RequestId& id) {
  const auto* downgrade =
      step.operation == nullptr ? nullptr : std::get_if<core::Downgrade>(step.operation);
  return downgrade != nullptr && downgrade->id == id;
}

bool upgrades(const Ledger::Step& step, const core::RequestId& id) {
  const auto* upgrade =
      step.operation == nullptr ? nullptr : std::get_if<core::Upgrade>(step.operation);
  return upgrade != nullptr && upgrade->id == id;
}

// To a request that has it now.
bool transfers(const Ledger::Step& step, const core::RequestId& id, const core::LockRecord& after) {
  const auto* transfer =
      step.operation == nullptr ? nullptr : std::get_if<core::Transfer>(step.operation);
  return transfer != nullptr && transfer->id == id &&
         holder_of(after, transfer->next.id) != nullptr;
}

bool forces(const Ledger::Step& step) {
  const auto* revoke =
      step.operation == nullptr ? nullptr : std::get_if<core::Revoke>(step.operation);
  return revoke != nullptr && revoke->now;
}

const core::Acquire* asks(const Ledger::Step& step, const core::RequestId& id) {
  if (step.operation == nullptr) {
    return nullptr;
  }
  const auto* acquire = std::get_if<core::Acquire>(step.operation);
  if (const auto* requeue = std::get_if<core::Requeue>(step.operation)) {
    acquire = &requeue->next;
  }
  if (const auto* transfer = std::get_if<core::Transfer>(step.operation)) {
    acquire = &transfer->next;
  }
  return acquire != nullptr && acquire->id == id ? acquire : nullptr;
}

}  // namespace

bool conflict(const core::Shape& a, const core::Shape& b) noexcept {
  if (a.mode != b.mode || a.mode == Mode::exclusive) {
    return true;
  }
  return a.mode == Mode::permits && a.permits + b.permits > std::max(a.limit, b.limit);
}

void Ledger::note(const std::string& name, const core::LockRecord& before,
                  const core::LockRecord& after, const Step& step) {
  Page& page = pages_[name];
  note_ends(page, name, before, after, step);
  note_waiters(page, name, before, after, step);
  note_revocations(page, name, after, step);
  note_grants(page, name, before, after, step);
}

// What changes while it is held.
void Ledger::note_stay(Grant& grant, const std::string& name, const core::Holder& holder,
                       const Step& step) {
  if (holder.expires != grant.expires && !renews(step, grant.id)) {
    stage_.violate("S4", words(grant.id) + " on " + name + " was prolonged by somebody else");
  }
  if (holder.expires > grant.expires && grant.revoked) {
    stage_.violate("revoke", words(grant.id) + " on " + name + " was prolonged, but is revoked");
  }
  if (holder.expires > grant.expires && grant.expires <= stage_.now()) {
    stage_.violate("S6", words(grant.id) + " on " + name + " was revived after it had expired");
  }
  if (holder.shape.mode != grant.shape.mode && !downgrades(step, grant.id)) {
    stage_.violate("S3", words(grant.id) + " on " + name + " changed its mode, but not its token");
  }
  grant.shape.mode = holder.shape.mode;
  grant.expires = holder.expires;
}

void Ledger::note_ends(Page& page, const std::string& name, const core::LockRecord& before,
                       const core::LockRecord& after, const Step& step) {
  const Time now = stage_.now();
  std::erase_if(page.open, [&](std::uint64_t token) {
    Grant& grant = page.grants.at(token);
    const core::Holder* holder = holder_of(after, grant.id);
    if (holder != nullptr && holder->token == token) {
      note_stay(grant, name, *holder, step);
      return false;
    }
    const core::Holder* was = holder_of(before, grant.id);
    grant.ended = now;
    if (holder != nullptr && grant.expires > now && was != nullptr &&
        (was->upgrading || upgrades(step, grant.id))) {
      grant.end = End::upgraded;
      grant.successor = holder->token;
    } else if (transfers(step, grant.id, after)) {
      grant.end = End::transferred;
    } else if (grant.expires <= now) {
      grant.end = End::expired;
      grant.ended = grant.expires;
    } else if (lets_go(step, grant.id)) {
      grant.end = End::released;
    } else {
      grant.end = forces(step) ? End::forced : End::stolen;
      if (!forces(step)) {
        stage_.violate("S4", words(grant.id) + " on " + name + " was ended by somebody else");
      }
    }
    page.last_end = std::max(page.last_end, grant.ended);
    return true;
  });
}

void Ledger::note_waiters(Page& page, const std::string& name, const core::LockRecord& before,
                          const core::LockRecord& after, const Step& step) {
  const bool resized =
      step.operation != nullptr && std::holds_alternative<core::Resize>(*step.operation);
  for (const core::Waiter& waiter : before.queue()) {
    const bool gone =
        waiter_of(after, waiter.id) == nullptr && holder_of(after, waiter.id) == nullptr;
    if (gone && waiter.expires > stage_.now() && !lets_go(step, waiter.id) && !resized &&
        !forces(step)) {
      stage_.violate("S4", words(waiter.id) + " lost its place in the queue of " + name);
    }
    if (gone && waiter.expires <= stage_.now() && !lets_go(step, waiter.id) && on_eviction) {
      on_eviction(name, waiter);
    }
  }
  for (const core::Waiter& waiter : after.queue()) {
    const core::Waiter* earlier = waiter_of(before, waiter.id);
    if (earlier == nullptr || earlier->since != waiter.since) {
      page.arrivals[waiter.id] = ++arrivals_;
      page.ghosts[waiter.id] = step.ghost;
    }
  }
}

void Ledger::note_revocations(Page& page, const std::string& name, const core::LockRecord& after,
                              const Step& step) {
  const bool revokes =
      step.operation != nullptr && std::holds_alternative<core::Revoke>(*step.operation);
  for (const std::uint64_t token : page.open) {
    Grant& grant = page.grants.at(token);
    const core::Holder* holder = holder_of(after, grant.id);
    if (holder != nullptr && holder->revoked && !grant.revoked) {
      grant.revoked = stage_.now();
    }
    if (revokes && holder != nullptr && !holder->revoked) {
      stage_.violate("revoke", words(grant.id) + " on " + name + " was not revoked");
    }
  }
}

void Ledger::note_grants(Page& page, const std::string& name, const core::LockRecord& before,
                         const core::LockRecord& after, const Step& step) {
  for (const core::Holder& holder : after.holders()) {
    const auto known = page.grants.find(holder.token);
    if (known != page.grants.end() && known->second.id == holder.id &&
        known->second.end == End::none) {
      continue;
    }
    const bool at_once = asks(step, holder.id) != nullptr;
    const auto waited = page.ghosts.find(holder.id);
    const Grant grant{
        .id = holder.id,
        .session = holder.session,
        .shape = holder.shape,
        .ttl = holder.ttl,
        .token = holder.token,
        .order = ++orders_,
        .granted = stage_.now(),
        .expires = holder.expires,
        .ghost = at_once ? step.ghost : waited != page.ghosts.end() && waited->second};
    const core::Waiter* waiter = waiter_of(before, holder.id);
    // A renewal of old that comes in the very step of the promotion is counted by its ttl.
    if (!at_once && waiter != nullptr && !renews(step, holder.id) &&
        holder.expires > stage_.now() + waiter->window) {
      stage_.violate("S5", words(holder.id) + " on " + name +
                               " was granted for longer than a dead waiter may cost");
    }
    check_token(page, name, grant);
    check_order(page, name, holder, before, after, step);
    Grant& noted = page.grants.insert_or_assign(grant.token, grant).first->second;
    noted.delivered = std::ranges::any_of(page.grants, [&](const auto& entry) {
      return entry.second.successor == grant.token && entry.second.delivered;
    });
    page.open.push_back(grant.token);
  }
}

void Ledger::check_token(const Page& page, const std::string& name, const Grant& grant) {
  for (const auto& [token, earlier] : page.grants) {
    const bool apart =
        token + core::kTokenStride <= grant.token || grant.token + core::kTokenStride <= token;
    if (!apart) {
      stage_.violate(
          "S3", "token " + std::to_string(grant.token) + " of " + name + " was given out before");
    } else if (token > grant.token && conflict(earlier.shape, grant.shape)) {
      stage_.violate("S3", "token " + std::to_string(grant.token) + " of " + name +
                               " is lower than that of an earlier grant, " + std::to_string(token));
    }
  }
}

void Ledger::check_order(Page& page, const std::string& name, const core::Holder& holder,
                         const core::LockRecord& before, const core::LockRecord& after,
                         const Step& step) {
  const core::Acquire* at_once = asks(step, holder.id);
  const bool transferred =
      step.operation != nullptr && std::holds_alternative<core::Transfer>(*step.operation);
  const bool upgraded = holder_of(before, holder.id) != nullptr;
  if ((at_once != nullptr && (at_once->barge || transferred)) || upgraded) {
    return;
  }
  const auto arrival = page.arrivals.find(holder.id);
  const std::uint64_t mine = arrival == page.arrivals.end() ? arrivals_ + 1 : arrival->second;
  for (const core::Waiter& waiter : after.queue()) {
    if (page.arrivals.at(waiter.id) < mine) {
      stage_.violate("L2", words(holder.id) + " overtook " + words(waiter.id) + " on " + name);
    }
  }
}

Grant* Ledger::find(const std::string& name, std::uint64_t token) {
  Page& page = pages_[name];
  auto it = page.grants.upper_bound(token);
  if (it == page.grants.begin()) {
    return nullptr;
  }
  --it;
  if (token >= it->first + core::kTokenStride) {
    return nullptr;
  }
  while (it->second.end == End::upgraded) {
    const auto next = page.grants.find(it->second.successor);
    if (next == page.grants.end()) {
      break;  // in this very step
    }
    it = next;
  }
  return &it->second;
}

std::uint64_t Ledger::block_of(const std::string& name, std::uint64_t token) {
  const Page& page = pages_[name];
  const auto it = page.grants.upper_bound(token);
  const std::uint64_t first = it == page.grants.begin() ? 0 : std::prev(it)->first;
  return token < first + core::kTokenStride ? first : 0;
}

Time Ledger::last_end(const std::string& name) {
  Page& page = pages_[name];
  Time last = page.last_end;
  for (const std::uint64_t token : page.open) {
    const Grant& grant = page.grants.at(token);
    last = grant.expires <= stage_.now() ? std::max(last, grant.expires) : last;
  }
  return last;
}

bool Ledger::granted_again(const std::string& name, const Grant& grant) {
  return std::ranges::any_of(pages_[name].grants, [&](const auto& entry) {
    return entry.second.id == grant.id && entry.second.order > grant.order;
  });
}

std::vector<Grant*> Ledger::standing(const std::string& name) {
  std::vector<Grant*> found;
  Page& page = pages_[name];
  for (const std::uint64_t token : page.open) {
    if (Grant& grant = page.grants.at(token); grant.stands(stage_.now())) {
      found.push_back(&grant);
    }
  }
  return found;
}

std::optional<Time> Ledger::free_since(const std::string& name) {
  if (!standing(name).empty()) {
    return std::nullopt;
  }
  Page& page = pages_[name];
  Time since = page.last_end;
  for (const std::uint64_t token : page.open) {
    since = std::max(since, page.grants.at(token).expires);
  }
  return since;
}

}  // namespace holdfast::sim
