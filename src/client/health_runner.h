#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/time.h"
#include "client/coordinator.h"

namespace holdfast::client {

// Asks health checks off the renewal thread, several at once, so that a slow
// check costs no other lease its renewal. One that does not answer in time
// counts as "not well", and its thread is left behind. Thread-safe.
class HealthRunner {
 public:
  // `nudge` is called when there is something to collect(), or next_timeout()
  // may have become earlier.
  explicit HealthRunner(std::function<void()> nudge);
  ~HealthRunner();  // does not wait for a running check
  HealthRunner(const HealthRunner&) = delete;
  HealthRunner& operator=(const HealthRunner&) = delete;

  void ask(core::ClaimId claim, std::shared_ptr<const HealthCheck> check);

  // When the next running check is given up; kNever if none runs.
  base::Time next_timeout() const;

  struct Answer {
    core::ClaimId claim;
    bool well;
  };
  std::vector<Answer> collect(base::Time now);

 private:
  struct State;
  static void start_workers(const std::shared_ptr<State>& state);
  static void work(const std::shared_ptr<State>& state, std::uint64_t worker);

  std::shared_ptr<State> state_;
};

}  // namespace holdfast::client
