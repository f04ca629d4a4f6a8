#include "client/health_runner.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace holdfast::client {

struct HealthRunner::State {
  struct Question {
    core::ClaimId claim = 0;
    std::shared_ptr<const HealthCheck> check;
  };

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Question> questions;
  std::uint64_t worker = 0;  // the one in office; earlier ones were left behind
  bool running = false;
  core::ClaimId running_for = 0;
  base::Time timeout = base::kNever;
  bool closed = false;
  std::vector<Answer> answers;
  std::function<void()> nudge;
};

HealthRunner::HealthRunner(std::function<void()> nudge) : state_{std::make_shared<State>()} {
  state_->nudge = std::move(nudge);
}

HealthRunner::~HealthRunner() {
  {
    const std::lock_guard lock{state_->mutex};
    state_->closed = true;
  }
  state_->changed.notify_all();
}

void HealthRunner::ask(core::ClaimId claim, std::shared_ptr<const HealthCheck> check) {
  const std::lock_guard lock{state_->mutex};
  state_->questions.push_back({claim, std::move(check)});
  if (state_->worker == 0) {
    start_worker(state_);
  }
  state_->changed.notify_one();
}

// Called with the state's mutex held.
void HealthRunner::start_worker(const std::shared_ptr<State>& state) {
  const std::uint64_t worker = ++state->worker;
  std::thread{[state, worker] { work(state, worker); }}.detach();
}

void HealthRunner::work(const std::shared_ptr<State>& state, std::uint64_t worker) {
  std::unique_lock lock{state->mutex};
  const auto in_office = [&] { return !state->closed && state->worker == worker; };
  for (;;) {
    state->changed.wait(lock, [&] { return !in_office() || !state->questions.empty(); });
    if (!in_office()) {
      return;
    }
    State::Question question = std::move(state->questions.front());
    state->questions.pop_front();
    state->running = true;
    state->running_for = question.claim;
    state->timeout = base::BootClock::now() + question.check->timeout;
    state->nudge();
    lock.unlock();
    bool well = false;
    try {
      well = question.check->ask();
    } catch (...) {
      well = false;
    }
    question.check = nullptr;
    lock.lock();
    if (!in_office()) {
      return;  // given up, and reported so
    }
    state->running = false;
    state->timeout = base::kNever;
    state->answers.push_back({question.claim, well});
    state->nudge();  // under the mutex: ~HealthRunner then knows that none follows
  }
}

base::Time HealthRunner::next_timeout() const {
  const std::lock_guard lock{state_->mutex};
  return state_->timeout;
}

std::vector<HealthRunner::Answer> HealthRunner::collect(base::Time now) {
  const std::lock_guard lock{state_->mutex};
  if (state_->running && now >= state_->timeout) {
    state_->running = false;
    state_->timeout = base::kNever;
    start_worker(state_);
    state_->answers.push_back({state_->running_for, false});
  }
  return std::exchange(state_->answers, {});
}

}  // namespace holdfast::client
