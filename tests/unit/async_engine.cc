#include "unit/async_engine.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "engine/batch.h"

namespace holdfast::test {

using base::BootClock;

void AsyncEngine::Control::hold() {
  const std::lock_guard lock{mutex_};
  held_ = true;
}

void AsyncEngine::Control::let_through() {
  {
    const std::lock_guard lock{mutex_};
    held_ = false;
  }
  changed_.notify_all();
}

std::size_t AsyncEngine::Control::submits() const {
  const std::lock_guard lock{mutex_};
  return submits_;
}

std::vector<std::size_t> AsyncEngine::Control::acquires() const {
  const std::lock_guard lock{mutex_};
  return acquires_;
}

AsyncEngine::AsyncEngine(std::unique_ptr<engine::Engine> real, Line line,
                         std::shared_ptr<Control> control)
    : real_{std::move(real)}, line_{line}, control_{std::move(control)}, random_{line.seed} {
  for (int i = 0; i < 2; ++i) {
    threads_.emplace_back([this] { work(); });
  }
}

AsyncEngine::~AsyncEngine() {
  {
    const std::lock_guard lock{control_->mutex_};
    stopping_ = true;
  }
  control_->changed_.notify_all();
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

AsyncEngine::Task AsyncEngine::make_task(std::span<const core::Command> batch, engine::Done done) {
  Task task{.batch = batch, .done = std::move(done)};
  task.lost = random_() % 100 < line_.lost_percent;
  task.applied = !task.lost || random_() % 2 == 0;
  return task;
}

void AsyncEngine::submit(std::size_t, std::span<const core::Command> batch, engine::Patience,
                         engine::Done done) {
  std::unique_lock lock{control_->mutex_};
  ++control_->submits_;
  const auto acquires = std::ranges::count_if(batch, [](const core::Command& command) {
    return std::holds_alternative<core::Acquire>(command.operation);
  });
  control_->acquires_.push_back(static_cast<std::size_t>(acquires));
  Task task = make_task(batch, std::move(done));
  if (!control_->held_ && random_() % 100 < line_.inline_percent) {
    lock.unlock();
    run(task);
    return;
  }
  const auto delay = base::Duration{static_cast<base::Duration::rep>(
      random_() % static_cast<std::uint64_t>(line_.longest_delay.count() + 1))};
  on_the_line_.emplace(BootClock::now() + delay, std::move(task));
  lock.unlock();
  control_->changed_.notify_all();  // engines may share it
}

void AsyncEngine::run(Task& task) {
  engine::Outcomes outcomes;
  if (task.applied) {
    real_->submit(0, task.batch, engine::Patience::for_outcomes,
                  [&](engine::Outcomes all) { outcomes = std::move(all); });
  }
  if (task.lost) {
    outcomes = engine::all_failed(task.batch.size(),
                                  {ErrorCode::outcome_unknown, "the line went dead", {}});
  }
  task.done(std::move(outcomes));
}

void AsyncEngine::work() {
  std::unique_lock lock{control_->mutex_};
  for (;;) {
    if (on_the_line_.empty()) {
      if (stopping_) {
        return;
      }
      control_->changed_.wait(lock);
      continue;
    }
    const base::Time due = on_the_line_.begin()->first;
    const base::Time now = BootClock::now();
    if (control_->held_ && !stopping_) {
      control_->changed_.wait(lock);
    } else if (now < due && !stopping_) {
      control_->changed_.wait_for(lock, due - now);
    } else {
      Task task = std::move(on_the_line_.begin()->second);
      on_the_line_.erase(on_the_line_.begin());
      lock.unlock();
      run(task);
      task.done = nullptr;
      lock.lock();
    }
  }
}

}  // namespace holdfast::test
