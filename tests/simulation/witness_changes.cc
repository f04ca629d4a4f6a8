// Leases that change in their users' hands, or pass to others.

#include <algorithm>

#include "simulation/witness.h"
#include "simulation/words.h"

namespace holdfast::sim {
namespace {

std::string describe(const Change& change) {
  return change.hold->call->life->name() + "'s " +
         (change.to == Mode::exclusive ? "upgrade" : "downgrade") + " of " + change.hold->name() +
         " (token " + std::to_string(change.token) + ")";
}

}  // namespace

std::shared_ptr<Change> Witness::changes(const std::shared_ptr<Hold>& hold, Mode to, bool queue) {
  auto change = std::make_shared<Change>();
  change->hold = hold;
  change->to = to;
  change->queue = queue;
  change->token = hold->state->token().value_or(0);
  change->begun = stage_.now();
  all_changes_.push_back(change);
  if (to == Mode::shared) {
    hold->changes.emplace_back(stage_.now(), to);  // a writer no more, whatever is answered
  }
  return change;
}

void Witness::changed(Change& change, const Result<std::uint32_t>& result) {
  if (change.ended != base::kNever) {
    stage_.violate("errors", describe(change) + " was answered twice");
  }
  change.ended = stage_.now();
  Hold& hold = *change.hold;
  last_use_[{hold.call->life->session, hold.name()}] = stage_.now();
  const std::uint64_t token = hold.state->token().value_or(0);
  if (!result) {
    check_refused_change(change, result.error());
    if (change.to == Mode::shared && result.error().code == ErrorCode::unavailable) {
      hold.changes.emplace_back(stage_.now(), Mode::exclusive);  // nothing was changed
    }
  } else if (change.to == Mode::exclusive) {
    hold.changes.emplace_back(stage_.now(), Mode::exclusive);
    if (token <= change.token) {
      stage_.violate("S3", describe(change) + " did not raise the token: " + std::to_string(token));
    }
  } else if (token < change.token) {
    stage_.violate("S3", describe(change) + " lowered the token: " + std::to_string(token));
  }
}

void Witness::check_refused_change(const Change& change, const Error& error) {
  const Hold& hold = *change.hold;
  const Life& life = *hold.call->life;
  const Grant* grant = ledger_.find(hold.name(), hold.state->token().value_or(0));
  bool justified = false;
  switch (error.code) {
    case ErrorCode::busy:
      justified = !change.queue || std::ranges::any_of(all_changes_, [&](const auto& other) {
        return other.get() != &change && other->hold->name() == hold.name() &&
               other->ended > change.begun - stage_.scenario.longest_ttl() * 2;
      });
      break;
    case ErrorCode::timed_out:
    case ErrorCode::cancelled:
      justified = change.cancelled == error.code;
      break;
    case ErrorCode::lease_lost:
      justified = hold.lost || hold.state->loss() || hold.alive_until <= stage_.now() ||
                  grant == nullptr || grant->end != End::none || grant->revoked;
      break;
    case ErrorCode::unavailable:
    case ErrorCode::outcome_unknown:
      justified = life.disturbed_until >= change.begun ||
                  !stage_.scenario.quick_for(hold.call->wish.terms.ttl) ||
                  std::ranges::any_of(all_changes_, [&](const auto& other) {
                    return other.get() != &change && other->hold->name() == hold.name() &&
                           other->hold->call->life == hold.call->life &&
                           life.disturbed_until >= other->begun;  // that one is in doubt
                  });
      break;
    default:
      break;
  }
  if (!justified) {
    stage_.violate("errors", describe(change) + " failed without a reason: " +
                                 std::string{to_string(error.code)} + ", " + error.text);
  }
}

void Witness::gives(Hold& hold) {
  hold.given = true;
  hold.let_go = stage_.now();
  hold.ended = std::min(hold.ended, stage_.now());
  last_use_[{hold.call->life->session, hold.name()}] = stage_.now();
  if (Grant* grant = ledger_.find(hold.name(), hold.state->token().value_or(0))) {
    grant->given = stage_.now();
  }
  std::erase_if(open_, [&](const auto& each) { return each.get() == &hold; });
}

// Nobody else of its process uses the same grant, so the store was asked.
bool Witness::reads_alone(const Change& change) {
  const Life* life = change.hold->call->life.get();
  return std::ranges::none_of(open_, [&](const auto& other) {
    return other != change.hold && other->call->life.get() == life &&
           other->name() == change.hold->name();
  });
}

// Who waits for the other readers is the writer soon after the last has left;
// and of two who do, one hears at once that it must give way.
void Witness::check_waiting_changes() {
  // Where the last reader's lease ran out, a renewal tells it.
  const Duration bound =
      patience_for_free_lock() + patience_for_release() + stage_.scenario.longest_ttl() * 2 / 5;
  const auto waits_since = [&](const Change& change) {
    const Life& life = *change.hold->call->life;
    return std::max({change.begun, life.disturbed_until,
                     last_use_[{life.session, change.hold->name()}],
                     ledger_.last_end(change.hold->name())});
  };
  const auto too_long = [&](const Change& change) {
    const Life& life = *change.hold->call->life;
    return change.ended == base::kNever && change.to == Mode::exclusive && life.alive &&
           !life.paused && !change.hold->lost && reads_alone(change) &&
           stage_.now() - waits_since(change) > bound;
  };
  const Change* first = nullptr;
  for (const auto& change : all_changes_) {
    if (!too_long(*change)) {
      continue;
    }
    const auto standing = ledger_.standing(change->hold->name());
    const Grant* own = ledger_.find(change->hold->name(), change->hold->state->token().value_or(0));
    if (standing.size() == 1 && standing.front() == own) {
      stage_.violate("L1", describe(*change) + " still waits, though nobody else reads");
    }
    if (first != nullptr && first->hold->name() == change->hold->name()) {
      stage_.violate("L1", describe(*change) + " and " + describe(*first) + " wait for each other");
    }
    first = change.get();
  }
}

}  // namespace holdfast::sim
