#include "engines/sqlite/sqlite_deputy.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "base/fork.h"

namespace holdfast::engines {

struct SqliteDeputy::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> tasks;
  bool stopping = false;
  std::thread thread;
};

SqliteDeputy::SqliteDeputy()
    : generation_{base::fork_generation()}, state_{std::make_shared<State>()} {}

SqliteDeputy::~SqliteDeputy() {
  if (generation_ != base::fork_generation()) {
    new std::shared_ptr<State>{std::move(state_)};  // the thread is the parent's
    return;
  }
  {
    const std::lock_guard lock{state_->mutex};
    state_->stopping = true;
  }
  state_->changed.notify_one();
  if (state_->thread.get_id() == std::this_thread::get_id()) {
    state_->thread.detach();  // a task let go of its engine: it ends with the task
  } else if (state_->thread.joinable()) {
    state_->thread.join();
  }
}

void SqliteDeputy::take_over(std::function<void()> task) {
  const std::lock_guard lock{state_->mutex};
  state_->tasks.push_back(std::move(task));
  if (!state_->thread.joinable()) {
    state_->thread = std::thread{[state = state_] { work(state); }};
  }
  state_->changed.notify_one();
}

void SqliteDeputy::work(const std::shared_ptr<State>& state) {
  std::unique_lock lock{state->mutex};
  while (true) {
    state->changed.wait(lock, [&] { return state->stopping || !state->tasks.empty(); });
    if (state->tasks.empty()) {
      return;
    }
    const auto task = std::move(state->tasks.front());
    state->tasks.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

}  // namespace holdfast::engines
