#pragma once

#include <atomic>
#include <condition_variable>
#include <coroutine>
#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/commands.h"
#include "engine/ages.h"
#include "engine/bell.h"
#include "engine/engine.h"
#include "engine/task.h"
#include "engine/value_text.h"
#include "engines/etcd/etcd_joint.h"
#include "engines/etcd/etcd_line.h"
#include "engines/etcd/etcd_session.h"

namespace holdfast::engines {

// All keys below it, in the order of their creation.
inline EtcdOperation etcd_all_of(const std::string& dir) {
  return {.what = EtcdOperation::What::range, .key = dir, .end = etcd_prefix_end(dir)};
}
Error etcd_keeps_changing();
Error etcd_changed_too_often();
inline bool etcd_is_full(const Error& error) {
  return error.native == 8;  // gRPC's "resource exhausted": it may have been carried out
}
inline bool etcd_lease_is_gone(const Error& error) {
  return error.native == 5;  // gRPC's "not found"
}

// The lock recipe over one connection, and what this process has by it: a key
// for each request that holds or waits, bound to one of a few leases.
// Thread-safe.
//
// A coroutine of it runs on the thread of its caller up to its first request,
// then on the session's. The mutex guards the tables alone and is never held
// while a request is made or anybody is told anything.
class EtcdRecipe {
 public:
  EtcdRecipe(EtcdOptions options, engine::EngineOptions client);
  ~EtcdRecipe();
  EtcdRecipe(const EtcdRecipe&) = delete;
  EtcdRecipe& operator=(const EtcdRecipe&) = delete;

  EtcdSession& session() noexcept { return *session_; }
  const EtcdOptions& options() const noexcept { return options_; }
  engine::Bell& bell() noexcept { return bell_; }
  std::uint64_t changes() const noexcept { return changes_.load(); }
  void stop();  // ends the threads; leases are revoked if the server still answers

  // The session itself lets requests wait for a connection.
  struct Always {
    bool await_ready() const noexcept { return true; }
    void await_suspend(std::coroutine_handle<>) const noexcept {}
    bool await_resume() const noexcept { return true; }
  };
  Always connection(base::Time) const noexcept { return {}; }
  bool was_not_sent(const core::Outcome&) const noexcept {
    return false;
  }  // the session sees to it

  // What is asked for on this thread while it lives goes to the server together.
  EtcdJoint::Boarding together() { return EtcdJoint::Boarding{*joint_}; }

  engine::Task<core::Outcome> perform(core::Command command);
  // Few round trips for all of them.
  engine::Task<engine::Outcomes> renew(std::vector<core::RequestId> ids);

  engine::Task<Result<std::vector<LockInfo>>> list(std::string prefix);
  engine::Task<Result<LockInfo>> show(std::string name);
  engine::Task<std::vector<Finding>> examine();
  // From now on other processes find the grant under this request's id.
  engine::Task<Result<void>> disclose(core::RequestId id);

  engine::Task<Result<std::optional<core::Value>>> load_value(std::string name);
  // What it points to must live until the end.
  engine::Task<Result<core::ValueOutcome>> write_value(core::ValueWrite write);
  engine::Task<Result<std::vector<core::NamedValue>>> list_values(std::string prefix);
  void tidy_values() const noexcept {}  // etcd's leases do

 private:
  struct Place {
    std::string key;
    Duration ttl{};
    Duration window{};
    std::int64_t lease = 0;
    std::int64_t create_revision = 0;  // 0: perhaps it is not there
    std::int64_t mod_revision = 0;     // as long as its key has it, nothing is new
    std::uint64_t token = 0;
    base::Time beat{};         // send time of what last kept it alive
    base::Time due{};          // its date in the agenda
    std::int64_t watch = 0;    // on whom it waits for, or on its own key
    std::string blocker = {};  // whom it waits for
    // Its watch sees all that ends in this line after this revision; 0: it does not.
    std::int64_t ends_since = 0;
    std::int64_t next_at = 0;  // at this revision nobody but the blocker was in front of it
    // Whose the key was, and is by what stands in it: it stayed when they passed the lock on.
    std::optional<core::RequestId> heir_of = std::nullopt;
    bool held = false;
    bool guarded = false;         // its own key was to be watched
    bool ending = false;          // its time is up
    bool upgrading = false;       // waits for the other readers
    std::int64_t adopted_at = 0;  // the last change of the key while it was the giver's
    // A note of ours for the key as of this revision may still come, as long as it has that.
    std::int64_t in_doubt_at = 0;
    bool put_in_doubt = false;  // one of the puts of its key may come after all else
    bool is_in_doubt() const noexcept { return put_in_doubt || in_doubt_at == mod_revision; }
  };
  struct Lease {
    std::int64_t seconds = 0;
    base::Time alive_until{};  // counted from before the request that gave it
    std::size_t users = 0;     // places
  };
  enum class Beat { no, yes };
  struct Step {
    core::RequestId id;
    base::Time started;
    bool beat = true;    // keeps it alive if it waits
    bool queue = true;   // else: busy, and out of the queue
    bool first = false;  // it has just come: may yet be refused
  };
  // Several want a lease of the same length: one asks, the others wait for it.
  struct Turn {
    EtcdRecipe& recipe;
    std::int64_t seconds;
    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> waiter);
    void await_resume() const noexcept {}
  };

  // Those who come while a lease is being kept alive share the answer.
  struct Company {
    EtcdRecipe& recipe;
    std::int64_t lease;
    std::optional<Error> problem = std::nullopt;
    std::coroutine_handle<> waiter = nullptr;
    bool leads = false;
    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> handle);
    bool await_resume() const noexcept { return leads; }
  };
  struct Renewal {  // of what is held
    std::size_t index;
    core::RequestId id;
    std::string key;
    std::int64_t mod_revision;
    std::int64_t lease;
  };

  // etcd_recipe.cc
  engine::Task<core::Outcome> acquire(std::string dir, core::Acquire wanted);
  engine::Task<core::Outcome> look_whether_put(std::string dir, Step step, Error why);
  engine::Task<core::Outcome> look(core::RequestId id, Beat beat);
  engine::Task<core::Outcome> settle(std::string dir, Step step, EtcdRange found);
  engine::Task<core::Outcome> leave(core::RequestId id, core::Outcome outcome);
  engine::Task<std::optional<Error>> transact(EtcdTransaction transaction,
                                              EtcdTransactionAnswer& answer,
                                              EtcdTurn turn = EtcdTurn::in_line);
  // The same, together with what others ask at this time.
  engine::Task<std::optional<Error>> transact_jointly(std::string dir, EtcdTransaction transaction,
                                                      EtcdTransactionAnswer& answer);
  engine::Task<std::optional<Error>> range(std::string dir, EtcdRange& found);
  std::string note_text(const core::Shape& shape) const;
  void sweep(const std::vector<Entrant>& line);

  // etcd_admin.cc
  engine::Task<core::Outcome> revoke(std::string dir, core::Revoke wanted);
  engine::Task<core::Outcome> resize(std::string dir, std::uint32_t limit);
  // With notes for those in this line, by the names that stand in their keys; it must live until
  // the end.
  engine::Task<std::optional<Error>> transact_on(const std::vector<Entrant>& line,
                                                 EtcdTransaction transaction,
                                                 EtcdTransactionAnswer& answer);
  // How long they have been there is said as of that moment, by the clocks of all.
  engine::Task<LockInfo> describe(std::string name, std::vector<Entrant> line, engine::Ages ages);

  // etcd_changes.cc
  struct Look {
    std::vector<Entrant> line;
    const Entrant* mine = nullptr;
    std::int64_t revision = 0;
  };
  enum class Others { may_change, unchanged };
  struct Change {
    core::RequestId id;
    Entrant to;
    std::int64_t seen = 0;  // the revision that `others` is about
    Others others = Others::may_change;
  };
  engine::Task<core::Outcome> upgrade(std::string dir, core::Upgrade wanted);
  engine::Task<core::Outcome> downgrade(std::string dir, core::RequestId id);
  engine::Task<std::optional<core::Outcome>> look_to_change(std::string dir, core::RequestId id,
                                                            base::Time started, Look& look);
  engine::Task<std::optional<Error>> rewrite(std::string dir, Change wanted, bool& done);
  engine::Task<std::optional<Error>> await_change_of(core::RequestId id, std::string key);
  bool is_watching(const core::RequestId& id, const std::string& blocker);
  void end_upgrade(const core::RequestId& id);

  // etcd_transfer.cc: `from` is the giver's, with the new token
  engine::Task<core::Outcome> transfer(std::string dir, core::Transfer wanted);
  engine::Task<std::optional<Error>> take_over(core::Transfer wanted, Entrant from,
                                               base::Time started, bool& done);

  // etcd_values.cc
  engine::Task<Result<EtcdRange>> read_keys(std::string key, std::string end);
  engine::Task<Result<Duration>> hold_off_of(std::string name);
  engine::Task<Result<std::int64_t>> grant_for(Duration time);
  engine::Task<Result<EtcdTransaction>> draft(core::ValueWrite write, engine::ValueText text,
                                              EtcdRange found);

  // etcd_releases.cc
  engine::Task<core::Outcome> release(core::RequestId id);
  // A put of this request's key that is still to come will not be carried out.
  EtcdOperation keep_out(const core::RequestId& id, std::int64_t lease) const;
  engine::Task<core::Outcome> release_unseen(core::RequestId id, Place place);
  engine::Task<core::Outcome> requeue(std::string dir, core::Requeue wanted);
  engine::Task<core::Outcome> requeue_by_steps(std::string dir, core::Requeue wanted);

  // etcd_stay.cc
  engine::Task<std::optional<core::Outcome>> stay(std::string dir, core::Requeue wanted, Place old);
  bool succeed(const core::RequestId& before, const core::RequestId& id, Place place);
  engine::Task<Result<void>> try_to_disclose(core::RequestId id);
  void name_heir(Entrant& entrant);  // with mutex_ held
  // As they stand in the store, but what this process has is under the ids that it goes by.
  Entrant as_known(EtcdKey key);
  std::vector<Entrant> line_of(std::vector<EtcdKey> keys);

  // etcd_renewals.cc
  engine::Task<std::optional<Error>> unchanged(std::vector<Renewal> some, bool& all_of_them);
  engine::Task<std::optional<Error>> read_again(std::vector<Renewal> some,
                                                EtcdTransactionAnswer& answer);
  core::Outcome renewed(const core::RequestId& id, base::Time started,
                        const std::vector<EtcdKey>& keys);
  core::Outcome prolonged(const core::RequestId& id, base::Time started);

  // etcd_leases.cc: a lease with at least that much of it left
  engine::Task<std::optional<Error>> find_lease(Duration ttl, std::int64_t& lease);
  engine::Task<std::optional<Error>> keep_alive(std::int64_t lease);
  engine::Task<std::optional<Error>> keep_alive_for_all(std::int64_t lease);
  engine::Task<std::optional<Error>> freshen(std::int64_t lease, base::Time until);
  void lease_gone(std::int64_t lease);
  base::Time alive_until(std::int64_t lease);
  void end_turn(std::int64_t seconds);
  engine::Detached keep_in_background(std::int64_t lease);
  std::vector<std::int64_t> leases_to_keep(base::Time now, base::Time& next);

  // etcd_places.cc
  std::optional<Place> find(const core::RequestId& id);
  void put(const core::RequestId& id, Place place);  // unless it is there
  void forget(const core::RequestId& id);
  template <typename Change>
  bool change(const core::RequestId& id, const Change& change) {
    const std::lock_guard lock{mutex_};
    const auto found = places_.find(id);
    if (found != places_.end()) {
      change(found->second);
    }
    return found != places_.end();
  }
  core::Outcome granted(const core::RequestId& id, base::Time started);
  core::Outcome queued(const core::RequestId& id, base::Time beat, std::uint32_t ahead);
  std::int64_t new_watch(const core::RequestId& id);
  void end_watch(std::int64_t watch);
  // The place went, or went on, while it was being set up: nobody else will end it.
  void end_if_unwanted(std::int64_t watch, const core::RequestId& id);
  void on_changed(std::int64_t watch, const std::vector<EtcdKey>& ended);
  void on_connected();
  static bool is_next(const Place& place, const std::vector<EtcdKey>& ended);
  engine::Detached follow_up(core::RequestId id, bool is_next);
  engine::Detached watch_own(core::RequestId id);
  engine::Detached give_up(core::RequestId id);
  engine::Detached remove_ghost(EtcdKey key);
  engine::Detached give_back_leases(std::shared_ptr<std::promise<void>> told);
  void run();
  struct Due {
    std::vector<core::RequestId> over;      // their time is up: they can no longer be renewed
    std::vector<core::RequestId> to_guard;  // held for a while: may be revoked
  };
  Due take_due(base::Time now);
  static base::Time ends(const Place& place) {
    return place.beat + (place.held ? place.ttl : place.window);
  }

  const EtcdOptions options_;
  const engine::EngineOptions client_;
  engine::Bell bell_;
  std::atomic<std::uint64_t> changes_{1};

  std::mutex mutex_;
  std::unordered_map<core::RequestId, Place> places_;
  std::unordered_map<core::RequestId, core::RequestId> heirs_;  // by whom their keys name
  std::unordered_map<std::int64_t, Lease> leases_;
  std::map<std::int64_t, std::int64_t> current_;  // seconds -> the lease to use
  std::map<std::int64_t, std::vector<std::coroutine_handle<>>> turns_;
  std::map<std::int64_t, std::vector<Company*>> keeping_;
  std::unordered_map<std::int64_t, core::RequestId> watches_;
  std::int64_t next_watch_ = 1;
  std::set<std::pair<base::Time, core::RequestId>> agenda_;
  bool stopping_ = false;
  std::condition_variable wake_;
  std::unique_ptr<EtcdSession> session_;
  std::unique_ptr<EtcdJoint> joint_;
  std::thread caretaker_;
};

}  // namespace holdfast::engines
