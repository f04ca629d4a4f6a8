#pragma once

#include <holdfast/error.h>
#include <holdfast/inspect.h>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "core/commands.h"
#include "core/value_record.h"
#include "engine/url.h"

namespace holdfast::engine {

// A ring of the doorbell: look at this request. With a token the store has
// pushed the grant itself and no look is needed.
struct Ring {
  core::RequestId id;
  std::uint64_t token = 0;
};

using Outcomes = std::vector<core::Outcome>;
using Done = std::function<void(Outcomes)>;

// How long a caller lends its thread to the engine's I/O. Past that the engine
// finishes by means of its own; one that works inside this process need not
// look at it.
struct Patience {
  base::Time until;
  base::Duration spin{};               // at most so long it looks for an answer before it sleeps
  static const Patience for_outcomes;  // as long as it takes
  static const Patience none;          // send, and return without waiting
};
inline constexpr Patience Patience::for_outcomes{base::kNever};
inline constexpr Patience Patience::none{base::Time::min()};

// A connection of the user's own to the database that keeps the locks.
struct NativeConnection {
  std::string_view type;  // the vendor's: "PGconn", "MYSQL"
  void* handle = nullptr;
};
enum class AfterGuard : std::uint8_t { go_on, commit };

// A conversation between this process and one store.
//
// Threads: the client calls submit() for one lane from one thread at a time
// and not again before `done` was called; lanes are independent. Everything
// else may be called from any thread at any time.
// Errors: the engine reconnects and retries by itself what is safe to retry
// (deadlocks, lost connections before the send). It reports `unavailable` only
// if nothing was applied, `outcome_unknown` if that cannot be known.
// Time: expiry is decided by the store's clock alone.
class Engine {
 public:
  virtual ~Engine() = default;
  Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  virtual const Capabilities& capabilities() const noexcept = 0;

  // Ordered conversations: commands for one name always use the same lane.
  virtual std::size_t lanes() const noexcept { return 1; }

  // Applies the commands in order (those of one name; names may interleave)
  // and calls `done` exactly once with one outcome each: before it returns, or
  // later on a thread of the engine, never under an engine's lock. The
  // commands stay valid until then.
  virtual void submit(std::size_t lane, std::span<const core::Command> batch, Patience patience,
                      Done done) = 0;

  // How long a release may wait for company if its caller is likely to ask for
  // something else at once: nothing where a trip to the store costs little.
  virtual base::Duration ride() const noexcept { return {}; }

  // How long a batch may wait for those who were let in by the last one, if they
  // are likely to ask for the next lock at once.
  virtual base::Duration gather() const noexcept { return ride(); }

  // Becomes readable when the doorbell rings; -1 if it cannot. One descriptor
  // for the engine's life.
  virtual int doorbell_fd() const noexcept { return -1; }
  // Takes the rings; called when doorbell_fd() is readable. Never blocks. May
  // return fewer or more rings than there were: a ring only shortens a poll.
  virtual std::vector<Ring> answer_doorbell() { return {}; }

  // Cheap: false if the store certainly did not change since the last call, so
  // that the backstop poll has nothing to look for.
  virtual bool may_have_changed() { return true; }

  // Housekeeping, now and then by an idle client: forget idle names and dead
  // sessions without letting any token fall.
  virtual void tidy() {}

  // For those who keep their data in the same database: a condition for their
  // own statements, true while the grant that `token` belongs to is the current
  // one. It also keeps others from the lock until the transaction ends.
  virtual Result<std::string> fence_sql(std::string_view name, std::uint64_t token);
  // Checks that condition inside the transaction that is open on `connection`,
  // then commits if asked to. lease_lost: the transaction was rolled back.
  virtual Result<void> guard(std::string_view name, std::uint64_t token,
                             const NativeConnection& connection, AfterGuard after);

  // Where the store may know a grant by the id of an earlier request of this process: from now on
  // other processes find it under this one. Blocks. lease_lost: there is no such grant.
  virtual Result<void> disclose(core::RequestId) { return {}; }

  virtual Result<std::vector<LockInfo>> list(std::string_view prefix) = 0;
  virtual Result<LockInfo> show(std::string_view name) = 0;  // empty if nobody uses it

  // Values with versions, where capabilities().values says so; `unsupported`
  // elsewhere. They block. An erased value may or may not be found.
  virtual Result<std::optional<core::Value>> load_value(std::string_view name);
  virtual Result<core::ValueOutcome> write_value(const core::ValueWrite& write);
  virtual Result<std::vector<core::NamedValue>> list_values(std::string_view prefix);

  virtual Result<void> init() = 0;
  virtual Result<std::string> init_script() = 0;
  virtual std::vector<Finding> doctor() = 0;
};

struct EngineOptions {
  core::SessionId session;  // the client's identity in the store
  Party party;              // how people see it

  // Tests only: the store's clock, in place of the real one.
  std::function<base::Time()> now = nullptr;
};

using EngineFactory = Result<std::unique_ptr<Engine>> (*)(const Url& url,
                                                          const EngineOptions& options);

}  // namespace holdfast::engine
