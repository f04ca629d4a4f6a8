#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "client/lease_state.h"
#include "client/outbox.h"
#include "core/commands.h"
#include "core/lease_keeper.h"
#include "core/local_queue.h"
#include "engine/engine.h"

namespace holdfast::client {

// Learns how an acquire ended: exactly once.
class GrantReceiver {
 public:
  virtual ~GrantReceiver() = default;
  GrantReceiver() = default;
  GrantReceiver(const GrantReceiver&) = delete;
  GrantReceiver& operator=(const GrantReceiver&) = delete;
  virtual void deliver(Result<std::shared_ptr<LeaseState>> result) = 0;

  // Will its caller ask for another lock at once? Then the next batch may wait
  // for it; `gathering` is the one that does.
  bool comes_back = false;
  std::uint64_t gathering = 0;
};

struct HealthCheck {
  std::function<bool()> ask;
  Duration timeout{};
};

// A checked acquire: what the caller wants, and how its lease is to be kept.
struct Wish {
  std::string name;
  core::Terms terms;
  std::optional<Duration> max_hold;
  std::shared_ptr<const HealthCheck> health;
  std::optional<std::uint64_t> owner;
  // Not a new grant, but the one of this request, of another process.
  std::optional<core::RequestId> adopts = std::nullopt;
};

// What the world must be told; carried out by the caller outside its lock,
// because it runs strangers' code.
struct Effects {
  struct HealthQuestion {
    core::ClaimId claim;
    std::shared_ptr<const HealthCheck> check;
  };
  std::vector<std::pair<std::shared_ptr<GrantReceiver>, Result<std::shared_ptr<LeaseState>>>>
      grants;
  std::vector<std::pair<std::shared_ptr<AnswerReceiver>, Result<std::uint32_t>>> answers;
  std::vector<std::shared_ptr<LeaseState>> losses;
  std::vector<HealthQuestion> questions;

  bool empty() const noexcept {
    return grants.empty() && answers.empty() && losses.empty() && questions.empty();
  }
};

// One client's view of all its locks: joins the local queues, the lease keeper
// and the conversation with the store. Every decision of the client is taken
// here, without threads, clocks or I/O, so that the simulation runs this very
// code under a virtual clock. Not thread-safe.
class Coordinator {
 public:
  struct Config {
    core::SessionId session;
    std::size_t lanes = 1;
    bool tokens = true;  // the engine hands out fencing tokens
    Duration ride{};     // see Engine::ride
    Duration backstop_poll = kBackstopPoll;
    // How long an unanswered acquire or release is retried before the caller
    // learns that its outcome is unknown.
    Duration patience = kPatience;
    std::function<core::RequestId()> new_id = &core::RequestId::random;
  };

  explicit Coordinator(Config config);

  // --- callers
  core::ClaimId acquire(const Wish& wish, std::shared_ptr<GrantReceiver> receiver, core::Time now);
  // The caller stops waiting: `why` is delivered. False if the claim was
  // answered already.
  bool cancel(core::ClaimId claim, ErrorCode why, core::Time now);
  // `receiver` may be empty.
  void release(core::ClaimId claim, std::shared_ptr<AnswerReceiver> receiver, core::Time now);
  // coordinator_upgrade.cc: a reader becomes the writer. The receiver is answered
  // when it is, or cannot be; without `queue` it does not wait for others.
  void upgrade(core::ClaimId claim, bool queue, std::shared_ptr<AnswerReceiver> receiver,
               core::Time now);
  // The caller stops waiting and stays a reader: `why` is its answer, unless it
  // was answered already.
  void cancel_upgrade(core::ClaimId claim, ErrorCode why, core::Time now);
  // A writer becomes a reader.
  void downgrade(core::ClaimId claim, std::shared_ptr<AnswerReceiver> receiver, core::Time now);
  // The request that stands for the claim's grant, and its shape. lease_lost, busy.
  struct GivenAway {
    core::RequestId request;
    core::Shape shape;
  };
  Result<GivenAway> may_give_away(core::ClaimId claim, core::Time now);
  // The same, and forgets the claim without releasing it.
  Result<GivenAway> give_away(core::ClaimId claim, core::Time now);
  // Sends a command that concerns no request of ours (revoke, resize).
  void ask(core::Command command, std::shared_ptr<AnswerReceiver> receiver);
  // The answer to a HealthQuestion.
  void healthy(core::ClaimId claim, bool well, core::Time now);

  // --- the store
  std::size_t lanes() const noexcept { return outbox_.lanes(); }
  std::size_t lane_of(const std::string& name) const { return outbox_.lane_of(name); }
  std::span<const core::Command> start_batch(std::size_t lane, core::Time now) {
    return outbox_.start(lane, now);
  }
  // start_batch() would find something.
  bool can_send() const noexcept { return outbox_.can_start(); }
  void finish_batch(std::size_t lane, const engine::Outcomes& outcomes, core::Time now);
  void rang(std::span<const engine::Ring> rings, core::Time now);
  // The claim's own request is in the store's queue: a ring may be for it.
  bool stands_in_queue(core::ClaimId claim) const;

  // --- time
  core::Time next_due() const noexcept;
  void tick(core::Time now);
  // The backstop poll, against wake-ups that got lost.
  bool look_due(core::Time now) const noexcept { return now >= next_look_; }
  void look(core::Time now, bool store_changed);

  Effects take_effects() { return std::exchange(effects_, {}); }

  // All releases are answered.
  bool drained() const noexcept { return releases_ == 0; }
  // Nothing held, wanted, or on its way.
  bool idle() const noexcept {
    return claims_.empty() && tenancies_.empty() && lines_.empty() && outbox_.empty();
  }
  std::size_t claims() const noexcept { return claims_.size(); }

 private:
  struct Line {
    const std::string* name = nullptr;
    core::LocalQueue queue;
    core::Time hope = base::kNever;  // its place in hopes_
    std::uint64_t number = 0;        // orders lines, the same in every run
  };
  // What few callers ask for. A process may hold very many leases: these
  // structs are kept small.
  struct Extras {
    std::optional<Duration> max_hold;
    std::shared_ptr<const HealthCheck> health;
    std::optional<std::uint64_t> owner;
  };
  struct Claim {
    Line* line = nullptr;
    std::shared_ptr<GrantReceiver> receiver;  // until delivered
    std::shared_ptr<LeaseState> lease;        // since delivered
    core::Shape shape;
    std::uint32_t depth = 1;
    Duration grace{};
    std::unique_ptr<const Extras> extras;
    core::TenancyId tenancy = 0;
    core::Time renew_until = base::kNever;
    bool asked = false;  // a health check runs

    std::optional<std::uint64_t> owner() const {
      return extras == nullptr ? std::nullopt : extras->owner;
    }
  };
  enum class Phase : std::uint8_t {
    asked,     // Acquire is on its way
    queued,    // in the store's queue
    arriving,  // granted, but too short a rest to enter before a renewal
    held,
  };
  struct Tenancy {
    core::RequestId request;
    Line* line = nullptr;
    core::Terms terms;
    Phase phase = Phase::asked;
    std::uint64_t token = 0;
    core::Time deadline{};
    core::Time heartbeat{};  // send time of the last answered heartbeat
    bool polling = false;    // a Poll is on its way
    bool rung = false;       // the bell rang meanwhile: look again
    bool renewing = false;   // a Renew is on its way
    bool repeated = false;   // asked for more than once: a ring may be about an earlier grant
    bool adopted = false;    // handed over by another process: cannot be asked for anew
    bool reshaping = false;  // its mode, and with it its token, may change in the store
    bool undoing = false;    // a Downgrade is not answered yet
    bool doubtful = false;   // a change of its mode got no answer: it may come late
    std::uint8_t arrivals = 0;
  };
  using TenancyEntry = std::pair<const core::TenancyId, Tenancy>;

  // coordinator.cc: callers and time
  Line& line_for(const std::string& name);
  void set_hope(Line& line, core::Time until);
  const char* why_waits(const Line& line);
  void forget_line_if_idle(Line& line);
  void carry_out(Line& line, const core::LocalQueue::Steps& steps, core::Time now,
                 std::shared_ptr<AnswerReceiver> receiver = nullptr);
  void stand(Line& line, const core::LocalQueue::Stand& step, core::Time now,
             std::shared_ptr<AnswerReceiver> receiver);
  bool stands_unheard(Line& line, core::RequestId given_back, Duration ttl,
                      std::shared_ptr<AnswerReceiver>& receiver);
  void give_back(Line& line, core::TenancyId id, core::Time now,
                 std::shared_ptr<AnswerReceiver> receiver);
  void admit(Line& line, const core::LocalQueue::Admit& step, core::Time now);
  // Others in line that asked as the same owner: they need not wait for it.
  void nest_those_in_line(core::ClaimId outer, core::Time now);
  void turn_away(core::ClaimId id, Error why);
  void lose_if_stale(core::ClaimId id, core::Time now);
  void lose(core::ClaimId id, LossReason reason, core::Time now);
  void refresh(core::TenancyId id, core::Time now);
  bool renewable(const Claim& claim, core::Time now) const;
  void forget_claim(core::ClaimId id);
  void forget_tenancy(core::TenancyId id);
  Tenancy* find_tenancy(core::TenancyId id);
  core::Acquire acquire_command(const Tenancy& tenancy) const;
  void push_release(const std::string& name, core::RequestId request, Duration ttl, core::Time now,
                    std::shared_ptr<AnswerReceiver> receiver);
  void release_after_all(Errand requeue, core::Time now);
  void push_renew(core::TenancyId id, Tenancy& tenancy);
  void push_poll(core::TenancyId id, Tenancy& tenancy, bool heartbeat);
  void answer(const std::shared_ptr<AnswerReceiver>& receiver, Result<std::uint32_t> result);

  // coordinator_upgrade.cc
  struct Upgrade {
    core::ClaimId claim = 0;
    std::shared_ptr<AnswerReceiver> receiver;
    bool queue = true;
    bool asked = false;       // the store knows of it
    bool on_its_way = false;  // an Upgrade is
    bool rung = false;        // the bell rang meanwhile
  };
  void ask_upgrade_if_alone(core::TenancyId id);
  void ask_upgrade(core::TenancyId id, Upgrade& upgrade);
  void on_upgrade(const Errand& errand, const core::Outcome& outcome, core::Time now);
  void on_downgrade(Errand& errand, const core::Outcome& outcome, core::Time now);
  void finish_upgrade(core::TenancyId id, std::uint64_t token, core::Time now);
  void fail_upgrade(core::TenancyId id, Error why, core::Time now);
  void end_upgrade_of_lost(core::TenancyId id);
  // The claim is the one of those under this grant that wants to be the writer.
  bool upgrades(core::TenancyId id, core::ClaimId claim) const;
  // True if the token of a held tenancy may have changed, and did.
  bool takes_token(core::TenancyId id, Tenancy& tenancy, const core::Outcome& outcome,
                   core::Time now);
  void set_token(core::TenancyId id, Tenancy& tenancy, std::uint64_t token);
  void reshape(core::TenancyId id, Mode mode, core::Time now);
  void push_downgrade(core::TenancyId id, Tenancy& tenancy,
                      std::shared_ptr<AnswerReceiver> receiver, core::Time now);

  // coordinator_outcomes.cc: what the store said
  void on_acquire(Errand& errand, const core::Outcome& outcome, core::Time now);
  void on_acquire_failed(Errand& errand, const Error& error, core::Time now);
  void on_renew(const Errand& errand, const core::Outcome& outcome, core::Time now);
  void on_poll(const Errand& errand, const core::Outcome& outcome, core::Time now);
  void on_release(Errand& errand, const core::Outcome& outcome, core::Time now);
  void answer_release(const Errand& errand, bool gave_back);
  void on_asked(const Errand& errand, const core::Outcome& outcome);
  void on_granted(core::TenancyId id, std::uint64_t token, core::Time sent, Duration lease_for,
                  core::Time now);
  void on_arriving(const Errand& errand, Tenancy& tenancy, const core::Outcome& outcome,
                   core::Time now);
  void on_queued(core::TenancyId id, Tenancy& tenancy, core::Time sent, Duration look_again);
  static bool is_another_grant(const Tenancy& tenancy, const core::Outcome& outcome);
  void on_gone(core::TenancyId id, core::Time now);
  void stand_again(core::TenancyId id, Tenancy& tenancy, core::Time now);
  void deny(core::TenancyId id, Error why, core::Time now);
  void retry(Errand errand, core::Time now);
  void extend(core::TenancyId id, Tenancy& tenancy, core::Time sent, Duration lease_for,
              core::Time now);
  void schedule_renewal(core::TenancyId id, const Tenancy& tenancy, core::Time sent,
                        Duration lease_for);

  Config config_;
  core::TenancyId next_tenancy_ = 1;
  core::ClaimId next_claim_ = 1;
  std::unordered_map<std::string, Line> lines_;
  std::unordered_map<core::ClaimId, Claim> claims_;
  std::unordered_map<core::TenancyId, Tenancy> tenancies_;
  std::unordered_map<core::RequestId, core::TenancyId> requests_;
  std::unordered_set<core::TenancyId> queued_;
  std::map<core::TenancyId, Upgrade> upgrades_;
  std::map<std::pair<std::uint64_t, std::string>, core::ClaimId> owners_;
  // When a line's hope for a hand-over ends.
  std::map<std::pair<core::Time, std::uint64_t>, Line*> hopes_;
  std::uint64_t next_line_ = 1;
  core::LeaseKeeper keeper_;
  Outbox outbox_;
  Effects effects_;
  core::Time next_look_ = base::kNever;
  core::Time changed_at_{};  // when a look last found the store changed
  std::size_t releases_ = 0;
};

}  // namespace holdfast::client
