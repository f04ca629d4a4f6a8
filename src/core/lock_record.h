#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "core/commands.h"

namespace holdfast::core {

struct Holder {
  RequestId id;
  SessionId session;
  Shape shape;
  std::uint64_t token = 0;
  Duration ttl{};
  Time since{};
  Time expires{};
  bool revoked = false;
  bool upgrading = false;  // a reader that waits for the other readers to leave
  friend bool operator==(const Holder&, const Holder&) = default;
};

struct Waiter {
  RequestId id;
  SessionId session;
  Shape shape;
  Duration ttl{};
  Duration window{};
  Time since{};
  Time expires{};  // last heartbeat + window
  friend bool operator==(const Waiter&, const Waiter&) = default;
};

// Ring this session's doorbell about this request: it was granted, revoked, or
// put out of the queue by a Resize below what it asked for.
struct Wake {
  SessionId session;
  RequestId id;
  std::uint64_t token = 0;  // 0: not granted
  friend bool operator==(const Wake&, const Wake&) = default;
};

// Why the command makes no sense, whatever the state of the lock: the outcome
// that apply() gives to it as a new request. For engines that do not run the
// lock record.
std::optional<Outcome> objection(const Operation& operation);

// One lock: its holders, its queue and its token, as a pure machine. This is
// the executable specification of the contract; engines either run it or are
// compared with it command by command.
//
// Time passes only through `now`, which must not run backwards. Every apply()
// first settles what the time has done: expired holders and waiters go, and
// whoever is next is granted.
class LockRecord {
 public:
  struct Context {
    Time now;
    // No token below this is ever handed out: the store's time in microseconds
    // (or more), so that forgetting an idle record cannot lower its token.
    std::uint64_t token_floor = 0;
  };

  // Appends to `wakes` who must be told, never the caller's own request (the
  // outcome tells it, and replaces what an earlier command said of it).
  Outcome apply(const Operation& operation, const Context& context, std::vector<Wake>& wakes);

  // What apply() does first. True if anything changed.
  bool settle(const Context& context, std::vector<Wake>& wakes);

  // When settle() will next change something, if nobody acts; kNever if idle.
  Time next_change() const noexcept;

  // When it will be idle, if nobody acts; Time{} if it is.
  Time idle_from() const noexcept;

  // Nobody holds or waits: only the token is left to remember.
  bool idle() const noexcept { return holders_.empty() && queue_.empty(); }

  std::uint32_t limit() const noexcept { return limit_; }  // 0 unless a semaphore in use
  std::uint64_t last_token() const noexcept { return last_token_; }
  const std::vector<Holder>& holders() const noexcept { return holders_; }
  const std::deque<Waiter>& queue() const noexcept { return queue_; }

  friend bool operator==(const LockRecord&, const LockRecord&) = default;

  // For the codec alone.
  struct Parts {
    std::uint32_t limit = 0;
    std::uint64_t last_token = 0;
    std::vector<Holder> holders;
    std::deque<Waiter> queue;
  };
  static LockRecord from_parts(Parts parts);

 private:
  // The operations, on a settled record.
  Outcome on(const Acquire& acquire, const Context& context, std::vector<Wake>& wakes);
  Outcome on(const Renew& renew, const Context& context, std::vector<Wake>& wakes);
  Outcome on(const Poll& poll, const Context& context, std::vector<Wake>& wakes);
  Outcome on(const Release& release, const Context& context, std::vector<Wake>& wakes);
  Outcome on(const Requeue& requeue, const Context& context, std::vector<Wake>& wakes);
  Outcome on(const Revoke& revoke, const Context& context, std::vector<Wake>& wakes);
  Outcome on(const Resize& resize, const Context& context, std::vector<Wake>& wakes);
  Outcome on(const Upgrade& upgrade, const Context& context, std::vector<Wake>& wakes);
  Outcome on(const Downgrade& downgrade, const Context& context, std::vector<Wake>& wakes);
  Outcome on(const Transfer& transfer, const Context& context, std::vector<Wake>& wakes);

  bool finish_upgrade(const Context& context, std::vector<Wake>& wakes);
  bool promote(const Context& context, std::vector<Wake>& wakes);
  bool fits(const Shape& shape) const noexcept;
  std::optional<std::uint64_t> take_token(const Context& context) noexcept;
  bool remove(const RequestId& id);
  Holder* find_holder(const RequestId& id) noexcept;
  Waiter* find_waiter(const RequestId& id) noexcept;
  Outcome queued(const Waiter& waiter, const Context& context) const noexcept;

  std::uint32_t limit_ = 0;       // also that of every holder's and waiter's shape
  std::uint64_t last_token_ = 0;  // the end of the newest grant's block
  std::vector<Holder> holders_;
  std::deque<Waiter> queue_;
};

}  // namespace holdfast::core
