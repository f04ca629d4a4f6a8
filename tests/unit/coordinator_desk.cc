#include "unit/coordinator_desk.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace holdfast::test {
namespace {

const core::SessionId kOurs = id(1);

struct Word {
  std::string operator()(const core::Acquire&) const { return "acquire"; }
  std::string operator()(const core::Renew&) const { return "renew"; }
  std::string operator()(const core::Poll& poll) const {
    return poll.heartbeat ? "heartbeat" : "poll";
  }
  std::string operator()(const core::Release&) const { return "release"; }
  std::string operator()(const core::Requeue&) const { return "requeue"; }
  std::string operator()(const core::Revoke&) const { return "revoke"; }
  std::string operator()(const core::Resize&) const { return "resize"; }
  std::string operator()(const core::Upgrade&) const { return "upgrade"; }
  std::string operator()(const core::Downgrade&) const { return "downgrade"; }
  std::string operator()(const core::Transfer&) const { return "transfer"; }
};

}  // namespace

client::Coordinator::Config Desk::config() {
  client::Coordinator::Config made;
  made.session = kOurs;
  made.new_id = [next = std::uint32_t{100}]() mutable { return id(next++); };
  return made;
}

Desk::Desk() : coordinator{config()} {}

// Every test ends like a program that lets go of everything.
void Desk::TearDown() {
  if (on_its_way_) {
    reply();
  }
  run();
  EXPECT_TRUE(coordinator.drained());
}

// --- callers

client::Wish Desk::wish(std::string name) {
  client::Wish made;
  made.name = std::move(name);
  made.terms = {.shape = {}, .ttl = 30s, .hand_over = kDefaultHandOver, .grace = 6s};
  return made;
}

std::shared_ptr<Caller> Desk::acquire(const client::Wish& wish) {
  auto caller = std::make_shared<Caller>();
  caller->claim = coordinator.acquire(wish, caller, now);
  take_effects();
  return caller;
}

std::shared_ptr<Caller> Desk::hold(const client::Wish& wish) {
  auto caller = acquire(wish);
  run();
  EXPECT_TRUE(caller->holds());
  return caller;
}

void Desk::release(const std::shared_ptr<Caller>& caller) {
  coordinator.release(caller->claim, caller, now);
  take_effects();
}

bool Desk::cancel(const std::shared_ptr<Caller>& caller, ErrorCode why) {
  const bool cancelled = coordinator.cancel(caller->claim, why, now);
  take_effects();
  return cancelled;
}

void Desk::healthy(const std::shared_ptr<Caller>& caller, bool well) {
  coordinator.healthy(caller->claim, well, now);
  take_effects();
}

std::shared_ptr<Caller> Desk::ask(core::Operation operation, std::string name) {
  auto caller = std::make_shared<Caller>();
  coordinator.ask({std::move(name), std::move(operation)}, caller);
  return caller;
}

void Desk::take_effects() {
  client::Effects effects = coordinator.take_effects();
  for (auto& [receiver, result] : effects.grants) {
    receiver->deliver(std::move(result));
  }
  for (auto& [receiver, result] : effects.answers) {
    receiver->answer(std::move(result));
  }
  for (const auto& lease : effects.losses) {
    EXPECT_FALSE(lease->lost().stop_requested());
    lease->request_stop();
    losses.push_back(lease.get());
  }
  for (const auto& question : effects.questions) {
    questions.push_back(question.claim);
  }
}

// --- the store

Desk::Sent Desk::send() {
  const auto span = coordinator.start_batch(0, now);
  if (span.empty()) {
    return {};
  }
  EXPECT_FALSE(on_its_way_);
  on_its_way_ = true;
  batch_.assign(span.begin(), span.end());
  return sent();
}

Desk::Sent Desk::sent() const {
  Sent words;
  for (const core::Command& command : batch_) {
    words.push_back(std::visit(Word{}, command.operation) + " " + command.name);
  }
  return words;
}

core::Outcome Desk::other(core::Operation operation, std::string name) {
  std::vector<core::Wake> wakes;
  const core::Outcome outcome =
      store_[name].apply(operation, {.now = now, .token_floor = 1000}, wakes);
  for (const core::Wake& wake : wakes) {
    if (wake.session == kOurs) {
      rings_.push_back({.id = wake.id, .token = wake.token});
    }
  }
  return outcome;
}

engine::Outcomes Desk::apply_batch() {
  engine::Outcomes outcomes;
  for (const core::Command& command : batch_) {
    outcomes.push_back(other(command.operation, command.name));
  }
  return outcomes;
}

void Desk::finish(const engine::Outcomes& outcomes) {
  on_its_way_ = false;
  coordinator.finish_batch(0, outcomes, now);
  take_effects();
}

void Desk::apply() {
  applied_ = apply_batch();
}

void Desk::reply() {
  finish(applied_ ? *std::exchange(applied_, std::nullopt) : apply_batch());
}

void Desk::reply_with(std::vector<core::Outcome> outcomes) {
  finish(outcomes);
}

void Desk::reply_failed(ErrorCode code) {
  finish(engine::Outcomes(
      batch_.size(), {.status = core::Status::failed, .error = Error{code, "test", std::nullopt}}));
}

void Desk::lose_reply() {
  apply_batch();
  reply_failed(ErrorCode::outcome_unknown);
}

Desk::Sent Desk::run() {
  Sent all;
  for (;;) {
    ring();
    const Sent some = send();
    if (some.empty()) {
      return all;
    }
    all.insert(all.end(), some.begin(), some.end());
    reply();
  }
}

void Desk::ring() {
  const auto rings = std::exchange(rings_, {});
  coordinator.rang(rings, now);
  take_effects();
}

std::size_t Desk::lose_rings() {
  return std::exchange(rings_, {}).size();
}

// --- time

void Desk::tick() {
  coordinator.tick(now);
  take_effects();
}

void Desk::look(bool store_changed) {
  coordinator.look(now, store_changed);
  take_effects();
}

void Desk::pass_alone(core::Duration time) {
  const core::Time end = now + time;
  while (coordinator.next_due() <= end) {
    now = std::max(now, coordinator.next_due());
    if (coordinator.look_due(now)) {
      look(false);
    }
    tick();
  }
  now = end;
}

void Desk::pass(core::Duration time) {
  const core::Time end = now + time;
  run();
  while (coordinator.next_due() <= end) {
    now = std::max(now, coordinator.next_due());
    if (coordinator.look_due(now)) {
      look();
    }
    tick();
    run();
  }
  now = end;
}

}  // namespace holdfast::test
