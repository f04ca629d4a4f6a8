#pragma once

#include <memory>
#include <string>
#include <vector>

#include "client/coordinator.h"
#include "simulation/process.h"
#include "simulation/witness.h"

namespace holdfast::sim {

// One thread of a process: wants a lock, works under it, lets it go, again.
class User {
 public:
  User(Process& process, int number);

  void think();
  void hears_of_loss(const client::LeaseState& lease);

 private:
  class Receiver;
  class Answer;
  // How one cycle is to go.
  struct Plan {
    AcquireOptions options;
    const NamedLock* lock = nullptr;
    std::optional<Duration> cancel_after;
    ErrorCode cancel_as = ErrorCode::timed_out;
    Duration hold{};
    bool may_be_refused = false;
    bool inner = false;  // while holding the same lock
  };

  Plan draw_plan();
  void draw_shape(Plan& plan);
  void draw_wait(Plan& plan);
  Duration draw_hold(Duration ttl);
  void begin();
  void acquire(const Plan& plan);
  void cancel(const std::shared_ptr<Call>& call, core::ClaimId claim, ErrorCode why);
  void delivered(const std::shared_ptr<Call>& call, const Plan& plan,
                 const Result<std::shared_ptr<client::LeaseState>>& result);
  void work(const std::shared_ptr<Hold>& hold, const Plan& plan);
  void nest(const std::shared_ptr<Hold>& hold, const Plan& plan);
  void let_go(const std::shared_ptr<Hold>& hold);
  void release_once(const std::shared_ptr<Hold>& hold);
  template <typename Say>
  void tell(Say say);

  Process& process_;
  Stage& stage_;
  Random& dice_;
  std::string name_;
  std::uint64_t owner_;
  bool stubborn_;
  int cycles_ = 0;
  int inner_calls_ = 0;  // this thread is waiting for them
  std::vector<std::shared_ptr<Hold>> holds_;
  std::vector<std::shared_ptr<Hold>> to_let_go_;
};

}  // namespace holdfast::sim
