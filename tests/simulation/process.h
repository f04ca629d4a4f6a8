#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "client/coordinator.h"
#include "simulation/network.h"
#include "simulation/stage.h"
#include "simulation/witness.h"

namespace holdfast::sim {

class User;

// One client process: a real Coordinator, driven as Service drives it, but by
// the timeline. Crashes, comes back as somebody else, is paused, is late.
class Process {
 public:
  Process(int index, Stage& stage, Network& network, FakeStore& store, Witness& witness);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void start();
  void crash();
  void pause(Duration time);

  // Runs something inside this life of the process: now, when it runs again, or
  // never. Everything that happens to a process happens in here.
  void enter(const Life& life, std::function<void()> what);
  void enter_after(Duration delay, std::function<void()> what);

  // --- inside enter()
  void outcomes(std::size_t lane, const engine::Outcomes& outcomes);
  void rings(const engine::Ring& ring);
  client::Coordinator& coordinator() { return *coordinator_; }
  Time local_now() const { return life_->clock.at(stage_.now()); }

  const Life& life() const noexcept { return *life_; }
  const std::shared_ptr<Life>& shared_life() const noexcept { return life_; }
  Stage& stage() noexcept { return stage_; }
  Witness& witness() noexcept { return witness_; }
  bool is_idle() const;

 private:
  void resume();
  void settle_down(bool ticked);
  void tell_all();
  void tell_later();
  void perform(const client::Effects& effects);
  void send();
  void renew_all_the_same(const client::LeaseState& lease);
  void arm();
  void tick();
  bool may_have_changed();

  int index_;
  Stage& stage_;
  Network& network_;
  FakeStore& store_;
  Witness& witness_;
  int incarnations_ = 0;
  std::uint32_t ids_ = 0;
  std::shared_ptr<Life> life_;
  std::unique_ptr<client::Coordinator> coordinator_;
  std::vector<std::unique_ptr<User>> users_;
  std::vector<std::unique_ptr<User>> dead_users_;  // their events may still be on the timeline
  std::vector<std::function<void()>> missed_;      // while paused
  Time armed_ = base::kNever;
  std::uint64_t alarm_ = 0;
  bool send_later_ = false;
  std::deque<client::Effects> untold_;
  std::uint64_t seen_version_ = 0;
};

}  // namespace holdfast::sim
