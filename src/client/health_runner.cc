#include "client/health_runner.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace holdfast::client {
namespace {

// Checks that take longer than this many at once can bear wait for each other.
constexpr std::size_t kMaxWorkers = 16;

}  // namespace

struct HealthRunner::State {
  struct Question {
    core::ClaimId claim = 0;
    std::shared_ptr<const HealthCheck> check;
  };
  struct Running {
    core::ClaimId claim = 0;
    base::Time timeout;
  };

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Question> questions;
  std::map<std::uint64_t, Running> running;  // by worker; who is not here was given up
  std::uint64_t next_worker = 1;
  std::size_t workers = 0;  // without those that were given up
  std::size_t idle = 0;     // including those that have just been started
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
  start_workers(state_);
  state_->changed.notify_one();
}

// Called with the state's mutex held.
void HealthRunner::start_workers(const std::shared_ptr<State>& state) {
  while (state->questions.size() > state->idle && state->workers < kMaxWorkers) {
    try {
      std::thread{[state, worker = state->next_worker] { work(state, worker); }}.detach();
    } catch (const std::system_error&) {
      break;
    }
    ++state->next_worker;
    ++state->workers;
    ++state->idle;
  }
  if (state->workers == 0 && !state->questions.empty()) {
    // No thread to be had: silence would look the same.
    for (const State::Question& question : std::exchange(state->questions, {})) {
      state->answers.push_back({question.claim, false});
    }
    state->nudge();
  }
}

void HealthRunner::work(const std::shared_ptr<State>& state, std::uint64_t worker) {
  std::unique_lock lock{state->mutex};
  for (;;) {
    state->changed.wait(lock, [&] { return state->closed || !state->questions.empty(); });
    --state->idle;
    if (state->closed) {
      return;
    }
    State::Question question = std::move(state->questions.front());
    state->questions.pop_front();
    state->running[worker] = {question.claim, base::BootClock::now() + question.check->timeout};
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
    if (state->closed || state->running.erase(worker) == 0) {
      return;  // given up, and reported so
    }
    state->answers.push_back({question.claim, well});
    state->nudge();  // under the mutex: ~HealthRunner then knows that none follows
    if (state->idle > 0 && state->questions.empty()) {
      --state->workers;  // one that waits for more is enough
      return;
    }
    ++state->idle;
  }
}

base::Time HealthRunner::next_timeout() const {
  const std::lock_guard lock{state_->mutex};
  base::Time next = base::kNever;
  for (const auto& [worker, running] : state_->running) {
    next = std::min(next, running.timeout);
  }
  return next;
}

std::vector<HealthRunner::Answer> HealthRunner::collect(base::Time now) {
  const std::lock_guard lock{state_->mutex};
  state_->workers -= std::erase_if(state_->running, [&](const auto& entry) {
    const bool over = now >= entry.second.timeout;
    if (over) {
      state_->answers.push_back({entry.second.claim, false});
    }
    return over;
  });
  start_workers(state_);
  return std::exchange(state_->answers, {});
}

}  // namespace holdfast::client
