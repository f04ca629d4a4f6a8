#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/local_queue.h"

namespace holdfast::test {

// A LocalQueue together with a record of everything it was told and answered.
// After each event it compares the two: every rule of local_queue.h that can be
// broken is broken in words by the first entry of complaints().
//
// Copies are independent, so that a test can try every continuation.
class CheckedQueue {
 public:
  // Events; each stands for one call of the queue, and the ids are those that
  // the queue itself uses.
  core::ClaimId join(const core::Terms& terms);
  void leave(core::ClaimId claim);
  void grant(core::TenancyId tenancy, core::Duration trusted_for = std::chrono::seconds{30});
  void deny(core::TenancyId tenancy);
  void let_go(core::ClaimId claim);
  void close(core::TenancyId tenancy);
  void gone(core::TenancyId tenancy);
  void renew(core::TenancyId tenancy, core::Duration trusted_for = std::chrono::seconds{30});
  void pass(core::Duration time);
  void pass_unnoticed(core::Duration time);  // the owner's alarm is late

  // What is possible now.
  std::vector<core::ClaimId> waiting() const;  // oldest first
  std::vector<core::ClaimId> admitted() const;
  std::vector<core::TenancyId> asked() const;  // not granted yet
  std::vector<core::TenancyId> held() const;   // not gone

  // Of what happened.
  enum class Fate : std::uint8_t { waiting, admitted, let_go, turned_away, denied, left };
  Fate fate(core::ClaimId claim) const { return claims_.at(claim).fate; }
  core::TenancyId tenancy_of(core::ClaimId claim) const { return claims_.at(claim).tenancy; }
  std::uint32_t offset_of(core::ClaimId claim) const { return claims_.at(claim).offset; }
  std::size_t stands() const { return tenancies_.size(); }
  std::size_t requeues() const { return requeues_; }
  const core::LocalQueue& queue() const { return queue_; }

  // Everybody goes home; then nothing may be left.
  void go_home();

  const std::vector<std::string>& complaints() const { return complaints_; }
  std::string story() const;  // the events so far

 private:
  struct ClaimView {
    core::Terms terms;
    Fate fate = Fate::waiting;
    core::TenancyId tenancy = 0;
    std::uint32_t offset = 0;
    bool strict() const { return terms.hand_over == 0; }
  };
  struct TenancyView {
    core::Terms terms;
    core::ClaimId strictly_for = 0;
    bool held = false;
    bool closed = false;
    bool gone = false;
    bool ended = false;
    core::Time granted_at{};
    core::Time trusted_until{};
    std::optional<std::uint32_t> last_offset;
    std::vector<core::ClaimId> users;
  };

  void tell(const char* event, std::uint64_t subject = 0);
  void complain(const std::string& what);
  void follow(const core::LocalQueue::Steps& steps, core::TenancyId just_granted = 0);
  void on(const core::LocalQueue::Stand& step);
  void on(const core::LocalQueue::GiveBack& step);
  void on(const core::LocalQueue::Admit& step, core::TenancyId just_granted);
  void on(const core::LocalQueue::TurnAway& step);
  void check_hand_over(core::ClaimId id, const TenancyView& tenancy, std::uint32_t offset);
  void end(core::TenancyId id);
  bool could_take(const TenancyView& tenancy, const core::Terms& terms) const;
  std::optional<core::ClaimId> head() const;  // of the line; strict claims stand beside it
  void check_state();
  void check_head();

  static core::TenancyId next_tenancy_;  // of all copies: ids need only rise
  core::LocalQueue queue_{&next_tenancy_};
  core::ClaimId next_claim_ = 1;
  core::ClaimId joining_ = 0;
  core::Time now_{std::chrono::hours{1}};
  std::map<core::ClaimId, ClaimView> claims_;
  std::map<core::TenancyId, TenancyView> tenancies_;
  std::size_t requeues_ = 0;
  std::vector<std::pair<const char*, std::uint64_t>> story_;
  std::vector<std::string> complaints_;
};

}  // namespace holdfast::test
