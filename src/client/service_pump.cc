// The talk of a Service with its engine: what is sent, and who is told.

#include <algorithm>
#include <optional>
#include <utility>

#include "client/service.h"

namespace holdfast::client {
namespace {

// A thread works for others at most this long after its own turn, each turn a
// batch or the news of one; then the keeper takes over. The keeper itself goes
// round its own loop then, and looks at the clock.
constexpr int kMaxTurns = 10;

// The service that this thread, one of its engine's, has brought outcomes to.
thread_local const Service* brought_outcomes_to = nullptr;

}  // namespace

// Where this thread is inside pump(). A callback that comes back into the
// service leaves what it wants to the loop below it on the stack: a chain of
// callbacks, each beginning the next acquire, must not grow the stack.
class Service::Pumping {
 public:
  explicit Pumping(const Service* service) : service_{service}, outer_{innermost} {
    innermost = this;
  }
  ~Pumping() { innermost = outer_; }
  Pumping(const Pumping&) = delete;
  Pumping& operator=(const Pumping&) = delete;

  static Pumping* find(const Service* service) {
    Pumping* found = innermost;
    while (found != nullptr && found->service_ != service) {
      found = found->outer_;
    }
    return found;
  }

  bool again = false;  // something was left to this loop

 private:
  static thread_local Pumping* innermost;
  const Service* service_;
  Pumping* outer_;
};
thread_local Service::Pumping* Service::Pumping::innermost = nullptr;

bool Service::on_engines_thread() const noexcept {
  return brought_outcomes_to == this;
}

bool Service::pump(std::unique_lock<std::mutex>& lock, engine::Patience patience, Lead lead,
                   std::size_t last) {
  if (Pumping* below = Pumping::find(this); below != nullptr && lead != Lead::must) {
    below->again = true;
    lock.unlock();
    return false;
  }
  Pumping here{this};
  bool sent = false;
  for (int turn = 0;; ++turn) {
    here.again = false;
    if (coordinator_.drained()) {
      drained_.notify_all();
    }
    Effects effects = coordinator_.take_effects();
    expect_back(effects);
    const bool gathering = gathers();
    const bool may_lead = !stopping_ && turn < kMaxTurns && lead != Lead::ride && !gathering &&
                          (lead != Lead::keeper || on_keeper());
    // Those who wait first: a callback may want the lane that it is told of.
    const auto batch = may_lead && effects.empty() ? start_batch(last) : std::nullopt;
    const bool more = !batch && coordinator_.can_send();
    // What is on other lanes does not wait for this one's answer.
    const bool alone = !batch || !coordinator_.can_send();
    const bool rides = gathering || lead == Lead::ride;
    if (!more || !rides) {
      ride_ends_ = base::kNever;
    } else {
      ride_ends_ = gathering ? gathers_until_ : base::BootClock::now() + ride_;
    }
    bring_alarm_forward();
    lock.unlock();
    perform(std::move(effects));
    if (batch) {
      sent = true;
      submit(*batch, alone ? patience : engine::Patience::none);
    } else if (!here.again && (!more || rides)) {
      return sent;
    } else if (!may_lead) {
      nudge();
      return sent;
    }
    lock.lock();
    if (batch && lanes_[batch->lane].submitting == std::this_thread::get_id()) {
      lanes_[batch->lane].submitting = {};
    }
  }
}

// Threads that take one lock after the other come back together: those who were
// served by one batch fill the next, if that waits for them. Otherwise there are
// two halves in turn, and each batch costs the store as much for half as many.
void Service::expect_back(const Effects& effects) {
  if (gather_ == Duration::zero() || effects.grants.empty() || base::is_clock_fake()) {
    return;
  }
  for (const auto& [receiver, result] : effects.grants) {
    if (receiver->comes_back && result) {
      receiver->gathering = gathering_;
      ++coming_back_;
    }
  }
  gathers_until_ = base::BootClock::now() + gather_;
}

bool Service::gathers() {
  if (coming_back_ > 0 && base::BootClock::now() >= gathers_until_) {
    coming_back_ = 0;
    ++gathering_;
  }
  return coming_back_ > 0;
}

std::optional<Service::Batch> Service::start_batch(std::size_t last) {
  for (std::size_t i = 1; i <= lanes_.size(); ++i) {
    const std::size_t lane = (last + i) % lanes_.size();
    const auto commands = coordinator_.start_batch(lane, base::BootClock::now());
    if (!commands.empty()) {
      lanes_[lane].submitting = std::this_thread::get_id();
      return Batch{lane, commands};
    }
  }
  return std::nullopt;
}

void Service::submit(const Batch& batch, engine::Patience patience) {
  const std::size_t lane = batch.lane;
  patience.spin = spin_;
  engine_->submit(lane, batch.commands, patience, [this, lane](const engine::Outcomes& outcomes) {
    std::unique_lock lock{mutex_};
    coordinator_.finish_batch(lane, outcomes, base::BootClock::now());
    // On the submitting thread the loop in pump() goes on by itself.
    if (lanes_[lane].submitting != std::this_thread::get_id()) {
      const auto until_done = weak_from_this().lock();  // a callback may drop the last handle
      stopping_ = stopping_ || until_done == nullptr;
      brought_outcomes_to = this;
      pump(lock, engine::Patience::none, Lead::may);
    }
  });
}

void Service::perform(Effects effects) noexcept {
  for (auto& [receiver, result] : effects.grants) {
    receiver->deliver(std::move(result));
  }
  for (auto& [receiver, result] : effects.answers) {
    receiver->answer(std::move(result));
  }
  for (auto& lease : effects.losses) {
    callbacks_.post([lease] { lease->request_stop(); });
  }
  for (auto& question : effects.questions) {
    health_->ask(question.claim, std::move(question.check));
  }
}

}  // namespace holdfast::client
