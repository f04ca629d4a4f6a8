#pragma once

#include <atomic>
#include <condition_variable>
#include <coroutine>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
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
#include "engines/zookeeper/zookeeper_joint.h"
#include "engines/zookeeper/zookeeper_known.h"
#include "engines/zookeeper/zookeeper_layout.h"
#include "engines/zookeeper/zookeeper_session.h"

namespace holdfast::engines {

// The lock recipes over one session, and what this process has by them: a
// node for each request that holds or waits. Thread-safe.
//
// A coroutine of it runs on the thread of its caller up to its first request,
// then on the library's. The mutex guards the tables alone and is never held
// while a request is made or anybody is told anything.
//
// It lives in a shared_ptr, which every coroutine of it holds that nobody waits for.
class ZookeeperRecipe : public std::enable_shared_from_this<ZookeeperRecipe> {
 public:
  ZookeeperRecipe(ZookeeperOptions options, engine::EngineOptions client);
  ~ZookeeperRecipe();
  ZookeeperRecipe(const ZookeeperRecipe&) = delete;
  ZookeeperRecipe& operator=(const ZookeeperRecipe&) = delete;

  ZookeeperSession& session() noexcept { return *session_; }
  const ZookeeperOptions& options() const noexcept { return options_; }
  engine::Bell& bell() noexcept { return bell_; }
  std::uint64_t changes() const noexcept { return changes_.load(); }

  // Commands that are performed while it is open share transactions.
  ZookeeperJoint::Gate together() { return joint_->gate(); }

  // Ends the thread; the places that are left end with the session.
  void stop();

  // Whether there is a connection by then.
  engine::Task<bool> connection(base::Time until);
  // Then it is worth another try once there is a session again.
  bool was_not_sent(const core::Outcome& outcome);

  engine::Task<core::Outcome> perform(core::Command command);
  // How many watches it waits for to fire: at most a few a place.
  std::size_t watches();
  // One round trip for all of them.
  engine::Task<engine::Outcomes> renew(std::vector<core::RequestId> ids);

  engine::Task<Result<std::vector<LockInfo>>> list(std::string prefix);
  engine::Task<Result<LockInfo>> show(std::string name);

  engine::Task<Result<std::optional<core::Value>>> load_value(std::string name);
  // What it points to must live until the end.
  engine::Task<Result<core::ValueOutcome>> write_value(core::ValueWrite write);
  engine::Task<Result<std::vector<core::NamedValue>>> list_values(std::string prefix);
  engine::Detached tidy_values();

 private:
  // One request's stay.
  struct Place {
    std::string dir;  // the lock's node
    core::Shape shape;
    Duration window{};
    std::string path = {};                 // its node in the queue; empty: perhaps there is none
    std::string guid = {};                 // in that node's name, if it was another request's
    std::vector<std::string> leases = {};  // a semaphore's permits, once it holds them
    std::string badge = {};                // strategy=simple: a node named after the request
    std::uint64_t token = 0;
    ZookeeperJoint::Seen seen = {};           // the lock's node, after its own was made
    std::vector<std::string> watched = {};    // paths
    std::optional<std::uint32_t> ahead = {};  // it waits, and nothing has fired since
    base::Time beat{};  // send time of what last proved that our session lives
    base::Time due{};   // its date in the agenda
    bool held = false;
    bool guarded = false;  // its own node was to be watched
    bool ending = false;   // its time is up

    std::string child() const { return path.substr(path.rfind('/') + 1); }
  };
  // The nodes without which it holds nothing.
  static std::vector<std::string> title(const Place& place);
  // A request's next step: what its caller wants of it.
  struct Step {
    core::RequestId id;
    base::Time started;
    bool beat = true;    // keeps it alive if it waits
    bool queue = true;   // else: busy, and out of the queue
    bool first = false;  // it has just come: may yet be refused
  };

  struct Parking {
    ZookeeperRecipe& recipe;
    base::Time until;
    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> waiter) { return recipe.park(waiter, until); }
    void await_resume() const noexcept {}
  };
  bool is_stopping();
  bool park(std::coroutine_handle<> waiter, base::Time until);

  // zookeeper_recipe.cc
  engine::Task<core::Outcome> acquire(std::string dir, core::Acquire acquire);
  enum class Beat { no, yes };  // also keeps a waiter alive
  engine::Task<core::Outcome> look(core::RequestId id, Beat beat);
  engine::Task<core::Outcome> look_from_line(Place place, Step step);
  engine::Task<core::Outcome> release(core::RequestId id);
  engine::Task<core::Outcome> enqueue(std::string dir, core::Acquire acquire, Step step);
  engine::Task<core::Outcome> settle(std::string dir, Step step, ZookeeperReply listed);
  engine::Task<core::Outcome> leave(core::RequestId id, core::Outcome outcome);

  // zookeeper_notes.cc
  NodeKind kind_for(const core::Shape& shape, const LockNote& note,
                    const std::vector<LockNode>& others) const;
  LockNote::Kind fresh_kind(const core::Shape& shape) const;
  bool is_known(const std::string& dir);
  LockNote known_note(const std::string& dir);
  engine::Task<LockNote> note_of(std::string dir, std::int64_t czxid, std::int32_t version);
  void remember(const std::string& dir, const ZookeeperReply& node, const LockNote& note);
  ZookeeperJoint::Seen seen(const std::string& dir);
  void note_release(const Place& place);
  engine::Task<ZookeeperReply> make_lock(std::string dir, LockNote note);
  engine::Task<bool> is_semaphore_used(std::string dir, std::vector<std::string> children);

  // zookeeper_requeue.cc
  engine::Task<core::Outcome> requeue(std::string dir, core::Requeue requeue);
  engine::Task<std::optional<core::Outcome>> stay(std::string dir, core::Requeue requeue,
                                                  Place old);
  engine::Task<NodeKind> kind_after(std::string dir, core::Shape shape, Place old);

  // zookeeper_recall.cc
  engine::Task<bool> recall(core::RequestId id);
  struct Recalled {
    std::string path = {};
    std::vector<std::string> leases = {};
    std::uint64_t token = 0;
  };
  engine::Task<bool> recall_node(std::string path, Recalled& found);

  // zookeeper_permits.cc
  engine::Task<ZookeeperReply> make_semaphore(std::string dir, std::uint32_t limit);
  engine::Task<core::Outcome> enqueue_permits(std::string dir, core::Acquire acquire, Step step);
  engine::Task<core::Outcome> settle_permits(std::string dir, Step step, LockNote note,
                                             std::int32_t version);
  // nullopt: the lock's node is no longer what it was in that version.
  engine::Task<std::optional<core::Outcome>> take_leases(std::string dir, Step step, Place place,
                                                         std::int32_t version);
  bool has_leases(const core::RequestId& id);
  engine::Task<core::Outcome> look_permits(Place place, Step step);
  engine::Task<core::Outcome> resize(std::string dir, std::uint32_t limit);

  // zookeeper_simple.cc
  engine::Task<core::Outcome> take_simple(std::string dir, Step step);
  engine::Task<core::Outcome> enter_simple(std::string dir, Step step, std::int64_t czxid);
  engine::Task<core::Outcome> leave_simple(core::RequestId id, Place place);
  engine::Task<core::Outcome> give_back_simple(core::RequestId id, std::string dir);
  engine::Task<ZookeeperReply> make_parents_simple(std::string dir);
  engine::Task<bool> put_on_badge(core::RequestId id, std::string dir);
  std::string badges() const { return options_.root + "/%waiting"; }
  std::string badge_of(const std::string& dir, const std::string& guid) const;
  engine::Task<std::vector<std::string>> badges_of(std::string dir, std::string holder);

  // zookeeper_admin.cc
  engine::Task<core::Outcome> revoke(std::string dir, core::Revoke revoke);
  struct Holding {
    std::vector<LockNode> holders;  // names with the path below the lock's node
    std::vector<LockNode> queue;
    LockNote note;
    std::int32_t version = 0;
    bool exists = false;
    std::optional<Error> error;
  };
  engine::Task<Holding> holding(std::string dir);
  engine::Task<Result<LockInfo>> describe(std::string name, std::string dir, engine::Ages ages);
  Party foreign(const ZookeeperReply& node) const;

  // zookeeper_values.cc
  std::string value_path(std::string_view name) const;
  engine::Task<Result<core::Micros>> leader_time();
  engine::Task<ZookeeperReply> put_value(std::string path, std::string text, ZookeeperReply before);

  // zookeeper_events.cc
  // To be told when the node changes; no longer.
  void watch_for(const std::string& path, const core::RequestId& id);
  void unwatch(const std::string& path, const core::RequestId& id);
  void drop_watch(const std::string& path, const core::RequestId& id);  // with mutex_ held
  void on_changed(const std::string& path);
  void on_expired();
  void on_connected();
  engine::Detached watch_own(core::RequestId id);
  engine::Detached follow_up(core::RequestId id);

  // zookeeper_places.cc
  std::optional<Place> find(const core::RequestId& id);
  void put(const core::RequestId& id, Place place);  // unless it is there
  void forget(const core::RequestId& id);
  // In one step: whoever ends a place whose time is up finds the one or the other.
  bool succeed(const core::RequestId& before, const core::RequestId& id, Place place);
  void enter(const core::RequestId& id, Place place);  // with mutex_ held
  void leave_table(const core::RequestId& id);         // the same
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
  engine::Detached give_up(core::RequestId id);
  // Nodes of a request that has no place any more: the caretaker sees to it that they go.
  core::Outcome abandon(const core::RequestId& id, Place place);
  void run();
  void wait(std::unique_lock<std::mutex>& lock, base::Time now);
  struct Due {
    std::vector<core::RequestId> over;      // their time is up: they can no longer be renewed
    std::vector<core::RequestId> to_guard;  // held for a while: may be revoked
  };
  Due take_due(base::Time now);
  base::Time ends(const Place& place) const;

  std::string note_text(const core::RequestId& id, std::uint32_t permits,
                        std::uint64_t token) const;
  Duration lease() const noexcept { return session_->negotiated() - options_.tick; }

  const ZookeeperOptions options_;
  const engine::EngineOptions client_;
  engine::Bell bell_;
  std::atomic<std::uint64_t> changes_{1};

  std::mutex mutex_;
  std::unordered_map<core::RequestId, Place> places_;
  KnownLocks known_;
  std::unordered_map<std::string, std::vector<core::RequestId>> watchers_;
  // When to look whether a place's time is up.
  std::set<std::pair<base::Time, core::RequestId>> agenda_;
  std::vector<std::pair<base::Time, std::coroutine_handle<>>> parked_;
  bool stopping_ = false;
  std::condition_variable wake_;
  std::unique_ptr<ZookeeperSession> session_;
  std::unique_ptr<ZookeeperJoint> joint_;
  std::thread caretaker_;
};

inline constexpr unsigned kTokenBits = 12;
// Tokens are czxid x 2^12, and what hand-overs add; nullopt at the end of what fits.
std::optional<std::uint64_t> zookeeper_token(std::int64_t czxid);

// How a request that did not succeed is reported.
core::Outcome zookeeper_failure(const ZookeeperReply& reply);
// A place without a node of ours, as far as could be found out: there may be one.
core::Outcome zookeeper_not_recalled();
core::Outcome zookeeper_out_of_tokens();

}  // namespace holdfast::engines
