#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/coordinator.h"
#include "simulation/ledger.h"
#include "simulation/stage.h"

namespace holdfast::sim {

// One life of a process: from its start to its crash.
struct Life {
  int process = 0;
  int incarnation = 0;
  core::SessionId session;
  LocalClock clock;
  bool alive = true;
  bool paused = false;
  Time died = base::kNever;
  // Until here its messages, its doorbell polls or its time-keeping may have
  // been hit by a fault.
  Time disturbed_until = kStart;

  void disturb(Time until) { disturbed_until = std::max(disturbed_until, until); }
  std::string name() const {
    return "p" + std::to_string(process) + "." + std::to_string(incarnation);
  }
};

// One call of acquire.
struct Call {
  std::shared_ptr<Life> life;
  std::uint64_t number = 0;
  client::Wish wish;
  Time begun{};
  Time ended = base::kNever;
  bool finished = false;
  bool may_be_refused = false;
  std::optional<Time> sick_since;  // its health check said no
  std::optional<ErrorCode> cancelled;

  Time code_good_until{};  // of one that adopts: nobody has used the code, as far as is known

  bool in_line() const noexcept { return wish.terms.hand_over > 0 && !wish.adopts; }
};

// One lease in a user's hands; nested acquires share it.
struct Hold {
  std::shared_ptr<client::LeaseState> state;
  std::shared_ptr<Call> call;
  Time delivered{};
  Time alive_until{};  // in true time, when its own process stops believing in it
  Time ended = base::kNever;
  int depth = 1;
  bool lost = false;
  Time lost_at{};
  Time let_go{};                               // by its user
  bool given = false;                          // to somebody else
  std::vector<std::pair<Time, Mode>> changes;  // what its user takes it for since when
  const std::string& name() const noexcept { return state->name; }
  core::Shape shape() const {
    core::Shape shape = call->wish.terms.shape;
    shape.mode = changes.empty() ? shape.mode : changes.back().second;
    return shape;
  }
};

// A user that waits for its lease to change.
struct Change {
  std::shared_ptr<Hold> hold;
  Mode to = Mode::exclusive;
  bool queue = true;
  std::uint64_t token = 0;  // before
  Time begun{};
  Time ended = base::kNever;
  std::optional<ErrorCode> cancelled = std::nullopt;
};

// Sees what the users of all processes see, and compares it with the ledger.
// FAULTS of the client show here; README.md lists the properties.
class Witness {
 public:
  Witness(Stage& stage, Ledger& ledger) : stage_{stage}, ledger_{ledger} {
    ledger_.on_eviction = [this](const std::string& name, const core::Waiter& waiter) {
      evicted(name, waiter);
    };
  }

  // --- what users and processes report
  std::shared_ptr<Call> calls(const std::shared_ptr<Life>& life, const client::Wish& wish);
  void delivered(Call& call, const Result<std::shared_ptr<client::LeaseState>>& result);
  void releases(const client::LeaseState& state);
  void lost(const client::LeaseState& state);
  void answered(const Hold& hold, const Result<std::uint32_t>& result);
  void crashed(const Life& life);
  // After each event of a process. `ticked`: time was looked after just now.
  void observe(const Life& life, Time next_due, bool ticked);
  // It sends a renewal.
  void renews(const Life& life, const core::RequestId& request);
  std::optional<core::RequestId> request_of(const client::LeaseState& state);
  // A write to the resource that the lock protects.
  void write(const Hold& hold);

  std::shared_ptr<Hold> find(const client::LeaseState& state);

  // --- witness_changes.cc: leases that change
  std::shared_ptr<Change> changes(const std::shared_ptr<Hold>& hold, Mode to, bool queue);
  void changed(Change& change, const Result<std::uint32_t>& result);
  void gives(Hold& hold);

  // --- what is checked now and then, and at the end
  Duration patience_for_free_lock() const;
  void watch_liveness();
  void finish();

 private:
  struct Resource {
    std::uint64_t highest = 0;
    std::uint64_t order = 0;  // of the grant that wrote last
    std::map<std::uint64_t, const client::LeaseState*> writers;
  };

  void granted(Call& call, const std::shared_ptr<client::LeaseState>& state);
  void check_patience(const Call& call);
  void refused(const Call& call, const Error& error);
  void check_tenancy(const Hold& hold, Grant& grant);
  void check_local_order(const Call& call);
  void check_belief(Hold& hold, Time now);
  void check_bounds(const Hold& hold, const Grant& grant);
  void check_warning(const Hold& hold, Time next_due, bool ticked);
  void check_needless_loss(const Hold& hold);
  void check_revoked(const std::string& name);
  void evicted(const std::string& name, const core::Waiter& waiter);
  Duration patience_for_release() const;
  bool is_wanted(const Grant& grant, const Life& life, const std::string& name, bool used);
  void check_unused_grants(const std::string& name, Duration bound);
  void sweep(const std::string& name);
  void check_refused_change(const Change& change, const Error& error);
  bool reads_alone(const Change& change);
  void check_waiting_changes();

  Stage& stage_;
  Ledger& ledger_;
  std::uint64_t next_call_ = 0;
  std::vector<std::shared_ptr<Call>> all_calls_;
  std::vector<std::shared_ptr<Call>> waiting_;
  std::vector<std::shared_ptr<Hold>> open_;
  std::vector<std::shared_ptr<Change>> all_changes_;
  std::vector<std::shared_ptr<Hold>> all_;
  std::map<std::string, Resource> resources_;
  std::map<core::SessionId, std::shared_ptr<Life>> lives_;
  std::map<std::pair<core::SessionId, std::string>, Time> last_use_;
};

}  // namespace holdfast::sim
