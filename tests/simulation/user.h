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
  class ChangeAnswer;
  // How one cycle is to go.
  struct Plan {
    AcquireOptions options;
    const NamedLock* lock = nullptr;
    std::optional<Duration> cancel_after;
    ErrorCode cancel_as = ErrorCode::timed_out;
    Duration hold{};
    bool may_be_refused = false;
    bool inner = false;    // while holding the same lock
    bool adopted = false;  // from another user, by a code
  };

  Plan draw_plan();
  void draw_shape(Plan& plan);
  void draw_wait(Plan& plan);
  Duration draw_hold(Duration ttl);
  void begin();
  void acquire(const Plan& plan);
  core::ClaimId ask(const client::Wish& wish, const std::shared_ptr<Call>& call, const Plan& plan);
  void cancel(const std::shared_ptr<Call>& call, core::ClaimId claim, ErrorCode why);
  void delivered(const std::shared_ptr<Call>& call, const Plan& plan,
                 const Result<std::shared_ptr<client::LeaseState>>& result);
  void work(const std::shared_ptr<Hold>& hold, const Plan& plan);
  void nest(const std::shared_ptr<Hold>& hold, const Plan& plan);
  void let_go(const std::shared_ptr<Hold>& hold);
  void release_once(const std::shared_ptr<Hold>& hold);
  bool is_free_to_change(const std::shared_ptr<Hold>& hold) const;
  void let_go_at_last();

  // user_changes.cc
  void plan_changes(const std::shared_ptr<Hold>& hold, const Plan& plan);
  void upgrade(const std::shared_ptr<Hold>& hold);
  void downgrade(const std::shared_ptr<Hold>& hold);
  void changed(Change& change, const Result<std::uint32_t>& result);
  void give_away(const std::shared_ptr<Hold>& hold);
  bool adopt();
  template <typename Say>
  void tell(Say say) {
    stage_.tell(name_, say);
  }

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
