// What users do with a lease beside holding it: change its mode, hand it on.

#include <algorithm>
#include <ostream>

#include "client/wish.h"
#include "simulation/user.h"
#include "simulation/words.h"

namespace holdfast::sim {

class User::ChangeAnswer : public client::AnswerReceiver {
 public:
  ChangeAnswer(User& user, std::shared_ptr<Change> change)
      : user_{user}, stage_{user.stage_}, change_{std::move(change)} {}
  ~ChangeAnswer() override {
    if (change_->ended == base::kNever && change_->hold->call->life->alive) {
      stage_.violate("errors", "a change of mode was never answered");
    }
  }
  ChangeAnswer(const ChangeAnswer&) = delete;
  ChangeAnswer& operator=(const ChangeAnswer&) = delete;
  void answer(Result<std::uint32_t> result) override { user_.changed(*change_, result); }

 private:
  User& user_;
  Stage& stage_;  // which outlives users and clients
  std::shared_ptr<Change> change_;
};

bool User::is_free_to_change(const std::shared_ptr<Hold>& hold) const {
  return inner_calls_ == 0 && std::ranges::find(holds_, hold) != holds_.end();
}

void User::plan_changes(const std::shared_ptr<Hold>& hold, const Plan& plan) {
  const Scenario& scenario = stage_.scenario;
  const bool has_modes = plan.options.mode != Mode::permits;
  const auto some_time = [&] { return dice_.between(Duration{}, plan.hold); };
  if (has_modes && scenario.upgrades > 0 && dice_.permille(scenario.upgrades)) {
    process_.enter_after(some_time(), [this, hold] { upgrade(hold); });
  }
  if (has_modes && scenario.downgrades > 0 && dice_.permille(scenario.downgrades)) {
    process_.enter_after(some_time(), [this, hold] { downgrade(hold); });
  }
  if (scenario.transfers > 0 && dice_.permille(scenario.transfers)) {
    process_.enter_after(some_time(), [this, hold] { give_away(hold); });
  }
}

void User::upgrade(const std::shared_ptr<Hold>& hold) {
  if (!is_free_to_change(hold) || hold->depth > 1 || hold->shape().mode != Mode::shared) {
    return;
  }
  const bool queue = dice_.below(4) != 0;
  tell([&](auto& out) { out << "upgrades " << hold->name() << (queue ? "" : " at once"); });
  const auto change = process_.witness().changes(hold, Mode::exclusive, queue);
  ++inner_calls_;
  process_.coordinator().upgrade(hold->state->claim, queue,
                                 std::make_shared<ChangeAnswer>(*this, change),
                                 process_.local_now());
  if (queue && dice_.below(3) == 0) {
    process_.enter_after(dice_.between(Duration{}, stage_.scenario.ttl), [this, change] {
      if (change->ended == base::kNever) {
        change->cancelled = ErrorCode::timed_out;
        process_.coordinator().cancel_upgrade(change->hold->state->claim, ErrorCode::timed_out,
                                              process_.local_now());
      }
    });
  }
}

void User::downgrade(const std::shared_ptr<Hold>& hold) {
  if (!is_free_to_change(hold) || hold->depth > 1 || hold->shape().mode != Mode::exclusive) {
    return;
  }
  tell([&](auto& out) { out << "downgrades " << hold->name(); });
  const auto change = process_.witness().changes(hold, Mode::shared, true);
  ++inner_calls_;
  process_.coordinator().downgrade(
      hold->state->claim, std::make_shared<ChangeAnswer>(*this, change), process_.local_now());
}

void User::changed(Change& change, const Result<std::uint32_t>& result) {
  tell([&](auto& out) {
    out << "learns that " << change.hold->name() << " is "
        << (change.to == Mode::exclusive ? "exclusive" : "shared") << ": "
        << (result ? "yes, token " + std::to_string(change.hold->state->token().value_or(0))
                   : std::string{to_string(result.error().code)});
  });
  process_.witness().changed(change, result);
  let_go_at_last();
  const auto hold = change.hold;
  const Duration when = dice_.between(Duration{}, stage_.scenario.ttl / 4);
  if (change.to == Mode::exclusive && result) {
    process_.enter_after(when / 2, [this, hold] {
      if (std::ranges::find(holds_, hold) != holds_.end()) {
        process_.witness().write(*hold);
      }
    });
    if (dice_.coin()) {
      process_.enter_after(when, [this, hold] { downgrade(hold); });
    }
  } else if (dice_.below(3) == 0) {
    process_.enter_after(when, [this, hold] { upgrade(hold); });  // again, or anew
  }
}

void User::give_away(const std::shared_ptr<Hold>& hold) {
  if (!is_free_to_change(hold) || hold->depth > 1) {
    return;
  }
  const auto given = process_.coordinator().give_away(hold->state->claim, process_.local_now());
  tell([&](auto& out) {
    out << "gives " << hold->name() << " away: "
        << (given ? words(given->request) : std::string{to_string(given.error().code)});
  });
  if (!given) {
    return;
  }
  std::erase(holds_, hold);
  stage_.parcels.push_back({.name = hold->name(),
                            .request = given->request,
                            .shape = given->shape,
                            .good_until = hold->alive_until});
  process_.witness().gives(*hold);
  think();
}

// Takes over what somebody gave away; now and then what somebody else took
// already.
bool User::adopt() {
  if (stage_.parcels.empty() || dice_.coin()) {
    return false;
  }
  const std::size_t which = dice_.below(stage_.parcels.size());
  const Parcel parcel = stage_.parcels[which];
  stage_.parcels[which].used = true;
  const bool alone = dice_.below(4) != 0;  // nobody else tries the same code
  if (alone) {
    stage_.parcels.erase(stage_.parcels.begin() + static_cast<std::ptrdiff_t>(which));
  }
  Plan plan;
  plan.adopted = true;
  plan.lock = &*std::ranges::find(stage_.scenario.locks, parcel.name, &NamedLock::name);
  plan.options.ttl = stage_.scenario.ttl;
  plan.options.mode = parcel.shape.mode;
  plan.options.permits = parcel.shape.permits;
  plan.options.of = parcel.shape.limit;
  plan.options.wait = Duration{};
  plan.hold = draw_hold(plan.options.ttl);
  auto wish = client::make_wish(parcel.name, plan.options, Capabilities{});
  wish->adopts = parcel.request;
  const auto call = process_.witness().calls(process_.shared_life(), *wish);
  const bool calm = stage_.scenario.calm() && stage_.scenario.admin_acts == 0;
  call->code_good_until = calm && alone && !parcel.used ? parcel.good_until : Time{};
  tell([&](auto& out) {
    out << "call " << call->number << ": adopts " << parcel.name << " of " << words(parcel.request);
  });
  ask(*wish, call, plan);
  return true;
}

}  // namespace holdfast::sim
