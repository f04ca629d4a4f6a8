#include "simulation/user.h"

#include <algorithm>
#include <ostream>

#include "client/wish.h"
#include "simulation/client_mutants.h"
#include "simulation/words.h"

namespace holdfast::sim {

using client::LeaseState;

class User::Receiver : public client::GrantReceiver {
 public:
  Receiver(User& user, std::shared_ptr<Call> call, Plan plan)
      : user_{user}, call_{std::move(call)}, plan_{std::move(plan)} {}
  void deliver(Result<std::shared_ptr<LeaseState>> result) override {
    user_.delivered(call_, plan_, result);
  }

 private:
  User& user_;
  std::shared_ptr<Call> call_;
  Plan plan_;
};

class User::Answer : public client::AnswerReceiver {
 public:
  Answer(User& user, std::shared_ptr<Hold> hold) : user_{user}, hold_{std::move(hold)} {}
  ~Answer() override {
    if (!answered_ && hold_->call->life->alive) {
      user_.stage_.violate("release", "a release was never answered");
    }
  }
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;
  void answer(Result<std::uint32_t> result) override {
    user_.tell([&](auto& out) {
      out << "learns of its release of " << hold_->name() << ": "
          << (result ? "done" : to_string(result.error().code));
    });
    if (std::exchange(answered_, true)) {
      user_.stage_.violate("release", "a release was answered twice");
    }
    user_.process_.witness().answered(*hold_, result);
  }

 private:
  User& user_;
  std::shared_ptr<Hold> hold_;
  bool answered_ = false;
};

User::User(Process& process, int number)
    : process_{process},
      stage_{process.stage()},
      dice_{stage_.user_dice},
      name_{process.life().name() + "/" + std::string(1, static_cast<char>('a' + number))},
      owner_{static_cast<std::uint64_t>(number) + 1},
      stubborn_{dice_.permille(stage_.scenario.stubborn)} {}

void User::think() {
  const Duration pause = dice_.coin() ? dice_.between(Duration{}, stage_.scenario.ttl / 50)
                                      : dice_.between(Duration{}, stage_.scenario.ttl * 2);
  process_.enter_after(pause, [this] { begin(); });
}

// --- plans

User::Plan User::draw_plan() {
  const Scenario& scenario = stage_.scenario;
  Plan plan;
  plan.lock = &scenario.locks[dice_.below(scenario.locks.size())];
  AcquireOptions& options = plan.options;
  options.ttl =
      dice_.permille(scenario.other_ttl) ? scenario.ttl * 2 / dice_.between(1, 4) : scenario.ttl;
  options.renew = !dice_.permille(scenario.not_renewed);
  options.fair = !dice_.permille(scenario.barging);
  options.hand_over = scenario.hand_overs[dice_.below(scenario.hand_overs.size())];
  if (dice_.permille(scenario.max_hold)) {
    options.max_hold = dice_.between(options.ttl / 20, options.ttl * 2);
  }
  if (dice_.below(5) == 0) {
    options.grace = dice_.between(Duration{}, options.ttl / 3);
  }
  plan.hold = draw_hold(options.ttl);
  draw_shape(plan);
  draw_wait(plan);
  return plan;
}

Duration User::draw_hold(Duration ttl) {
  if (dice_.permille(stage_.scenario.long_hold)) {
    return dice_.between(ttl / 2, ttl * 3);
  }
  return dice_.coin() ? dice_.between(Duration{}, std::chrono::milliseconds{3})
                      : dice_.between(Duration{}, ttl / 2);
}

void User::draw_shape(Plan& plan) {
  AcquireOptions& options = plan.options;
  Kind kind = plan.lock->kind;
  if (dice_.permille(stage_.scenario.wrong_kind)) {
    kind = kind == Kind::semaphore ? Kind::mutex : Kind::semaphore;
  }
  plan.may_be_refused = stage_.scenario.wrong_kind > 0;
  if (kind == Kind::shared_mutex && dice_.below(3) != 0) {
    options.mode = Mode::shared;
  }
  if (kind == Kind::semaphore) {
    options.mode = Mode::permits;
    options.of = std::max(stage_.limits.at(plan.lock->name), 1U);
    if (dice_.permille(stage_.scenario.wrong_limit)) {
      options.of = options.of % kMostPermits + 1;
    }
    options.permits = dice_.coin() ? 1 : static_cast<std::uint32_t>(1 + dice_.below(options.of));
    plan.may_be_refused =
        plan.may_be_refused || stage_.scenario.wrong_limit > 0 || stage_.scenario.admin_acts > 0;
  }
}

void User::draw_wait(Plan& plan) {
  const Scenario& scenario = stage_.scenario;
  const Duration soon = dice_.coin() ? scenario.delay * 3 : scenario.ttl * 2;
  if (dice_.permille(scenario.tries)) {
    plan.options.wait = Duration{};
  } else if (dice_.permille(scenario.timed)) {
    plan.options.wait = plan.cancel_after = dice_.between(Duration{1}, soon);
  } else if (dice_.permille(scenario.cancels)) {
    plan.cancel_after = dice_.between(Duration{}, soon);
    plan.cancel_as = ErrorCode::cancelled;
  }
}

// --- acquire

void User::begin() {
  if (stage_.over() || cycles_++ >= stage_.scenario.cycles) {
    return;
  }
  if (!adopt()) {
    acquire(draw_plan());
  }
}

void User::acquire(const Plan& plan) {
  auto wish = client::make_wish(plan.lock->name, plan.options, Capabilities{});
  if (!wish) {
    stage_.violate("errors", "a good wish was refused: " + wish.error().text);
    return;
  }
  wish->owner = owner_;
  const auto call = process_.witness().calls(process_.shared_life(), *wish);
  call->may_be_refused = plan.may_be_refused || std::ranges::any_of(holds_, [&](const auto& hold) {
                           return hold->name() == wish->name && hold->shape() != wish->terms.shape;
                         });
  if (dice_.permille(stage_.scenario.health)) {
    wish->health = std::make_shared<client::HealthCheck>(
        client::HealthCheck{[this, call] {
                              if (dice_.below(4) == 0) {
                                call->sick_since = call->sick_since.value_or(stage_.now());
                              }
                              return !call->sick_since || stage_.mutant == Mutant::health_ignored;
                            },
                            std::chrono::seconds{1}});
  }
  tell([&](auto& out) {
    out << "call " << call->number << ": wants " << call->wish.name << " "
        << to_string(plan.options.mode) << (plan.options.wait == Duration{} ? " at once" : "")
        << " hand_over " << plan.options.hand_over;
  });
  twist(stage_.mutant, *wish);
  const core::ClaimId claim = ask(*wish, call, plan);
  if (plan.cancel_after) {
    process_.enter_after(*plan.cancel_after,
                         [this, call, claim, why = plan.cancel_as] { cancel(call, claim, why); });
  }
}

core::ClaimId User::ask(const client::Wish& wish, const std::shared_ptr<Call>& call,
                        const Plan& plan) {
  return process_.coordinator().acquire(wish, std::make_shared<Receiver>(*this, call, plan),
                                        process_.local_now());
}

void User::cancel(const std::shared_ptr<Call>& call, core::ClaimId claim, ErrorCode why) {
  if (stage_.mutant == Mutant::cancel_ignored) {
    call->cancelled = why;
    return;
  }
  const bool cancelled = process_.coordinator().cancel(claim, why, process_.local_now());
  if (cancelled) {
    call->cancelled = why;
    tell([&](auto& out) { out << "call " << call->number << ": gives up"; });
  }
  // Otherwise it was answered, though perhaps nobody told it yet.
  const bool waits = !call->finished;
  if (cancelled != waits && (cancelled || stage_.scenario.slow_to_tell == 0)) {
    stage_.violate("S5", "the coordinator and call " + std::to_string(call->number) +
                             " do not agree whether it waits");
  }
}

void User::delivered(const std::shared_ptr<Call>& call, const Plan& plan,
                     const Result<std::shared_ptr<LeaseState>>& result) {
  tell([&](auto& out) {
    out << "call " << call->number << ": ";
    if (result) {
      out << "has " << (*result)->name << " token " << (*result)->token().value_or(0) << " for "
          << words((*result)->deadline() - process_.local_now());
    } else {
      out << to_string(result.error().code);
    }
  });
  const bool nested = result && process_.witness().find(**result) != nullptr;
  process_.witness().delivered(*call, result);
  if (result && !nested) {
    const auto hold = process_.witness().find(**result);
    holds_.push_back(hold);
    work(hold, plan);
  }
  if (plan.inner) {
    let_go_at_last();
  } else if (!result) {
    think();
  }
}

// What this thread waited for is over.
void User::let_go_at_last() {
  --inner_calls_;
  for (const auto& hold : std::exchange(to_let_go_, {})) {
    process_.enter_after(Duration{}, [this, hold] { let_go(hold); });
  }
}

// --- the work

void User::work(const std::shared_ptr<Hold>& hold, const Plan& plan) {
  const int writes = dice_.between(0, 2);
  for (int i = 0; i < writes; ++i) {
    // Also a little after the planned end: the late write of a stubborn user.
    const Duration when = dice_.between(Duration{}, plan.hold + stage_.scenario.delay);
    process_.enter_after(when, [this, hold] {
      const bool holds = std::ranges::find(holds_, hold) != holds_.end();
      if (holds && (stubborn_ || !hold->lost)) {
        stage_.timeline.after(dice_.between(Duration{}, stage_.scenario.delay),
                              [this, hold] { process_.witness().write(*hold); });
      }
    });
  }
  plan_changes(hold, plan);
  if (!plan.adopted && dice_.permille(stage_.scenario.nested)) {
    process_.enter_after(dice_.between(Duration{}, plan.hold),
                         [this, hold, plan] { nest(hold, plan); });
  }
  process_.enter_after(plan.hold, [this, hold] { let_go(hold); });
}

void User::nest(const std::shared_ptr<Hold>& hold, const Plan& plan) {
  if (!is_free_to_change(hold)) {
    return;
  }
  Plan inner = plan;
  inner.options.mode = hold->shape().mode;
  inner.inner = true;
  inner.cancel_after = stage_.scenario.ttl;
  inner.cancel_as = ErrorCode::cancelled;
  inner.hold = draw_hold(plan.options.ttl);
  if (plan.options.mode != Mode::permits && inner.lock->kind == Kind::shared_mutex &&
      dice_.coin()) {
    inner.options.mode = inner.options.mode == Mode::shared ? Mode::exclusive : Mode::shared;
    inner.may_be_refused = true;
  }
  inner.may_be_refused = inner.may_be_refused || !hold->changes.empty();
  ++inner_calls_;
  acquire(inner);
}

void User::hears_of_loss(const LeaseState& lease) {
  const auto it =
      std::ranges::find_if(holds_, [&](const auto& hold) { return hold->state.get() == &lease; });
  if (it == holds_.end()) {
    return;
  }
  tell([&](auto& out) { out << "lost " << lease.name << ": " << to_string(*lease.loss()); });
  if (!stubborn_) {
    process_.enter_after(dice_.between(Duration{}, (*it)->call->wish.terms.grace / 2),
                         [this, hold = *it] { let_go(hold); });
  }
}

void User::let_go(const std::shared_ptr<Hold>& hold) {
  if (inner_calls_ > 0) {
    to_let_go_.push_back(hold);
    return;
  }
  if (std::erase(holds_, hold) == 0) {
    return;
  }
  while (hold->depth > 0) {
    release_once(hold);
  }
  think();
}

void User::release_once(const std::shared_ptr<Hold>& hold) {
  tell([&](auto& out) { out << "releases " << hold->name(); });
  const bool asks = dice_.permille(stage_.scenario.asks_for_answer);
  process_.witness().releases(*hold->state);
  process_.coordinator().release(hold->state->claim,
                                 asks ? std::make_shared<Answer>(*this, hold) : nullptr,
                                 process_.local_now());
}

}  // namespace holdfast::sim
