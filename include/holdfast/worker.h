#pragma once

#include <holdfast/client.h>
#include <holdfast/error.h>
#include <holdfast/inspect.h>
#include <holdfast/options.h>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

namespace holdfast {

struct WorkerOptions {
  // Of the lock that the workers of a cluster stand for. `wait`, `owner` and
  // `stop` do not apply. Mode::permits: that many lead at a time.
  AcquireOptions lock = {};

  // Before standing again: after a term, and after an error of the store.
  Duration rest = std::chrono::seconds{1};

  // While somebody else leads: how often to look who does, for the statistics.
  // Empty: every ttl.
  std::optional<Duration> look_every = std::nullopt;
};

struct WorkerStatistics {
  std::uint64_t terms = 0;     // how often this worker led
  std::uint64_t losses = 0;    // terms that ended because the lock was lost
  std::uint64_t failures = 0;  // terms that ended by an exception of the work
  std::uint64_t errors = 0;    // times that the store could not be asked
  Duration led{};              // all terms together
  // Time in which nobody led, by the store's account: from the end of a term of
  // ours, or a look that found nobody, to the beginning of the next leader.
  Duration without_leader{};
  // Time of which this worker cannot tell, because its looks are apart: from the
  // last that found a leader to the beginning of another leader, or to a look
  // that found nobody. Some of it, or none, was without a leader.
  Duration unknown{};
  std::string last_failure;  // what the work threw last; empty if it never did
};

// Leader election: runs `work` in one process of the cluster at a time. Stands
// for election from its construction on, on a thread of its own. The work gets
// a stop_token, and the term's fencing token (empty where the engine has none).
//
// The stop_token fires when the lock is lost or about to be (`grace` before the
// lease ends), on resign() and on stop(); the work must return soon then: the
// lock is released only afterwards, and a lost one is somebody else's. When the
// work returns by itself the term ends too. The worker then rests and stands
// again. Thread-safe. In a child of fork() it does nothing.
class Worker {
 public:
  using Work = std::function<void(std::stop_token, std::optional<std::uint64_t> token)>;

  // Throws LockError: invalid_argument, unsupported.
  Worker(Client& client, std::string name, Work work, WorkerOptions options = {});
  ~Worker();  // stop(), join()
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // This process leads, and its lease has not run out.
  bool leads() const noexcept;

  // Ends the present term, if there is one: others lead before we stand again.
  void resign() noexcept;

  // No further term; ends the present one. The work itself may call it.
  void stop() noexcept;
  // Waits until the last term has ended after stop(). Not from the work.
  void join();

  // Who leads, by the store's account; empty if nobody does. unavailable.
  Result<std::optional<HolderInfo>> observe();

  WorkerStatistics statistics() const;
  // Why it could not stand when it last tried; empty if it could.
  std::optional<Error> last_error() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace holdfast
