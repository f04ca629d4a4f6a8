// What a RedlockTurn makes of the nodes' answers.
#include <algorithm>
#include <string>
#include <variant>

#include "base/jitter.h"
#include "engine/batch.h"
#include "engines/redlock/redlock_turn.h"

namespace holdfast::engines {
namespace {

using namespace std::chrono_literals;
using core::Status;
using Kind = core::NodeAnswer::Kind;
using Verdict = core::Quorum::Verdict;

// Those who were denied come back after a random while, so that they do not
// split the votes again and again.
constexpr base::Duration kShortestRetry = 50ms;
constexpr base::Duration kLongestRetry = 150ms;
// After giving it back: time for others to take it.
constexpr base::Duration kStepAside = 10ms;

}  // namespace

Error RedlockTurn::unreachable(const Item& item) const {
  if (item.refusal) {
    return *item.refusal;
  }
  const std::size_t young = item.quorum.count(Kind::young);
  std::string text = std::to_string(item.quorum.count(Kind::silent)) + " of " +
                     std::to_string(nodes_.size()) + " nodes do not answer";
  if (young > 0) {
    text += "; " + std::to_string(young) +
            " started or lost their data less than max_ttl ago and do not count yet (a brand-new "
            "set: first_start=true)";
  }
  for (const auto& node : nodes_) {
    if (!node->trouble().empty()) {
      text += "; " + node->trouble();
      break;
    }
  }
  return {ErrorCode::unavailable, text, std::nullopt};
}

// Only if nobody else of the batch has an answer, who would have to wait.
bool RedlockTurn::may_ask_again(const Item& item, base::Time now) const {
  const bool refused = item.refusal && item.refusal->code != ErrorCode::unavailable;
  const bool alone = std::all_of(items_.begin(), items_.end(), [](const Item& each) {
    return each.step == Step::over ? !each.answered : each.quorum.verdict() == Verdict::unreachable;
  });
  return !refused && alone && item.quorum.count(Kind::young) == 0 && now < deadline_ && !given_up_;
}

// What the answers of the first round mean.
void RedlockTurn::judge(std::size_t index, base::Time now) {
  Item& item = items_[index];
  const Verdict verdict = item.quorum.verdict();
  const auto* acquire = std::get_if<core::Acquire>(&item.sent);
  if (verdict == Verdict::unreachable && may_ask_again(item, now)) {
    if (acquire != nullptr) {
      let_go(index, acquire->id);
    }
    return;
  }
  item.step = Step::over;
  item.answered = verdict != Verdict::unreachable;
  if (acquire != nullptr) {
    judge_acquire(index, *acquire, now);
  } else if (verdict == Verdict::unreachable) {
    outcomes_[index] = engine::failed(unreachable(item));
    Error& error = *outcomes_[index].error;
    if (error.code == ErrorCode::unavailable) {
      error.code = ErrorCode::outcome_unknown;  // some may have heard
    }
  } else if (std::holds_alternative<core::Revoke>(item.sent)) {
    outcomes_[index] = {.status = Status::done, .count = verdict == Verdict::ours ? 1U : 0U};
  } else if (const auto* release = std::get_if<core::Release>(&item.sent)) {
    judge_release(index, release->id);
  } else {
    judge_look(index);
  }
}

void RedlockTurn::judge_release(std::size_t index, const core::RequestId& id) {
  core::Outcome& outcome = outcomes_[index];
  const bool hoped = hopefuls_.erase(id) > 0;
  const bool gave_back = items_[index].quorum.verdict() == Verdict::ours || hoped;
  held_.erase(id);
  outcome.status = gave_back ? Status::released : Status::not_held;
  if (const auto* requeue = std::get_if<core::Requeue>(&batch_[index].operation)) {
    wait_with(requeue->next, 0);
    outcome = {.status = Status::queued,
               .look_again = base::random_between(kStepAside / 2, kStepAside),
               .gave_back = gave_back};
  }
}

// A renewal, or a look.
void RedlockTurn::judge_look(std::size_t index) {
  const Item& item = items_[index];
  core::Outcome& outcome = outcomes_[index];
  const auto* renewal = std::get_if<core::Renew>(&item.sent);
  if (item.quorum.verdict() == Verdict::not_ours) {
    outcome.status = Status::not_held;
    if (renewal != nullptr) {
      let_go(index, renewal->id);  // also what was just repaired
      held_.erase(renewal->id);
    }
    return;
  }
  const Status good = renewal != nullptr ? Status::renewed : Status::granted;
  outcome.status = item.revoked ? Status::revoked : good;
  outcome.lease_for = item.quorum.left() - core::quorum_drift(item.quorum.left());
}

void RedlockTurn::judge_acquire(std::size_t index, const core::Acquire& asked, base::Time now) {
  Item& item = items_[index];
  switch (item.quorum.verdict()) {
    case Verdict::ours:
      if (const auto validity = item.quorum.validity(asked.ttl, now); !validity) {
        let_go(index, asked.id);
        deny(index, asked);
      } else if (item.quorum.took_proposal()) {
        if (hopefuls_.contains(asked.id) || (asked.queue && item.quorum.count(Kind::others) > 0)) {
          note_written(index, asked.id);  // that it waits no longer
        }
        grant(index, asked, *validity);
      } else {
        item.step = Step::write;
        item.token = item.quorum.token();
        item.quorum = core::Quorum{nodes_.size(), item.quorum.sent()};
      }
      break;
    case Verdict::unreachable:
      let_go(index, asked.id);
      if (asked.queue && item.quorum.count(Kind::young) > 0 && !item.refusal) {
        deny(index, asked);  // they grow up by themselves
      } else {
        outcomes_[index] = engine::failed(unreachable(item));
      }
      break;
    default:
      let_go(index, asked.id);
      deny(index, asked);
  }
}

void RedlockTurn::grant(std::size_t index, const core::Acquire& asked, base::Duration validity) {
  hopefuls_.erase(asked.id);
  held_.insert_or_assign(asked.id, asked);
  outcomes_[index] = {
      .status = Status::granted, .token = items_[index].token, .lease_for = validity};
}

void RedlockTurn::wait_with(const core::Acquire& asked, std::uint64_t seen) {
  hopefuls_.insert_or_assign(asked.id, Hopeful{asked, seen});
  hints_.start();
}

void RedlockTurn::deny(std::size_t index, const core::Acquire& asked) {
  if (!asked.queue) {
    outcomes_[index].status = Status::busy;
    return;
  }
  wait_with(asked, items_[index].quorum.largest());
  const base::Duration pause = base::random_between(kShortestRetry, kLongestRetry);
  const base::Duration expiry = items_[index].quorum.look_again();
  outcomes_[index] = {
      .status = Status::queued,
      .look_again = expiry > base::Duration::zero() ? std::min(pause, expiry) : pause};
}

void RedlockTurn::after_writing(base::Time now) {
  for (std::size_t i = 0; i < items_.size(); ++i) {
    Item& item = items_[i];
    if (item.step != Step::write) {
      continue;
    }
    item.step = Step::over;
    const auto& asked = std::get<core::Acquire>(item.sent);
    const auto validity = item.quorum.validity(asked.ttl, now);
    if (item.quorum.verdict() == Verdict::ours && validity) {
      grant(i, asked, *validity);
    } else {
      let_go(i, asked.id);
      deny(i, asked);
    }
  }
  send_what_is_told();
  phase_ = Phase::over;
}

}  // namespace holdfast::engines
