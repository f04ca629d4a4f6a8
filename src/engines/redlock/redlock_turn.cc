#include "engines/redlock/redlock_turn.h"

#include <poll.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "base/jitter.h"
#include "core/lock_record.h"
#include "engine/batch.h"
#include "engines/redis/redis_errors.h"
#include "engines/redis/redis_wire.h"
#include "engines/redlock/redlock_script.h"

namespace holdfast::engines {
namespace {

using namespace std::chrono_literals;
using core::NodeAnswer;
using core::Status;
using Kind = NodeAnswer::Kind;
using Verdict = core::Quorum::Verdict;

// A node gets this fraction of the ttl to answer.
constexpr int kAnswersPerTtl = 5;
constexpr base::Duration kPause = 25ms;

const core::Acquire* asks_for(const core::Operation& operation) {
  if (const auto* requeue = std::get_if<core::Requeue>(&operation)) {
    return &requeue->next;
  }
  return std::get_if<core::Acquire>(&operation);
}

std::chrono::microseconds guard_of(const RedlockOptions& options) {
  return std::chrono::ceil<std::chrono::microseconds>(
      options.first_start ? base::Duration::zero()
                          : options.max_ttl + core::quorum_drift(options.max_ttl));
}

Kind kind_of(const core::Outcome& said) {
  switch (said.status) {
    case Status::granted:
    case Status::renewed:
    case Status::released:
    case Status::revoked:
      return Kind::ours;
    case Status::busy:
      return Kind::others;
    case Status::not_held:
    case Status::done:
      return Kind::nobodys;
    default:
      return said.count == kYoungNode ? Kind::young : Kind::silent;
  }
}

}  // namespace

RedlockTurn::RedlockTurn(const RedlockOptions& options, const engine::EngineOptions& client,
                         std::vector<std::unique_ptr<RedlockNode>> nodes, RedlockHints& hints)
    : options_{options},
      client_{client},
      script_{kRedlockScript},
      party_{pack_party(client.party)},
      self_{options.prefix + std::string{kRedlockSelf}},
      max_ttl_{std::to_string(in_milliseconds(options.max_ttl))},
      guard_{std::to_string(guard_of(options).count())},
      nodes_{std::move(nodes)},
      hints_{hints},
      proposals_{nodes_.size()} {}

std::optional<Error> RedlockTurn::objection(const core::Command& command) const {
  if (auto good = RedlockOptions::check_name(command.name); !good) {
    return good.error();
  }
  if (auto wrong = core::objection(command.operation)) {
    return wrong->error;
  }
  const core::Acquire* asked = asks_for(command.operation);
  if (const auto& wish = command.operation; std::holds_alternative<core::Upgrade>(wish) ||
                                            std::holds_alternative<core::Downgrade>(wish) ||
                                            std::holds_alternative<core::Transfer>(wish)) {
    return Error{ErrorCode::unsupported, "a majority of votes cannot change what it has granted",
                 std::nullopt};
  }
  if (std::holds_alternative<core::Resize>(command.operation) ||
      (asked != nullptr && asked->shape.mode != Mode::exclusive)) {
    return Error{ErrorCode::unsupported,
                 "a majority of votes can give exclusive locks alone; redis can do it",
                 std::nullopt};
  }
  if (asked != nullptr && asked->ttl > options_.max_ttl) {
    return Error{ErrorCode::invalid_argument,
                 "the ttl is longer than max_ttl, after which restarted nodes count again",
                 std::nullopt};
  }
  return std::nullopt;
}

core::Operation RedlockTurn::translated(const core::Operation& operation) const {
  if (const auto* poll = std::get_if<core::Poll>(&operation)) {
    const auto found = hopefuls_.find(poll->id);
    return found == hopefuls_.end() ? operation : core::Operation{found->second.asked};
  }
  if (const auto* requeue = std::get_if<core::Requeue>(&operation)) {
    return core::Release{requeue->id};  // and line up afterwards
  }
  return operation;
}

void RedlockTurn::begin(std::span<const core::Command> batch, engine::Done done) {
  const base::Time now = base::BootClock::now();
  batch_ = batch;
  done_ = std::move(done);
  outcomes_.assign(batch.size(), {});
  items_.assign(batch.size(), {});
  given_up_ = false;
  deadline_ = now + options_.access.timeout;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    items_[i].sent = translated(batch[i].operation);
    if (auto wrong = objection(batch[i])) {
      outcomes_[i] = engine::failed(*std::move(wrong));
      items_[i].step = Step::over;
    } else if (const auto* renew = std::get_if<core::Renew>(&batch[i].operation);
               renew != nullptr && !held_.contains(renew->id)) {
      outcomes_[i].status = Status::not_held;  // we have lost it before
      items_[i].step = Step::over;
    }
  }
  start_asking(now);
}

base::Time RedlockTurn::timeout_for(base::Time now) const {
  base::Duration shortest = options_.node_timeout;
  for (const Item& item : items_) {
    if (const auto* acquire = std::get_if<core::Acquire>(&item.sent);
        acquire != nullptr && item.step != Step::over) {
      shortest = std::min(shortest, acquire->ttl / kAnswersPerTtl);
    }
  }
  return now + shortest;
}

void RedlockTurn::start_asking(base::Time now) {
  ++tag_;
  asked_.assign(nodes_.size(), false);
  round_ends_ = timeout_for(now);
  bool any = false;
  for (Item& item : items_) {
    if (item.step == Step::ask) {
      item.quorum = core::Quorum{nodes_.size(), now};
      item.refusal.reset();
      item.revoked = false;
      if (const auto* acquire = std::get_if<core::Acquire>(&item.sent)) {
        const auto found = hopefuls_.find(acquire->id);
        item.token = proposals_.next(now, found == hopefuls_.end() ? 0 : found->second.seen);
      }
      any = true;
    }
  }
  phase_ = any ? Phase::asking : Phase::over;
  compose();
}

void RedlockTurn::send_to(std::size_t node, base::Time now,
                          std::vector<RedlockNode::Answer>& answers) {
  const bool asking = phase_ == Phase::asking || phase_ == Phase::writing;
  if (asking && !asked_[node] && nodes_[node].is_ready()) {
    asked_[node] = true;
    nodes_[node].ask(tag_, call_for(node, false, now));
    nodes_[node].advance(0, answers);
  }
}

void RedlockTurn::pump_nodes() {
  const base::Time now = base::BootClock::now();
  std::vector<std::vector<RedlockNode::Answer>> answers(nodes_.size());
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    send_to(i, now, answers[i]);  // to all, before answers are read
  }
  const std::vector<short>& ready = nodes_.look();
  const base::Time heard = base::BootClock::now();
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    nodes_[i].advance(ready[i], answers[i]);
    send_to(i, heard, answers[i]);  // if it has just come
    for (const RedlockNode::Answer& answer : answers[i]) {
      on_answer(i, answer, heard);
    }
  }
}

// The node has forgotten the script.
void RedlockTurn::say_in_full(std::size_t node, std::uint64_t tag, bool too_late, base::Time now) {
  if (!too_late) {
    nodes_[node].ask(tag_, call_for(node, true, now));
  } else if (tag != 0 && tag == told_tag_) {
    tell_again(node);
  } else {
    nodes_[node].teach();
  }
  std::vector<RedlockNode::Answer> more;
  nodes_[node].advance(0, more);
}

void RedlockTurn::on_answer(std::size_t node, const RedlockNode::Answer& answer, base::Time now) {
  if (answer.clock != 0) {
    proposals_.note(node, answer.clock, answer.asked, now);
  }
  const bool too_late = answer.tag != tag_ || (phase_ != Phase::asking && phase_ != Phase::writing);
  const RespValue* reply = answer.reply ? &*answer.reply : nullptr;
  if (reply != nullptr && reply->is_error() && reply->text.starts_with("NOSCRIPT")) {
    say_in_full(node, answer.tag, too_late, now);
    return;
  }
  if (too_late) {
    return;
  }
  const Step step = phase_ == Phase::writing ? Step::write : Step::ask;
  std::string_view said = reply == nullptr ? std::string_view{} : redlock_text(*reply);
  said.remove_prefix(std::min(said.size(), said.find('|')));  // the clock
  said.remove_prefix(std::min<std::size_t>(said.size(), 1));
  std::size_t at = 0;
  for (Item& item : items_) {
    if (item.step != step) {
      continue;
    }
    std::string refusal = reply != nullptr && reply->is_error() ? reply->text : "";
    if (!said.empty() && ++at < reply->items.size()) {
      refusal = reply->items[at].text;
    }
    take(node, item, outcome_of(item, said), refusal);
  }
}

// Takes it from what the node said.
core::Outcome RedlockTurn::outcome_of(const Item& item, std::string_view& said) {
  core::Outcome outcome;  // failed
  const auto* acquire = std::get_if<core::Acquire>(&item.sent);
  if (said.starts_with(kTookIt) && acquire != nullptr) {
    outcome = {.status = Status::granted,
               .token = item.token,
               .lease_for = std::chrono::milliseconds{in_milliseconds(acquire->ttl)},
               .count = kTookProposal};
    said.remove_prefix(1);
  } else if (said.starts_with(kGaveBack)) {
    outcome.status = Status::released;
    said.remove_prefix(1);
  } else if (said.size() >= kPackedOutcome) {
    outcome = unpack_outcome(said.substr(0, kPackedOutcome));
    said.remove_prefix(kPackedOutcome);
  } else {
    said = {};
  }
  return outcome;
}

void RedlockTurn::take(std::size_t node, Item& item, const core::Outcome& said,
                       const std::string& refusal) {
  if (!refusal.empty()) {
    item.refusal = redis_error(refusal);
  } else if (said.status == Status::failed && said.count == kOtherMaxTtl) {
    const auto theirs = std::chrono::duration_cast<std::chrono::milliseconds>(said.lease_for);
    item.refusal = Error{ErrorCode::invalid_argument,
                         "the nodes were set up with max_ttl=" + std::to_string(theirs.count()) +
                             "ms: use the same everywhere",
                         std::nullopt};
  } else if (said.status == Status::failed && said.count == kForeignHolder) {
    item.refusal =
        Error{ErrorCode::unsupported,
              "the holder is another program, which cannot be told; use --now", std::nullopt};
  }
  item.revoked = item.revoked || said.status == Status::revoked;
  const bool counts = refusal.empty();
  item.quorum.answer(node, {.kind = counts ? kind_of(said) : Kind::silent,
                            .token = said.token,
                            .left = said.lease_for,
                            .took_proposal = said.count == kTookProposal});
}

bool RedlockTurn::decided() const {
  const Step step = phase_ == Phase::writing ? Step::write : Step::ask;
  return std::all_of(items_.begin(), items_.end(), [&](const Item& item) {
    if (item.step != step) {
      return true;
    }
    const bool needs_all = std::holds_alternative<core::Release>(item.sent) ||
                           std::holds_alternative<core::Revoke>(item.sent);
    const auto verdict = item.quorum.verdict();
    return needs_all ? item.quorum.open() == 0 || verdict == Verdict::ours
                     : verdict != Verdict::open;
  });
}

void RedlockTurn::silence_the_rest() {
  for (Item& item : items_) {
    for (std::size_t node = 0; item.step != Step::over && node < nodes_.size(); ++node) {
      item.quorum.answer(node, {});
    }
  }
}

std::optional<engine::Conversation::Wait> RedlockTurn::advance(short) {
  pump_nodes();
  const base::Time now = base::BootClock::now();
  if (phase_ == Phase::pausing && (now >= resume_ || given_up_)) {
    start_asking(now);
    pump_nodes();
  }
  const auto over = [&] { return decided() || now >= round_ends_ || given_up_; };
  if (phase_ == Phase::asking && over()) {
    silence_the_rest();
    after_asking(now);
  }
  if (phase_ == Phase::writing && over()) {
    silence_the_rest();
    after_writing(now);
  }
  nodes_.watch();  // at the end as well: who connects is to be found by the next turn
  if (phase_ == Phase::over) {
    return std::nullopt;
  }
  base::Time until = phase_ == Phase::pausing ? resume_ : round_ends_;
  for (const auto& node : nodes_) {
    if (!node->is_ready()) {
      until = std::min(until, std::max(node->wait().until, now + 1ms));
    }
  }
  return Wait{.fd = nodes_.fd(), .events = POLLIN, .until = until};
}

void RedlockTurn::after_asking(base::Time now) {
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (items_[i].step == Step::ask) {
      judge(i, now);
    }
  }
  send_what_is_told();
  const auto stands_at = [&](Step step) {
    return std::any_of(items_.begin(), items_.end(),
                       [&](const Item& item) { return item.step == step; });
  };
  if (stands_at(Step::write)) {
    phase_ = Phase::writing;
    ++tag_;
    asked_.assign(nodes_.size(), false);
    round_ends_ = std::max(round_ends_, now + options_.node_timeout);
    compose();
    pump_nodes();
  } else if (stands_at(Step::ask)) {  // to be asked again
    phase_ = Phase::pausing;
    resume_ = now + base::random_between(kPause / 2, kPause);
  } else {
    phase_ = Phase::over;
  }
}

void RedlockTurn::finish() {
  const engine::Done done = std::exchange(done_, nullptr);
  done(std::exchange(outcomes_, {}));
}

Result<void> RedlockTurn::connect_until(base::Time deadline) {
  const std::size_t majority = nodes_.size() / 2 + 1;
  while (true) {
    pump_nodes();
    const std::size_t ready = nodes_.ready();
    const base::Time now = base::BootClock::now();
    const bool all_tried = std::all_of(nodes_.begin(), nodes_.end(), [](const auto& node) {
      return node->is_ready() || !node->trouble().empty();
    });
    if (ready == nodes_.size() || (ready >= majority && (all_tried || now >= deadline))) {
      return {};
    }
    if (all_tried || now >= deadline) {
      Item none;
      none.quorum = core::Quorum{nodes_.size(), now};
      for (std::size_t i = 0; i < nodes_.size() - ready; ++i) {
        none.quorum.answer(i, {});
      }
      return tl::unexpected{unreachable(none)};
    }
    nodes_.watch();
    pollfd wanted{nodes_.fd(), POLLIN, 0};
    poll(&wanted, 1, 5);
  }
}

}  // namespace holdfast::engines
