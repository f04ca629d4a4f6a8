#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/commands.h"
#include "core/local_queue.h"

namespace holdfast::client {

// Learns what became of a release or an administrative command.
class AnswerReceiver {
 public:
  virtual ~AnswerReceiver() = default;
  AnswerReceiver() = default;
  AnswerReceiver(const AnswerReceiver&) = delete;
  AnswerReceiver& operator=(const AnswerReceiver&) = delete;
  virtual void answer(Result<std::uint32_t> result) = 0;

  bool late = false;  // released when the lease was over by our own clock
};

// One command on its way to the store, and why it was sent.
struct Errand {
  core::Command command;
  core::TenancyId tenancy = 0;  // Requeue: the new one
  std::shared_ptr<AnswerReceiver> receiver = nullptr;
  core::Time sent{};                  // this time
  core::Time since{};                 // when it was first wanted, or first failed
  Duration ttl{};                     // Requeue: of what it gives back
  core::Time give_up = base::kNever;  // no retry after this
  bool unsure = false;                // an earlier send may have been applied
};

// Commands that wait to be sent, one line a lane: what gathers while a batch is
// on its way rides in the next one. Commands for one name keep their order,
// but for upkeep (renewals and heartbeats): many leases that are due at once
// must not hold up the callers, nor the other way round.
// A name stays on its lane while a command for it is there; afterwards it may
// have any. A lane that is free and has a few things to send already comes
// first, so that a release finds company. But upkeep begins on the first lane,
// the first to be connected: leases must not be lost because a store has no
// room for a second connection.
class Outbox {
 public:
  explicit Outbox(std::size_t lanes) : lanes_(lanes) {}

  void push(Errand errand);
  void push_later(Errand errand, core::Time when);
  // Moves the retries whose time has come into their lanes.
  void wake(core::Time now);
  core::Time next_retry() const noexcept;

  // Takes back the unsent Acquire or Requeue of a tenancy.
  std::optional<Errand> take_back(core::TenancyId tenancy);

  // The next batch of a lane, marked as on its way since `now`; empty if there
  // is nothing to send or a batch is on its way.
  std::span<const core::Command> start(std::size_t lane, core::Time now);
  bool can_start() const noexcept;
  std::vector<Errand> finish(std::size_t lane);

  std::size_t lanes() const noexcept { return lanes_.size(); }
  // Where the next command for this name would go.
  std::size_t lane_of(const std::string& name) const;
  // Nothing to send, nothing on its way.
  bool empty() const noexcept;

 private:
  struct Lane {
    std::deque<Errand> queue;
    std::deque<Errand> upkeep;
    std::vector<Errand> on_its_way;
    std::vector<core::Command> commands;  // theirs, in one piece for the engine
  };

  struct Pin {
    std::size_t lane = 0;
    std::size_t commands = 0;
  };

  Lane& pin(const Errand& errand);
  void unpin(const std::string& name);
  std::size_t free_lane() const noexcept;
  void hurry_releases(const Errand& errand);
  static void send(Lane& lane, std::deque<Errand>& from, std::size_t up_to, core::Time now);

  std::vector<Lane> lanes_;
  std::unordered_map<std::string, Pin> pins_;  // if there are several lanes
  std::multimap<core::Time, Errand> retries_;
};

}  // namespace holdfast::client
