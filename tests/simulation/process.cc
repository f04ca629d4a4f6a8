#include "simulation/process.h"

#include <algorithm>

#include "simulation/user.h"
#include "simulation/words.h"

namespace holdfast::sim {

Process::Process(int index, Stage& stage, Network& network, FakeStore& store, Witness& witness)
    : index_{index}, stage_{stage}, network_{network}, store_{store}, witness_{witness} {}

Process::~Process() = default;

void Process::start() {
  const Scenario& scenario = stage_.scenario;
  const int incarnation = ++incarnations_;
  const Duration offset = stage_.fault_dice.between(Duration{}, std::chrono::hours{1000});
  const int drift = stage_.fault_dice.between(-scenario.drift_ppm, scenario.drift_ppm);
  life_ = std::make_shared<Life>(Life{.process = index_,
                                      .incarnation = incarnation,
                                      .session = make_id(index_, incarnation, 0),
                                      .clock = LocalClock{offset, drift}});
  client::Coordinator::Config config;
  config.session = life_->session;
  config.lanes = scenario.lanes;
  config.backstop_poll = scenario.backstop;
  config.patience = stage_.mutant == Mutant::no_patience ? Duration{} : scenario.patience;
  ids_ = 0;
  const int series = stage_.mutant == Mutant::ids_reused ? 1 : incarnation;
  config.new_id = [this, series] { return make_id(index_, series, ++ids_); };
  coordinator_ = std::make_unique<client::Coordinator>(std::move(config));
  armed_ = base::kNever;
  network_.connect(*this, life_);
  stage_.tell(life_->name(), [&](auto& out) { out << "starts"; });
  for (int i = 0; i < scenario.users; ++i) {
    users_.push_back(std::make_unique<User>(*this, i));
    users_.back()->think();
  }
}

void Process::crash() {
  if (!life_->alive) {
    return;
  }
  stage_.tell(life_->name(), [&](auto& out) { out << "crashes"; });
  life_->alive = false;
  life_->paused = false;
  life_->died = stage_.now();
  witness_.crashed(*life_);
  missed_.clear();
  untold_.clear();
  std::ranges::move(users_, std::back_inserter(dead_users_));
  users_.clear();
  coordinator_ = nullptr;
}

void Process::pause(Duration time) {
  if (!life_->alive || life_->paused) {
    return;
  }
  stage_.tell(life_->name(), [&](auto& out) { out << "paused for " << words(time); });
  life_->paused = true;
  life_->disturb(stage_.now() + time + stage_.scenario.request_timeout * 2);
  stage_.timeline.after(time, [this, life = life_] {
    if (life->alive) {
      resume();
    }
  });
}

// What came due meanwhile comes all at once, in no particular order.
void Process::resume() {
  stage_.tell(life_->name(), [&](auto& out) { out << "runs again"; });
  life_->paused = false;
  const std::shared_ptr<Life> life = life_;
  std::vector<std::function<void()>> missed = std::exchange(missed_, {});
  while (!missed.empty() && life->alive) {
    const auto which = static_cast<std::ptrdiff_t>(stage_.fault_dice.below(missed.size()));
    const std::function<void()> what = std::move(missed[static_cast<std::size_t>(which)]);
    missed.erase(missed.begin() + which);
    enter(*life, what);
  }
}

void Process::enter(const Life& life, std::function<void()> what) {
  if (!life.alive) {
    return;
  }
  if (life.paused) {
    missed_.push_back(std::move(what));
    return;
  }
  what();
  settle_down(false);
}

void Process::enter_after(Duration delay, std::function<void()> what) {
  stage_.timeline.after(delay,
                        [this, life = life_, what = std::move(what)] { enter(*life, what); });
}

void Process::outcomes(std::size_t lane, const engine::Outcomes& outcomes) {
  coordinator_->finish_batch(lane, outcomes, local_now());
}

void Process::rings(const engine::Ring& ring) {
  stage_.tell(life_->name(), [&](auto& out) {
    out << "the bell rings for " << words(ring.id) << " token " << ring.token;
  });
  if (stage_.mutant != Mutant::rings_ignored) {
    coordinator_->rang({&ring, 1}, local_now());
  }
}

// As Service::pump does: tell whoever must be told, send what there is to send.
void Process::settle_down(bool ticked) {
  untold_.push_back(coordinator_->take_effects());
  const bool slow = stage_.user_dice.permille(stage_.scenario.slow_to_tell);
  if (slow && !untold_.back().empty()) {
    tell_later();
  } else {
    tell_all();
  }
  const bool lazy = stage_.network_dice.permille(stage_.scenario.lazy_send);
  if (!lazy) {
    send();
  } else if (!std::exchange(send_later_, true)) {
    stage_.timeline.after(stage_.network_dice.between(Duration{}, stage_.scenario.delay),
                          [this, life = life_] {
                            send_later_ = false;
                            enter(*life, [this] { send(); });
                          });
  }
  witness_.observe(*life_, coordinator_->next_due(), ticked);
  arm();
}

// What was decided first is told first.
void Process::tell_all() {
  while (!untold_.empty()) {
    const client::Effects effects = std::move(untold_.front());
    untold_.pop_front();
    perform(effects);
  }
}

// Its threads are told outside the client's lock: until they run, more happens.
void Process::tell_later() {
  const Duration late = stage_.user_dice.between(Duration{}, stage_.scenario.ttl / 10);
  life_->disturb(stage_.now() + late);
  enter_after(late, [this] { tell_all(); });
}

void Process::perform(const client::Effects& effects) {
  for (const auto& [receiver, result] : effects.grants) {
    receiver->deliver(result);
  }
  for (const auto& [receiver, result] : effects.answers) {
    if (stage_.mutant != Mutant::answer_lost) {
      receiver->answer(result);
    }
  }
  for (const auto& lease : effects.losses) {
    if (stage_.mutant == Mutant::loss_untold) {
      continue;
    }
    witness_.lost(*lease);
    if (stage_.mutant == Mutant::loss_told_twice) {
      witness_.lost(*lease);
    }
    if (stage_.mutant == Mutant::renews_after_loss) {
      renew_all_the_same(*lease);
    }
    for (const auto& user : users_) {
      user->hears_of_loss(*lease);
    }
  }
  for (const auto& question : effects.questions) {
    enter_after(stage_.user_dice.between(Duration{}, stage_.scenario.delay * 4), [this, question] {
      coordinator_->healthy(question.claim, question.check->ask(), local_now());
    });
  }
}

void Process::renew_all_the_same(const client::LeaseState& lease) {
  const auto request = witness_.request_of(lease);
  if (!request) {
    return;
  }
  enter_after(stage_.scenario.ttl / 2 + stage_.scenario.request_timeout * 3,
              [this, name = lease.name, request] {
                witness_.renews(*life_, *request);
                network_.stray({name, core::Renew{*request}});
              });
}

void Process::send() {
  for (std::size_t lane = 0; lane < coordinator_->lanes(); ++lane) {
    const auto batch = coordinator_->start_batch(lane, local_now());
    for (const core::Command& command : batch) {
      if (const auto* renew = std::get_if<core::Renew>(&command.operation)) {
        witness_.renews(*life_, renew->id);
      }
    }
    if (!batch.empty()) {
      network_.send(*this, lane, batch);
    }
  }
}

void Process::arm() {
  const Time due = coordinator_->next_due();
  if (due == base::kNever) {
    return;
  }
  Time when = std::max(life_->clock.truth_of(due), stage_.now());
  if (when >= armed_) {
    return;
  }
  armed_ = when;
  if (stage_.mutant == Mutant::keeper_asleep) {
    when += stage_.scenario.ttl / 2;
  }
  if (!stage_.over() && stage_.fault_dice.permille(stage_.scenario.keeper_late)) {
    when += stage_.fault_dice.between(Duration{}, stage_.scenario.latest_keeper);
    life_->disturb(when + stage_.scenario.request_timeout);
  }
  const std::uint64_t alarm = ++alarm_;
  stage_.timeline.at(when, [this, life = life_, alarm] {
    if (life->alive && alarm == alarm_) {
      armed_ = base::kNever;
      if (life->paused) {
        missed_.push_back([this] { tick(); });
      } else {
        tick();
        settle_down(true);
      }
    }
  });
}

// As the keeper thread of Service does.
void Process::tick() {
  const Time now = local_now();
  if (coordinator_->look_due(now)) {
    coordinator_->look(now, may_have_changed());
  }
  coordinator_->tick(now);
}

bool Process::may_have_changed() {
  if (stage_.mutant == Mutant::backstop_off) {
    return false;
  }
  if (!stage_.scenario.counts_changes || store_.is_down()) {
    return true;
  }
  return std::exchange(seen_version_, store_.version()) != store_.version();
}

bool Process::is_idle() const {
  return !life_->alive || (untold_.empty() && coordinator_->idle() && coordinator_->drained() &&
                           coordinator_->next_due() == base::kNever);
}

}  // namespace holdfast::sim
