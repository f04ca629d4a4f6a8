#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "engine/engine.h"

namespace holdfast::test {

// A real engine at the far end of a line: batches are applied by it, on other
// threads and later, like those of engines that talk to a server.
class AsyncEngine : public engine::Engine {
 public:
  struct Line {
    std::size_t lanes = 1;
    std::uint64_t seed = 1;
    unsigned inline_percent = 0;  // done before submit() returns
    unsigned lost_percent = 0;    // no answer: applied or not
    base::Duration longest_delay = std::chrono::microseconds{200};
    base::Duration gather{};
  };

  // What the test keeps in its hands; the engine belongs to the client.
  class Control {
   public:
    void hold();  // from now on nothing gets through
    void let_through();
    std::size_t submits() const;
    std::vector<std::size_t> acquires() const;  // in each batch

   private:
    friend class AsyncEngine;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    bool held_ = false;
    std::size_t submits_ = 0;
    std::vector<std::size_t> acquires_;
  };

  AsyncEngine(std::unique_ptr<engine::Engine> real, Line line, std::shared_ptr<Control> control);
  ~AsyncEngine() override;  // brings what is on its way to its end

  const Capabilities& capabilities() const noexcept override { return real_->capabilities(); }
  std::size_t lanes() const noexcept override { return line_.lanes; }
  base::Duration gather() const noexcept override { return line_.gather; }
  void submit(std::size_t lane, std::span<const core::Command> batch, engine::Patience patience,
              engine::Done done) override;
  int doorbell_fd() const noexcept override { return real_->doorbell_fd(); }
  std::vector<engine::Ring> answer_doorbell() override { return real_->answer_doorbell(); }
  bool may_have_changed() override { return real_->may_have_changed(); }
  void tidy() override { real_->tidy(); }
  Result<std::vector<LockInfo>> list(std::string_view prefix) override {
    return real_->list(prefix);
  }
  Result<LockInfo> show(std::string_view name) override { return real_->show(name); }
  Result<void> init() override { return real_->init(); }
  Result<std::string> init_script() override { return real_->init_script(); }
  std::vector<Finding> doctor() override { return real_->doctor(); }

 private:
  struct Task {
    std::span<const core::Command> batch;
    engine::Done done;
    bool lost = false;
    bool applied = true;
  };

  Task make_task(std::span<const core::Command> batch, engine::Done done);  // under the mutex
  void run(Task& task);
  void work();

  std::unique_ptr<engine::Engine> real_;
  const Line line_;
  std::shared_ptr<Control> control_;
  std::mt19937_64 random_;  // under control_->mutex_, as all below
  std::multimap<base::Time, Task> on_the_line_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace holdfast::test
