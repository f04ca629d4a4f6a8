#pragma once

#include <holdfast/client.h>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/file_descriptor.h"
#include "base/spinner.h"
#include "client/callback_threads.h"
#include "client/coordinator.h"
#include "client/door.h"
#include "client/health_runner.h"
#include "engine/engine.h"

namespace holdfast::client {

class BlockedCaller;
class LeaseHandle;

// The threads around a Coordinator and its engine. A caller that finds a lane
// of the store idle drives its own I/O (a hand-off to another thread costs more
// than a local round trip); callers that come meanwhile ride in the next batch.
// One keeper thread looks after time and doorbell. Thread-safe.
class Service : public std::enable_shared_from_this<Service> {
 public:
  static Result<std::shared_ptr<Service>> open(std::string_view url, const ClientOptions& options);
  // On an engine that was opened as that session.
  static Result<std::shared_ptr<Service>> open(std::unique_ptr<engine::Engine> engine,
                                               const core::SessionId& session,
                                               const ClientOptions& options);
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  Result<Lease> acquire(std::string_view name, const AcquireOptions& options);
  void acquire_then(std::string_view name, const AcquireOptions& options,
                    std::function<void(Result<Lease>)> done);
  Result<void> release(core::ClaimId claim);
  // service_several.cc: many at once, in as few batches as the lanes allow.
  // The wishes must be tries. At `deadline` and at `stop` the open ones end.
  std::vector<Result<Lease>> try_each(std::span<const Wish> wishes, base::Time deadline,
                                      const std::stop_token& stop);
  std::vector<Result<void>> release_each(std::span<const core::ClaimId> claims);
  void release_each_in_background(std::span<const core::ClaimId> claims) noexcept;
  void release_in_background(core::ClaimId claim) noexcept;
  Result<void> flush(Duration at_most);
  // Ends all waits begun by acquire_then().
  void cancel_async();
  Result<std::uint32_t> ask(std::string_view name, core::Operation operation);

  // service_upgrade.cc
  Result<void> upgrade(core::ClaimId claim, std::optional<Duration> wait,
                       const std::stop_token& stop);
  Result<void> downgrade(core::ClaimId claim);
  Result<Coordinator::GivenAway> give_away(core::ClaimId claim);
  Result<Lease> adopt(std::string_view code, const AcquireOptions& options);

  // What store_id() found.
  std::optional<std::string> known_store_id();
  void remember_store_id(std::string id);

  // The engine itself, for what needs no coordination. Not after fork().
  Result<engine::Engine*> engine();
  const Capabilities& capabilities() const noexcept { return engine_->capabilities(); }

  // False in a child of fork(): then nothing here may be touched.
  bool is_ours() const noexcept;

 private:
  class Pumping;
  class AsyncCaller;
  class Habit;

  // Who sends what there is to send?
  enum class Lead : std::uint8_t {
    must,    // the caller, which waits for the outcomes
    may,     // the caller, unless it is inside a callback
    keeper,  // the keeper alone
    ride,    // whoever comes next, or the keeper in a while
  };
  // A caller that can be cancelled, or leads for others, lends its thread to a
  // slow store only so long.
  static constexpr Duration kStoppablePatience = std::chrono::milliseconds{5};
  // Where waits for a lock are usually shorter than this, a caller lets others run for so many
  // turns before it sleeps: to be woken costs it, and whoever wakes it, more.
  static constexpr Duration kShortWait = std::chrono::microseconds{800};
  static constexpr int kTurns = 20;
  struct Lane {
    std::thread::id submitting;  // who is inside engine_->submit()
  };
  struct Batch {
    std::size_t lane;
    std::span<const core::Command> commands;
  };

  Service(std::unique_ptr<engine::Engine> engine, Coordinator::Config config, Duration spin);
  ~Service();
  static void destroy(Service* service);
  void start();

  Result<Lease> acquire(const Wish& wish, base::Time deadline, const std::stop_token& stop);
  // Empty: not within that time, or the caller was interrupted.
  std::optional<Result<std::shared_ptr<LeaseState>>> await(BlockedCaller& caller,
                                                           core::ClaimId claim, bool asked_itself,
                                                           base::Time deadline);
  void cancel(core::ClaimId claim, ErrorCode why);
  void cancel_soon(core::ClaimId claim);
  Lease make_lease(std::shared_ptr<LeaseState> state);
  bool on_keeper() const noexcept { return keeper_id_.load() == std::this_thread::get_id(); }
  bool on_engines_thread() const noexcept;

  // Carries out the effects and sends what there is to send, as long as this
  // thread finds lanes idle. Takes the lock locked, leaves it unlocked. True if
  // this thread sent something.
  // What is to be sent on `last` goes after the rest: the caller's own.
  bool pump(std::unique_lock<std::mutex>& lock, engine::Patience patience, Lead lead,
            std::size_t last = 0);
  std::optional<Batch> start_batch(std::size_t last);
  void submit(const Batch& batch, engine::Patience patience);
  void perform(Effects effects) noexcept;
  // With mutex_ held: is the next batch worth waiting for those who come back at once?
  bool gathers();
  void expect_back(const Effects& effects);
  void came_back(Habit& habit);

  void keep();  // the keeper thread
  bool look_after_time();
  void answer_doorbell(engine::Patience patience, Lead lead);
  // A caller that stands in the store's queue answers the bell itself until its
  // wait is over; without effect if it need not, or somebody else does.
  void wait_at_door(BlockedCaller& caller, core::ClaimId claim, base::Time deadline);
  void tidy_if_due(base::Time now);
  base::Time next_due() const;  // for the keeper, but for what only it touches
  void set_alarms();
  void set_alarm(base::Time due);
  void bring_alarm_forward();
  void nudge() noexcept;

  const std::uint64_t generation_;
  std::unique_ptr<engine::Engine> engine_;
  Door door_;

  std::mutex mutex_;  // guards down to the blank line
  Coordinator coordinator_;
  std::vector<Lane> lanes_;
  base::Time wakes_at_ = base::Time::min();               // when the keeper wakes by itself
  std::set<std::pair<base::Time, core::ClaimId>> waits_;  // ends of asynchronous waits
  std::vector<std::pair<core::ClaimId, ErrorCode>> cancellations_;
  bool active_ = false;  // something happened since the last tidy()
  bool stopping_ = false;
  std::string store_id_;         // once it is known
  std::size_t coming_back_ = 0;  // let in by the last batches, and likely to ask again at once
  std::uint64_t gathering_ = 1;  // which of them are waited for
  base::Time gathers_until_{};
  std::condition_variable drained_;

  const Duration ride_;                  // see Engine::ride
  const Duration gather_;                // see Engine::gather
  const Duration spin_;                  // see ClientOptions::spin; zero on one processor
  base::Spinner grants_;                 // callers that wait for a lock
  base::Time ride_ends_ = base::kNever;  // for what was left to whoever comes next
  base::Time next_tidy_ = base::kNever;  // the keeper's
  base::FileDescriptor nudge_;           // eventfd
  base::FileDescriptor timer_;           // timerfd on CLOCK_BOOTTIME
  CallbackThreads callbacks_;
  std::unique_ptr<HealthRunner> health_;
  std::thread keeper_;
  std::atomic<std::thread::id> keeper_id_{};
};

// What a Lease is made of: the right to release one grant, once.
class LeaseHandle {
 public:
  LeaseHandle(std::shared_ptr<Service> service, std::shared_ptr<LeaseState> state)
      : service_{std::move(service)}, state_{std::move(state)} {}

  const LeaseState& state() const noexcept { return *state_; }
  bool is_ours() const noexcept { return service_->is_ours(); }
  bool released() const noexcept { return released_; }
  Result<engine::Engine*> engine() { return service_->engine(); }
  Result<void> release();
  void release_in_background() noexcept;

  // All of them at once, one result each.
  static std::vector<Result<void>> release_each(std::span<LeaseHandle* const> handles);
  static void release_each_in_background(std::span<LeaseHandle* const> handles) noexcept;

  Result<void> upgrade(std::optional<Duration> wait, const std::stop_token& stop);
  Result<void> downgrade();
  Result<std::string> give_away();

  bool shares_service_with(const LeaseHandle& other) const noexcept {
    return service_ == other.service_;
  }

 private:
  std::shared_ptr<Service> service_;
  std::shared_ptr<LeaseState> state_;
  std::unique_ptr<const Error> failure_;  // of the first release()
  std::atomic<bool> released_ = false;    // is_alive() may ask from another thread
};

}  // namespace holdfast::client
